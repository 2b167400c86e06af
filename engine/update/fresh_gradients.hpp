// The gradients that rows record when their nodes are regrown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "model/gradient_array.hpp"
#include "model/running_terms.hpp"

namespace graftboost {

// Goes through the iterations in order, like regrowing. With many classes, the probability of one
// needs the terms of all: if nodes with many rows are regrown in an iteration, their sums are
// computed for all rows at once, since rows in order are faster than single ones. Owns the running
// terms and the sums of one iteration.
class FreshGradients {
 public:
  FreshGradients(const ModelState& model, int n_threads);

  // From here on the trees before `first_tree` are final. Nodes with `n_rows` rows in all are
  // regrown in this iteration, and with about `n_rows_left` from this one on.
  void begin_iteration(std::size_t first_tree, std::size_t n_rows, std::size_t n_rows_left);

  // What these rows of a shard record in a tree of the iteration. Several threads may ask at once.
  GradientArray of(std::size_t t, std::size_t shard, std::span<const Slot> slots);
  // How many leaf values that takes for so many rows.
  std::size_t n_looked_up(std::size_t n_rows) const { return terms_.n_looked_up(n_rows); }

 private:
  void add_up_all();
  GradientArray from_products(std::size_t k, std::size_t shard, std::span<const Slot> slots);
  GradientArray from_scores(std::size_t k, std::size_t shard, std::span<const Slot> slots);

  const ModelState& model_;
  int n_threads_;
  std::size_t k_trees_, first_tree_ = 0;
  RunningTerms terms_;
  bool are_added_up_ = false;
  std::vector<Array<double>> inverse_;  // of the sum of a row's terms, per shard
};

}  // namespace graftboost
