// What the model remembers of the rows that an update changes: an estimate without a retrain.
//
// A removed row is still remembered where a split that it brought about has stayed: at flips. Under
// the best candidate of the node, the row would be in another child. The difference d between the
// values of the two children follows from sums. A retrain changes the score of the row by a part of
// it (see flip_weight). At the root nothing is left of it, because the following trees use the
// candidate that this one does not. Below the topmost flip on the path of a row, all splits are
// found again without the row, so a part of what they add to its score is lost, too:
//
//     shift = damping * weight * d - optimism * (value of the leaf - value of the child)
//
// The shifts of all flips on the paths of a row add up to the change of its score that a retrain
// would still cause. The change of its loss by them is the row's memory. Shifts are signed: those
// of flips that have nothing to do with the row cancel. Likewise for added rows, which a retrain
// would learn better.
//
// Memory is in nats; for squared error in units of the residual variance. It is counted in
// integers, and shifts lie on the grid of leaf values, so neither threads nor shards make a
// difference.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "core/parallel.hpp"
#include "update/changed_rows.hpp"
#include "update/update_context.hpp"

namespace graftboost {

inline constexpr double memory_unit = 0x1p-28;

// Regrowing a node in place shifts scores by more than a retrain would, because later trees do not
// adapt to it: by about this factor, on average over seven data sets.
inline constexpr double in_place = 1.3;
// So if other flips on the paths of a row are settled, a retrain would shift its score by a part of
// what the flips that stay tell: half of it, when nearly all are settled.
inline double part_left(double settled, double stay) {
  const double all = settled + stay;
  return all > 0 ? 1 - 0.5 * (settled / all) : 1;
}

// A whole number of units. The loss of a row counts for no more than a limit, and so does the sum
// of several rows.
std::int64_t in_memory_units(double units, std::int64_t n_rows = 1);
// What a unit of memory is in the losses of this model.
double unit_of_losses(const UpdateContext& context);

// Scores of changed rows: scores[row * trees_per_iteration + class].
using ChangedScores = WipedVector<double>;
inline std::span<const double> of_row(const ChangedScores& scores, std::size_t row,
                                      std::size_t k_trees) {
  return {scores.data() + row * k_trees, k_trees};
}
// Losses or memory of changed rows, in units.
using ChangedLosses = WipedVector<std::int64_t>;

// Calls block(begin, end) for blocks of the changed rows, on several threads.
template <class Block>
void for_blocks(const UpdateContext& context, const ChangedRows& changed, Block&& block) {
  constexpr std::size_t rows_together = 256;
  parallel_blocks(context.n_threads, changed.size(), rows_together, block);
}

// Before anything is booked.
ChangedScores scores_before(const UpdateContext& context, const ChangedRows& changed);
// When all changed rows are booked and no split has been replaced yet.
ChangedScores scores_when_booked(const UpdateContext& context, const ChangedRows& changed);
// By the trees as they are now; those that are not `restructured` need not be walked.
ChangedScores scores_now(const UpdateContext& context, const ChangedRows& changed,
                         const std::vector<bool>& restructured);

// The loss of one changed row by its scores. One per thread.
class RowLoss {
 public:
  RowLoss(const UpdateContext& context, const ChangedRows& changed);

  std::int64_t operator()(std::size_t row, std::span<const double> scores) const;
  // How much more it is by shifted scores: what is remembered of the row if that is what a retrain
  // would still do. For added rows, how much less.
  std::int64_t memory(std::size_t row, std::span<const double> scores,
                      std::span<const double> shifts);
  // How fast the memory of a row grows with a shift of each of its scores, in units.
  void slopes(std::size_t row, std::span<const double> scores, double* to) const;

 private:
  const Loss& loss_;
  const ChangedRows& changed_;
  double unit_;
  WipedVector<double> shifted_;
};

// Whether a row with this memory is remembered at all.
inline bool reaches_floor(std::int64_t memory, double memory_floor) {
  return memory > 0 && static_cast<double>(memory) * memory_unit >= memory_floor;
}

// How much the losses of changed rows have changed: risen if they were removed, fallen if they were
// added.
ChangedLosses achieved(const UpdateContext& context, const ChangedRows& changed,
                       const ChangedScores& before, const ChangedScores& now);
// The memory of all changed rows.
ChangedLosses memory_of(const UpdateContext& context, const ChangedRows& changed,
                        const ChangedScores& scores, const ChangedScores& shifts);

}  // namespace graftboost
