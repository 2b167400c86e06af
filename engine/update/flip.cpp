#include "update/flip.hpp"

#include <cmath>

namespace graftboost {

std::vector<bool> find_settled(const Tree& tree, const TreeFlips& flips) {
  std::vector<bool> is_regrown(tree.nodes.size());
  for (std::size_t f = 0; f < flips.flips.size(); ++f)
    if (flips.actions[f] == FlipAction::regrow)
      is_regrown[static_cast<std::size_t>(flips.flips[f].node)] = true;
  // Parents precede children.
  for (std::size_t i = 1; i < tree.nodes.size(); ++i)
    if (is_regrown[static_cast<std::size_t>(tree.nodes[i].parent)]) is_regrown[i] = true;
  std::vector<bool> settled;
  for (std::size_t f = 0; f < flips.flips.size(); ++f)
    settled.push_back(flips.actions[f] != FlipAction::none ||
                      is_regrown[static_cast<std::size_t>(flips.flips[f].node)]);
  return settled;
}

bool is_under(const Tree& tree, NodeIndex node, NodeIndex top) {
  while (node != no_node && node != top) node = tree[node].parent;
  return node == top;
}

double flip_weight(const Tree& tree, NodeIndex node) {
  return 1 / std::cbrt(static_cast<double>(tree.n_leaves_under(node) - 1));
}

}  // namespace graftboost
