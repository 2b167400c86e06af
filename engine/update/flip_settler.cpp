#include "update/flip_settler.hpp"

#include <algorithm>

#include "update/update_cost.hpp"

namespace graftboost {
FlipSettler::FlipSettler(const ModelState& model, std::vector<TreeFlips>& flips)
    : model_(model), flips_(flips) {
  for (TreeFlips& of_tree : flips) {
    of_tree.actions.assign(of_tree.flips.size(), FlipAction::none);
    worked_on_.emplace_back(of_tree.flips.size());
  }
}

std::int64_t FlipSettler::rows_for(const SettlingStep& step) const {
  const Tree& tree = model_.nodes.tree(step.t);
  const TreeFlips& flips = flips_[step.t];
  const Flip& flip = flips.flips[step.flip];
  std::int64_t rows = tree[flip.node].sums.n;
  if (step.action == FlipAction::shift) rows = std::min(rows, cost::rows_per_move * flip.n_moving);
  for (std::size_t f = 0; f < flips.flips.size(); ++f) {
    const NodeIndex other = flips.flips[f].node;
    if (flips.actions[f] == FlipAction::regrow && is_under(tree, flip.node, other)) return -1;
    // What was done below is done again.
    if (step.action == FlipAction::regrow && is_under(tree, other, flip.node))
      rows -= worked_on_[step.t][f];
  }
  return std::max<std::int64_t>(rows, 0);
}

std::vector<std::size_t> FlipSettler::take(const SettlingStep& step, std::int64_t rows) {
  TreeFlips& flips = flips_[step.t];
  const std::vector<bool> before = find_settled(model_.nodes.tree(step.t), flips);
  flips.actions[step.flip] = step.action;
  const std::vector<bool> after = find_settled(model_.nodes.tree(step.t), flips);
  std::vector<std::size_t> newly_settled;
  for (std::size_t f = 0; f < flips.flips.size(); ++f)
    if (after[f] && !before[f]) newly_settled.push_back(f);
  n_worked_on_ += rows;
  worked_on_[step.t][step.flip] += rows;
  return newly_settled;
}

}  // namespace graftboost
