#include "model/tree.hpp"

namespace graftboost {

void Tree::index_leaves() {
  leaves.assign(static_cast<std::size_t>(n_leaves()), no_node);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].is_leaf()) continue;
    const auto leaf = static_cast<std::size_t>(nodes[i].leaf);
    if (leaf >= leaves.size()) leaves.resize(leaf + 1, no_node);
    leaves[leaf] = static_cast<NodeIndex>(i);
  }
}

std::vector<double> Tree::leaf_values() const {
  std::vector<double> values;
  for (const NodeIndex i : leaves) {
    values.push_back(i == no_node ? 0 : nodes[static_cast<std::size_t>(i)].value);
  }
  return values;
}

}  // namespace graftboost
