#include "update/fidelity_rule.hpp"

#include <algorithm>
#include <utility>

namespace graftboost {

FidelityRule::FidelityRule(UpdateContext& context, const ChangedRows& changed)
    : context_(context),
      changed_(changed),
      flips_(context.model.nodes.size()),
      scores_before_(scores_before(context, changed)) {}

void FidelityRule::set_flips(std::size_t t, std::vector<Flip> flips) {
  // The order in which they were found depends on rounds.
  std::ranges::sort(flips, {}, &Flip::node);
  flips_[t].flips = std::move(flips);
}

void FidelityRule::select(std::span<const std::size_t> trees) {
  const double scale = static_cast<double>(flips_.size()) / static_cast<double>(trees.size());
  const FlipShifts shifts(context_, changed_, flips_, scale);
  booked_.scores = scores_when_booked(context_, changed_);
  booked_.achieved = achieved(context_, changed_, scores_before_, booked_.scores);
  booked_.memory = memory_of(context_, changed_, booked_.scores, shifts.of_rows());
  context_.tolerance = select_actions(context_, changed_, shifts, booked_, flips_);
}

bool FidelityRule::has_actions(std::size_t t) const {
  return std::ranges::any_of(flips_[t].actions,
                             [](FlipAction action) { return action != FlipAction::none; });
}

std::vector<NodeIndex> FidelityRule::nodes_to_regrow(std::size_t t) const {
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

void FidelityRule::before_settling() {
  std::vector<TreeFlips> stay(flips_.size());
  for (std::size_t t = 0; t < flips_.size(); ++t) {
    if (flips_[t].flips.empty()) continue;
    const Tree& tree = context_.model.nodes.tree(t);
    std::vector<bool> is_regrown(tree.nodes.size());
    for (const NodeIndex node : nodes_to_regrow(t))
      is_regrown[static_cast<std::size_t>(node)] = true;
    for (std::size_t i = 1; i < tree.nodes.size(); ++i)
      if (is_regrown[static_cast<std::size_t>(tree.nodes[i].parent)]) is_regrown[i] = true;
    for (std::size_t f = 0; f < flips_[t].flips.size(); ++f) {
      const Flip& flip = flips_[t].flips[f];
      if (flips_[t].actions[f] == FlipAction::none &&
          !is_regrown[static_cast<std::size_t>(flip.node)])
        stay[t].flips.push_back(flip);
    }
  }
  const FlipShifts shifts(context_, changed_, stay, 1);
  shifts_left_ = shifts.of_rows();
  left_error_ = shifts.error(booked_.scores) * memory_unit;
}

FidelityEstimate FidelityRule::estimate(const std::vector<bool>& restructured) const {
  const ChangedScores now = scores_now(context_, changed_, restructured);
  const ChangedLosses done = achieved(context_, changed_, scores_before_, now);
  const ChangedLosses left = memory_of(context_, changed_, now, shifts_left_);
  const auto is_remembered = [&](std::int64_t memory) {
    return reaches_floor(memory, context_.rule.memory_floor);
  };
  FidelityEstimate found;
  std::int64_t total_done = 0, total_left = 0, most_left = 0;
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    total_done += done[i];
    total_left += left[i];
    most_left = std::max(most_left, left[i]);
    found.rows_remembered += is_remembered(booked_.memory[i]);
    found.rows_still_remembered += is_remembered(left[i]);
  }
  found.is_known = true;
  found.achieved = static_cast<double>(total_done) * memory_unit;
  found.left = static_cast<double>(total_left) * memory_unit;
  found.left_error = left_error_;
  found.most_left = static_cast<double>(most_left) * memory_unit;
  return found;
}

}  // namespace graftboost
