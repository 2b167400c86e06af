// Changed rows are booked in the sums of all trees, and added rows record their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "update/changed_rows.hpp"
#include "update/tree_progress.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// Books tree by tree. What added rows record in a tree depends on the trees before, so with added
// rows trees are booked in order, by book_up_to(); without, in any order, by book().
//
// Owns the targets and ids of the added rows, and their scores and gradients in the iteration that comes
// next.
class TreeBooker {
 public:
  TreeBooker(UpdateContext& context, ChangedRows& changed, std::span<TreeProgress> progress);

  // If there are added rows: books all trees before this one that are not booked yet, and the rest
  // of the last one's iteration.
  void book_up_to(std::size_t end);
  // If there are none: books a tree. Different threads may book different trees.
  void book(std::size_t t);

 private:
  void start();
  void book_tree(std::size_t t, ConstGradientPointer gradients, std::span<double> scores);
  bool evaluates_candidates(std::size_t t) const;
  void restore(std::size_t t);

  UpdateContext& context_;
  ModelState& model_;
  ChangedRows& changed_;
  std::span<TreeProgress> progress_;
  std::size_t k_trees_;
  std::size_t n_booked_ = 0;  // trees in which the added rows have recorded their gradients
  WipedVector<std::int32_t> targets_;
  WipedVector<RowId> ids_;
  std::vector<Array<double>> scores_;  // before the next iteration, per tree of one
  std::vector<GradientArray> gradients_;
};

}  // namespace graftboost
