#include "update/flip_rule.hpp"

#include <algorithm>
#include <utility>

namespace graftboost {

void FlipRule::set_flips(std::size_t t, std::vector<Flip> flips) {
  // The order in which they were found depends on rounds.
  std::ranges::sort(flips, {}, &Flip::node);
  flips_[t].flips = std::move(flips);
}

bool FlipRule::has_actions(std::size_t t) const {
  return std::ranges::any_of(flips_[t].actions,
                             [](FlipAction action) { return action != FlipAction::none; });
}

std::vector<NodeIndex> FlipRule::nodes_to_regrow(std::size_t t) const {
  const TreeFlips& flips = flips_[t];
  const Tree& tree = context_.model.nodes.tree(t);
  std::vector<bool> is_regrown(tree.nodes.size());
  std::vector<NodeIndex> nodes;
  for (std::size_t f = 0; f < flips.actions.size(); ++f) {
    if (flips.actions[f] != FlipAction::regrow) continue;
    const NodeIndex node = flips.flips[f].node;
    NodeIndex above = node;
    while (above != no_node && !is_regrown[static_cast<std::size_t>(above)])
      above = tree[above].parent;
    is_regrown[static_cast<std::size_t>(node)] = true;
    if (above == no_node) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace graftboost
