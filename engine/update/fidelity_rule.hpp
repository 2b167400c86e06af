// The update rule that regrows as much as a target fidelity needs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "update/flip_rule.hpp"
#include "update/row_memory.hpp"
#include "update/selection.hpp"

namespace graftboost {

// Selects by what the model remembers of the changed rows. Owns their scores at each stage.
class FidelityRule : public FlipRule {
 public:
  // Before anything is booked.
  FidelityRule(UpdateContext& context, const ChangedRows& changed);

  void select(std::span<const std::size_t> trees) override;
  void before_settling() override;
  FidelityEstimate estimate(const std::vector<bool>& restructured) const override;
  // What the model remembers of each changed row when all are booked, as of the last selection.
  const ChangedLosses& memory() const { return booked_.memory; }

 private:
  const ChangedRows& changed_;
  ChangedScores scores_before_;
  MemoryWhenBooked booked_;
  ChangedScores shifts_;       // by all flips; then by those that stay
  WipedVector<double> sizes_;  // of the shifts by all flips
  double left_error_ = 0;
};

}  // namespace graftboost
