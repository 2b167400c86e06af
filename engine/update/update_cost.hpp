// What updates cost, counted in operations: the same on every machine and in every run, so
// decisions based on it are, too. The unit is about a nanosecond; `make update-cost`
// measures the constants on a machine (benchmarks/update_cost.cpp).
#pragma once

#include "model/tree.hpp"

namespace graftboost {

namespace cost {
inline constexpr double counted_cell = 0.8;  // a row's cell is added to a histogram
inline constexpr double booked_cell = 1.7;   // the same for a single row
inline constexpr double booked_row = 80;     // what booking a row takes besides
inline constexpr double surveyed_row = 60;   // what flips mean for a changed row, in one tree
inline constexpr double evaluated_cell =
    2;  // obtained from parent and sibling, added up, evaluated
inline constexpr double checked_node = 200;     // besides the evaluation
inline constexpr double partitioned_row = 1.5;  // sent left or right
inline constexpr double recorded_row = 4;       // gets a gradient and is placed in a leaf
inline constexpr double gathered_value = 0.7;   // a leaf's term becomes part of a row's
inline constexpr double carried_value = 0.4;    // the same for all rows in order
inline constexpr double looked_up_row = 0.3;    // found to be in a node or not
inline constexpr double compared_row = 3;       // found to be moved by a shifted split or not
inline constexpr double regrowing = 1.3;        // parts of trees leave less for threads to share

// Updates that change more than one row in so many refit: booking alone costs more than counting
// anew.
inline constexpr double largest_change = 4;
// Some trees are checked first to estimate the cost of all: one in so many, but at least so many.
inline constexpr std::size_t trees_per_sample = 6, fewest_sampled = 6;
// The more rows change, the likelier a refit and the more expensive the sample: half as many trees
// are sampled from one changed row in so many on, and so on.
inline constexpr std::size_t rows_per_sample = 40;
// An update that is likely to take more than this share of a refit's work becomes a refit: as a
// whole, or, once all trees are checked, for what is left to regrow.
inline constexpr double most_work = 0.8, most_to_regrow = 0.9;
// By the fidelity rule, trees are sampled only if more than one row in so many changes: a few trees
// say little about few rows, and surveying all costs little.
inline constexpr double fewest_foreseen = 400;
// Nor if surveying costs no more than this share of a refit. A few trees overestimate what has to
// be regrown, so it is better known than foreseen.
inline constexpr double cheap_survey = 0.08;
// It does so at once if the first few trees are far beyond.
inline constexpr double far_too_much_work = 1.2;
inline constexpr std::size_t fewest_checked_first = 2;
// The first trees, which are the sample when rows are added, have about half as much to regrow as
// all.
inline constexpr double first_trees = 2;
// Moving a row costs as much as regrowing so many. If more than one row in so many would move,
// regrowing the node is cheaper.
inline constexpr std::int64_t rows_per_move = 5, largest_shift = 4;
// Settling a flip costs as much as regrowing so many rows. The leaf ids of all rows are read, and to
// shift a threshold, one code of each row of the node.
inline double rows_to_regrow(std::int64_t n_node, std::int64_t n_rows) {
  return static_cast<double>(n_node) + static_cast<double>(n_rows) / 256;
}
inline double rows_to_shift(std::int64_t n_moving, std::int64_t n_node, std::int64_t n_rows) {
  return static_cast<double>(rows_per_move * n_moving) + static_cast<double>(n_node) / 8 +
         static_cast<double>(n_rows) / 256;
}
}  // namespace cost

// What a row and a histogram of the model cost.
struct ModelCost {
  double row;        // adding a row to a histogram
  double histogram;  // evaluating a histogram

  ModelCost(double cells_per_row, std::size_t histogram_size)
      : row(cost::counted_cell * cells_per_row),
        histogram(cost::evaluated_cell * static_cast<double>(histogram_size)) {}

  // Growing a tree, or the part below a node, of this shape: of every two children the smaller one
  // is counted.
  double of_growing(const Tree& tree, NodeIndex top) const;
};

}  // namespace graftboost
