#include "tree.hpp"

#include <algorithm>

namespace graftboost {

std::vector<NodeIndex> Tree::leaf_nodes() const {
  std::int32_t largest = 0;
  for (const Node& node : nodes) largest = std::max(largest, node.leaf);
  std::vector<NodeIndex> found(static_cast<std::size_t>(largest) + 1, no_node);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].is_leaf())
      found[static_cast<std::size_t>(nodes[i].leaf)] = static_cast<NodeIndex>(i);
  }
  return found;
}

std::vector<double> Tree::leaf_values() const {
  std::vector<double> values;
  for (const NodeIndex i : leaf_nodes()) {
    values.push_back(i == no_node ? 0 : nodes[static_cast<std::size_t>(i)].value);
  }
  return values;
}

}  // namespace graftboost
