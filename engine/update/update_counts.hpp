// What an update did.
#pragma once

#include <cstdint>

namespace graftboost {

// Work in the units of update_cost.hpp. Every amount is rounded before it is added, so that the sum
// does not depend on the order of threads, shards and rows.
class Work {
 public:
  Work& operator+=(double amount) {
    add(amount, 1);
    return *this;
  }
  void add(double amount, std::int64_t times) {
    steps_ += static_cast<std::int64_t>(amount * steps_per_unit + 0.5) * times;
  }
  Work& operator+=(const Work& other) {
    steps_ += other.steps_;
    return *this;
  }
  double amount() const { return static_cast<double>(steps_) / steps_per_unit; }

 private:
  static constexpr double steps_per_unit = 64;
  std::int64_t steps_ = 0;
};

// What an update did for the rows that it changed, by their losses: what was achieved is known,
// what a retrain would still change is estimated (see row_memory.hpp). Sums over rows in nats, or
// in units of the residual variance. For added rows, losses that fall count as positive.
struct FidelityEstimate {
  bool is_known = false;
  // Whether single rows were looked at. Of rows whose regrowing was deferred only sums are known.
  bool is_of_rows = true;
  double achieved = 0;
  double left = 0, left_error = 0;                              // and its standard error
  double most_left = 0;                                         // of a row
  std::int64_t rows_remembered = 0, rows_still_remembered = 0;  // with at least the memory floor
};

struct UpdateCounts {
  bool refitted = false;
  std::int64_t trees_touched = 0;
  std::int64_t nodes_checked = 0;
  std::int64_t nodes_regrown = 0;
  std::int64_t rows_regrown = 0;
  std::int64_t nodes_shifted = 0;
  std::int64_t rows_shifted = 0;
  std::int64_t rows_deferred = 0;  // whose regrowing is left for later, by this update and before
  Work work;
  FidelityEstimate fidelity;
  double seconds_checking = 0, seconds_regrowing = 0, seconds_refitting = 0;

  UpdateCounts& operator+=(const UpdateCounts& other) {
    trees_touched += other.trees_touched;
    nodes_checked += other.nodes_checked;
    nodes_regrown += other.nodes_regrown;
    rows_regrown += other.rows_regrown;
    nodes_shifted += other.nodes_shifted;
    rows_shifted += other.rows_shifted;
    work += other.work;
    return *this;
  }
};

}  // namespace graftboost
