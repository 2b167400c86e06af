// Which sums are worth their memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "model/model.hpp"

namespace graftboost {

// Drops sums of a tree that take more than its share of the memory for them: those of nodes with few
// rows, which are the quickest to count again. No model depends on it.
template <class Sums>
void drop_surplus(const Forest& forest, const Tree& tree, KeptSums<Sums>& kept) {
  const std::size_t share = forest.stats_memory / std::max<std::size_t>(forest.n_trees_meant(), 1);
  std::size_t all = 0;
  for (const NodeSums<Sums>& sums : kept) all += sums.bytes();
  if (all <= share) return;
  std::vector<std::size_t> nodes(kept.size());
  std::iota(nodes.begin(), nodes.end(), std::size_t{0});
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) {
    return tree.nodes[a].sums.n > tree.nodes[b].sums.n;
  });
  std::size_t used = 0;
  for (const std::size_t i : nodes) {
    if (!kept[i].kept) continue;
    if (kept[i].bytes() > share - used) {
      kept[i] = {};
    } else {
      used += kept[i].bytes();
    }
  }
}

}  // namespace graftboost
