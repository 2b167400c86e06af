#include "update/fidelity_rule.hpp"

#include <algorithm>
#include <utility>

namespace graftboost {

FidelityRule::FidelityRule(UpdateContext& context, const ChangedRows& changed)
    : FlipRule(context), changed_(changed), scores_before_(scores_before(context, changed)) {}

void FidelityRule::select(std::span<const std::size_t> trees) {
  const double scale = static_cast<double>(flips_.size()) / static_cast<double>(trees.size());
  const FlipShifts shifts(context_, changed_, flips_, scale);
  booked_.scores = scores_when_booked(context_, changed_);
  booked_.achieved = achieved(context_, changed_, scores_before_, booked_.scores);
  FlipShifts::OfRows of_rows = shifts.of_rows();
  booked_.memory = memory_of(context_, changed_, booked_.scores, of_rows.shifts);
  shifts_ = std::move(of_rows.shifts);
  sizes_ = std::move(of_rows.sizes);
  context_.tolerance = select_actions(context_, changed_, shifts, booked_, flips_);
}

void FidelityRule::before_settling() {
  std::vector<TreeFlips> stay(flips_.size());
  bool any_settled = false;
  for (std::size_t t = 0; t < flips_.size(); ++t) {
    if (flips_[t].flips.empty()) continue;
    const std::vector<bool> settled = find_settled(context_.model.nodes.tree(t), flips_[t]);
    for (std::size_t f = 0; f < settled.size(); ++f) {
      any_settled |= settled[f];
      if (!settled[f]) stay[t].flips.push_back(flips_[t].flips[f]);
    }
  }
  const FlipShifts shifts(context_, changed_, stay, 1);
  if (any_settled) {
    FlipShifts::OfRows left = shifts.of_rows();
    shifts_ = std::move(left.shifts);
    const std::size_t k_trees = context_.model.base_scores.size();
    for (std::size_t i = 0; i < shifts_.size(); ++i) {
      const double stays = left.sizes[i / k_trees];
      shifts_[i] *= part_left(std::max(sizes_[i / k_trees] - stays, 0.0), stays);
    }
  }
  left_error_ = shifts.error(booked_.scores) * memory_unit;
}

FidelityEstimate FidelityRule::estimate(const std::vector<bool>& restructured) const {
  const ChangedScores now = scores_now(context_, changed_, restructured);
  const ChangedLosses done = achieved(context_, changed_, scores_before_, now);
  const ChangedLosses left = memory_of(context_, changed_, now, shifts_);
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
