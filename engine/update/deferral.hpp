// Updates that only book the changed rows, and regrow nodes later for many updates at once.
//
// The rows themselves are gone by then. What stays of them are sums of absolute gradients at the
// nodes on their paths (DeferredSums). A candidate that is better by `regret` would shift their
// scores by about regret / sum |recorded|. What that does to their losses depends on how steep
// these are: now (`last`), and on the way to the scores that the rows would have without it, where
// they approach what was recorded in training:
//
//     memory now    = learning_rate * damping * weight * regret * sum |last| / sum |recorded|
//     whole memory  = the same with 3/4 |last| + 1/4 |recorded| instead of |last|
//
// The two differ for rows that are predicted well although they would not be, as is common with
// many classes. Their losses hardly change before most of the shift is made (see MemoryCurve).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "update/flip_rule.hpp"
#include "update/flip_settler.hpp"
#include "update/row_memory.hpp"

namespace graftboost {

// Notes changed rows at the nodes on their paths, when all are booked. `before` are their scores
// before that.
void defer_rows(const UpdateContext& context, const ChangedRows& changed,
                const ChangedScores& before);
// Forgets all rows whose regrowing is deferred.
void forget_deferred(ModelState& model) noexcept;

// The memory that a part of all shifts accounts for: the first of it by the slope that losses have
// now, and all of it at 1.
struct MemoryCurve {
  double now = 0, whole = 0;

  double at(double part) const {
    const double first = now < whole ? now : whole;
    return first * part + (whole - first) * (part * part * part);
  }
};

// Selects what is regrown for rows that earlier updates changed: flips in the order of their regret
// per row worked on, until the target fidelity is reached or the work is used up. At least one is
// settled, if there are any to settle.
class DeferredRule : public FlipRule {
 public:
  // `most_work` is the number of rows that may be worked on, relative to all rows in all trees.
  DeferredRule(UpdateContext& context, double most_work);

  void select(std::span<const std::size_t> trees) override;
  void before_settling() override;
  FidelityEstimate estimate(const std::vector<bool>& restructured) const override;
  // If nothing is regrown.
  FidelityEstimate estimate_before() const;

  // As of the last selection. Whether what is selected reaches the target; the rows worked on,
  // relative to all rows in all trees; how many nodes have flips.
  bool reaches_target() const { return reaches_target_; }
  double work() const;
  std::int64_t n_flips() const;

 private:
  struct FlipMemory {
    std::int64_t now = 0, whole = 0;  // in units
    bool is_eligible = false;         // whether it is not too little to be regrown for
  };
  // What a selection achieves and leaves, in units.
  struct Outcome {
    double recovered = 0, left = 0;
  };

  std::vector<SettlingStep> find_steps();
  void take_steps(const std::vector<SettlingStep>& steps);
  FlipMemory memory_of(const Tree& tree, const Flip& flip) const;
  // If so much of the memory in `curve` is settled.
  static Outcome outcome(const MemoryCurve& curve, double settled);
  bool is_enough(const Outcome& outcome) const;
  std::int64_t n_void_left() const;
  FidelityEstimate estimate_of(const Outcome& outcome) const;

  double most_work_;
  double unit_;                                  // of memory
  std::vector<std::vector<FlipMemory>> memory_;  // per tree and flip
  MemoryCurve curve_, eligible_;                 // of all flips, and of those that may be settled
  double settled_ = 0;                           // memory of the flips that are, in units
  std::int64_t n_worked_on_ = 0;
  bool reaches_target_ = false;
};

}  // namespace graftboost
