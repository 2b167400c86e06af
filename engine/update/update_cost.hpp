// How long something takes, as a count of what it does: the same on every machine and in every run, so
// that a decision built on it is too. The unit is about a nanosecond.
#pragma once

#include <algorithm>

#include "data/row_table.hpp"
#include "model/tree.hpp"

namespace graftboost {

namespace work_of {
inline constexpr double counted_cell = 0.8;    // a row's cell goes into a histogram
inline constexpr double booked_cell = 1.7;     // the same for a row on its own
inline constexpr double booked_row = 80;       // and what that takes besides
inline constexpr double judged_cell = 2;       // made from parent and sibling, added up, judged
inline constexpr double checked_node = 200;    // besides the judging
inline constexpr double partitioned_row = 4;   // goes left or right
inline constexpr double recorded_row = 15;     // gets a gradient, is placed in a leaf
inline constexpr double gathered_value = 0.7;  // a leaf's value goes into a row's score
inline constexpr double looked_up_row = 0.3;   // is found to be in a node or not
inline constexpr double sided_row = 3;         // is found to be on one side of two tests or not
inline constexpr double mending = 1.3;         // pieces of trees, with less for threads to share
}  // namespace work_of

// To grow a tree, or part of one, of this shape: of every two children the smaller is counted.
inline double work_to_grow(const Tree& tree, NodeIndex top, const RowTable& rows) {
  const auto node = [&](NodeIndex i) -> const Node& {
    return tree.nodes[static_cast<std::size_t>(i)];
  };
  const double row = work_of::counted_cell * rows.cells_per_row();
  const double search = work_of::judged_cell * static_cast<double>(rows.layout.histogram_size());
  const auto n_rows = [&](NodeIndex i) { return static_cast<double>(node(i).sums.n); };
  double work = n_rows(top) * (row + work_of::recorded_row) + search;
  const auto add = [&](auto&& self, NodeIndex i) -> void {
    if (node(i).is_leaf()) return;
    const NodeIndex left = node(i).left, right = node(i).right;
    work += n_rows(i) * work_of::partitioned_row + std::min(n_rows(left), n_rows(right)) * row +
            2 * search;
    self(self, left);
    self(self, right);
  };
  add(add, top);
  return work;
}

}  // namespace graftboost
