// Which flips an update settles, and how.
#pragma once

#include <cstdint>
#include <span>

#include "update/flip_shifts.hpp"

namespace graftboost {

// What there is to forget and to learn when all changed rows are booked.
struct MemoryWhenBooked {
  ChangedScores scores;
  ChangedLosses achieved;  // by booking alone
  ChangedLosses memory;    // that is left
};

// The regret that is tolerated in the growth order if any flip is settled. Flips tell nothing of the
// growth order, so it is replayed the more exactly, the more the model remembers of the changed rows
// relative to all its rows.
inline double growth_order_tolerance(std::int64_t n_rows, double memory) {
  const double tolerance = static_cast<double>(n_rows) / (1e4 * memory);
  return tolerance > 1 ? tolerance : 1;
}

// Sets the actions of flips so that the changed rows are forgotten, or learned, to the rule's
// fidelity, as far as flips tell. Returns the regret that is tolerated in the growth order: infinite
// if no flip is settled.
//
// Flips are settled in the order of the memory that this may recover relative to its work. Rows of
// which less than the rule's memory_floor is remembered, or left, do not count. If some are still
// remembered when the target is reached, a little more work is done for them. Splits that are void
// never stay.
double select_actions(const UpdateContext& context, const ChangedRows& changed,
                      const FlipShifts& shifts, const MemoryWhenBooked& booked,
                      std::span<TreeFlips> flips);

}  // namespace graftboost
