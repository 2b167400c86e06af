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

// Sets the actions of flips so that the changed rows are forgotten, or learned, to the rule's
// fidelity, as far as flips tell, and returns the tolerance that they follow from.
//
// Flips are settled in the order of their regret and not of what they contribute to the memory.
// Otherwise those that happen to favour the changed rows would stay, and the rows would be
// predicted worse than by a retrain. Flips that touch no row with the rule's memory_floor stay, and
// those whose split is void never do.
double select_actions(const UpdateContext& context, const ChangedRows& changed,
                      const FlipShifts& shifts, const MemoryWhenBooked& booked,
                      std::span<TreeFlips> flips);

}  // namespace graftboost
