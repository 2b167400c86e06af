// What an update did.
#pragma once

#include <cstdint>

namespace graftboost {

struct UpdateCounts {
  bool refitted = false;
  std::int64_t trees_touched = 0;
  std::int64_t nodes_checked = 0;
  std::int64_t nodes_regrown = 0;
  std::int64_t rows_regrown = 0;
  std::int64_t nodes_shifted = 0;
  std::int64_t rows_shifted = 0;
  double work = 0;  // see update_cost.hpp
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
