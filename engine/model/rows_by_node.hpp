// All rows of one tree, arranged by node.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "model/model_state.hpp"

namespace graftboost {

// Sorts the rows of every shard by leaf, so that those of each node lie together. For counting many
// nodes of one tree. Rows outside the tree's subsample and rows that an update is adding are left
// out; rows that it is removing are not.
class RowsByNode {
 public:
  RowsByNode(const ModelState& model, std::size_t t);

  std::span<const Slot> rows_of(std::size_t shard, NodeIndex node) const {
    const auto [first, last] = leaf_ranges_[static_cast<std::size_t>(node)];
    return rows_[shard].of_leaves(first, last);
  }
  Totals total(NodeIndex node) const;
  // The histogram of a node; cells of common codes are not filled in.
  template <class Sums>
  Histogram<Sums> count(NodeIndex node) const;

 private:
  const ModelState& model_;
  std::size_t t_;
  // The leaves below each node, as a range of all leaves from left to right.
  std::vector<std::pair<std::size_t, std::size_t>> leaf_ranges_;
  std::vector<RowsByLeaf> rows_;  // per shard
};

}  // namespace graftboost
