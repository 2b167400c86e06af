// Random updates, which several models go through alike.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost::testing {

// A table, of which a model is fitted to some rows; then a few rows are removed and added at a time.
class RandomChanges {
 public:
  struct Change {
    TrainingRows added;
    std::vector<RowId> removed;

    bool empty() const { return removed.empty() && added.size() == 0; }
  };

  RandomChanges(const ModelOptions& options, std::uint64_t seed)
      : random(seed), rows_(random_rows(options, n_all, seed)) {
    for (std::size_t r = 0; r < n_all; ++r) (r < n_fitted ? held_ : others_).push_back(r);
  }

  TrainingRows fitted() const { return rows_.slice(0, n_fitted); }

  Change next() {
    const auto removed = take(held_), added = take(others_);
    Change change{rows_.select(added), {}};
    for (const std::size_t r : removed) change.removed.push_back(rows_.ids()[r]);
    held_.insert(held_.end(), added.begin(), added.end());
    others_.insert(others_.end(), removed.begin(), removed.end());
    return change;
  }

  Random random;

 private:
  static constexpr std::size_t n_fitted = 260, n_all = 300, most_at_once = 3;

  std::vector<std::size_t> take(std::vector<std::size_t>& from) {
    std::vector<std::size_t> taken;
    for (std::size_t n = random.below(most_at_once + 1); n > 0 && !from.empty(); --n) {
      const std::size_t i = random.below(from.size());
      taken.push_back(from[i]);
      from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return taken;
  }

  TrainingRows rows_;
  std::vector<std::size_t> held_, others_;
};

// What updates did, so that a test can tell that it has tried something.
struct Tried {
  int in_place = 0, refitted = 0;
  std::int64_t regrown = 0, shifted = 0;

  void note(const UpdateCounts& counts) {
    ++(counts.refitted ? refitted : in_place);
    regrown += counts.nodes_regrown;
    shifted += counts.nodes_shifted;
  }
};

inline void check_same_counts(const UpdateCounts& a, const UpdateCounts& b) {
  CHECK_EQ(a.refitted, b.refitted);
  CHECK_EQ(a.nodes_checked, b.nodes_checked);
  CHECK_EQ(a.nodes_regrown, b.nodes_regrown);
  CHECK_EQ(a.rows_regrown, b.rows_regrown);
  CHECK_EQ(a.rows_shifted, b.rows_shifted);
  CHECK_EQ(a.work.amount(), b.work.amount());
}

}  // namespace graftboost::testing
