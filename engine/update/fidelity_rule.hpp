// The update rule that regrows as much as a target fidelity needs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "update/row_memory.hpp"
#include "update/selection.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// Follows one update by the fidelity rule: from the flips that surveys find to the estimate of what
// was achieved. Owns the flips, and scores of the changed rows at each stage.
class FidelityRule {
 public:
  // Before anything is booked.
  FidelityRule(UpdateContext& context, const ChangedRows& changed);

  // What the survey of a tree found. Different threads may set different trees.
  void set_flips(std::size_t t, std::vector<Flip> flips);
  // When these trees are surveyed: selects what is done about their flips, as if they stood for all
  // trees, and sets the context's tolerance.
  void select(std::span<const std::size_t> trees);

  const TreeFlips& flips(std::size_t t) const { return flips_[t]; }
  bool has_actions(std::size_t t) const;
  // What the model remembers of each changed row when all are booked, as of the last selection.
  const ChangedLosses& memory() const { return booked_.memory; }
  // The topmost nodes of a tree that are to be regrown.
  std::vector<NodeIndex> nodes_to_regrow(std::size_t t) const;

  // To be called before anything selected is done, because that changes sums and numbers nodes anew.
  void before_settling();
  // When all is done; trees that are `restructured` have other splits than before.
  FidelityEstimate estimate(const std::vector<bool>& restructured) const;

 private:
  UpdateContext& context_;
  const ChangedRows& changed_;
  std::vector<TreeFlips> flips_;  // per tree
  ChangedScores scores_before_;
  MemoryWhenBooked booked_;
  ChangedScores shifts_left_;  // by the flips that stay
  double left_error_ = 0;
};

}  // namespace graftboost
