// RowTable into and out of a trained forest, in place.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace graftboost {

// When a split still passes although the rows changed. With an infinite tolerance all do, and trees keep
// their structure as long as they can hold the rows at all.
//   regret   (best gain - present gain) / noise * N / n <= tolerance: retraining is spent where it is
//            cheap and where single rows are remembered, in nodes that few rows reach
//   rank     the present split is among the best `places` candidates (the paper's sigma)
struct ToleranceRule {
  enum class Kind : std::uint8_t { regret, rank };
  Kind kind = Kind::regret;
  double tolerance = 1;
  std::int64_t places = 1;

  bool keeps_structure() const { return tolerance == std::numeric_limits<double>::infinity(); }

  bool regret_passes(double best, double present, double noise, std::int64_t n_all,
                     std::int64_t n) const {
    return (best - present) / noise * (static_cast<double>(n_all) / static_cast<double>(n)) <=
           tolerance;
  }
};

// What an update did.
struct UpdateCounts {
  bool refitted = false;
  std::int64_t trees_touched = 0;
  std::int64_t nodes_checked = 0;
  std::int64_t nodes_retrained = 0;
  std::int64_t rows_retrained = 0;
  std::int64_t nodes_shifted = 0;
  std::int64_t rows_shifted = 0;
  double work = 0;  // see work.hpp
  double seconds_checking = 0, seconds_mending = 0, seconds_refitting = 0;

  UpdateCounts& operator+=(const UpdateCounts& other) {
    trees_touched += other.trees_touched;
    nodes_checked += other.nodes_checked;
    nodes_retrained += other.nodes_retrained;
    rows_retrained += other.rows_retrained;
    nodes_shifted += other.nodes_shifted;
    rows_shifted += other.rows_shifted;
    work += other.work;
    return *this;
  }
};

// The rows that go (still in their slots) and the rows that come (appended, nothing recorded yet).
struct Change {
  std::vector<Slot> removed;  // ascending
  std::vector<Slot> added;
  // Columns that were rare until these rows came have places now, but no sums yet: of rows held before,
  // these cells.
  bool new_places = false;
  WipedVector<RowTable::NewCell> new_cells;
};

// Adds and removes rows in one pass; `added` may be null. If `n_classes` is more than the model has, it
// grows to so many, and a class k that it had is called relabel[k] from then on. If this throws, nothing
// has changed: std::invalid_argument for what is wrong with the arguments, whose messages call the rows to
// remove by the name of the caller's argument; or std::bad_alloc.
template <class Table>
UpdateCounts update(Forest& forest, const Sample<Table>* added, std::span<const RowId> removed,
                    const std::string& removed_argument, std::span<const std::int32_t> relabel,
                    int n_classes, const ToleranceRule& rule, int n_threads);

// Counts again what a refresh dropped, in all trees.
void restore_sums(Forest& forest, int n_threads);

}  // namespace graftboost
