// How far an update is, tree by tree.
#pragma once

#include <span>
#include <vector>

#include "core/types.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// What an update found in one tree, and did. Owned by the update. Its steps borrow the records of
// all trees, and different threads write those of different trees.
struct TreeProgress {
  std::vector<NodeIndex> failed;  // the topmost nodes whose split does not pass
  bool order_changed = false;     // the growth order has to be replayed; also if nodes failed
  bool is_shifted = false;        // at least one split was
  bool is_counted = false;        // the histograms were counted in this update
  UpdateCounts counts;
};

// Added up in the order of trees, so that neither threads nor shards make a difference.
inline UpdateCounts total_counts(std::span<const TreeProgress> trees) {
  UpdateCounts sum;
  for (const TreeProgress& tree : trees) sum += tree.counts;
  return sum;
}

}  // namespace graftboost
