// Surveys of trees in a started update.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/update/started_update.hpp"
#include "update/flip.hpp"
#include "update/row_answers.hpp"
#include "update/split_check.hpp"

namespace graftboost::testing {

inline UpdateRule fidelity_rule(double fidelity, double memory_floor = 0) {
  return {.kind = UpdateRule::Kind::fidelity, .fidelity = fidelity, .memory_floor = memory_floor};
}

// Surveys a tree whose sums are booked. False if no changed row is in its subsample.
template <class Sums>
bool survey(StartedUpdate& update, SplitChecker<Sums>& checker, std::size_t t,
            TreeCheck<Sums>& check) {
  Array<Slot> slots;
  check.reset(t, update.model.nodes.tree(t).nodes.size(),
              GainBounds::are_grouped(update.model.layout()));
  check.is_survey = true;
  if (!checker.begin(check, *update.changed, false)) return false;
  while (check.is_waiting()) {
    answer(*update.context, check, slots);
    checker.resume(check);
  }
  std::ranges::sort(check.flips, {}, &Flip::node);
  return true;
}

// Books and surveys all trees; the flips of each.
inline std::vector<TreeFlips> survey_all(StartedUpdate& update, Random& random) {
  std::vector<TreeFlips> flips(update.model.nodes.size());
  for_sums_of(update.model, [&]<class Sums>(Sums) {
    SplitChecker<Sums> checker(*update.context);
    TreeCheck<Sums> check;
    UpdateCounts counts;
    for (std::size_t t = 0; t < flips.size(); ++t) {
      update.book_sums(t, random, counts);
      if (survey(update, checker, t, check)) flips[t].flips = check.flips;
    }
  });
  return flips;
}

}  // namespace graftboost::testing
