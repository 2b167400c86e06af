// The gradients that rows record when their nodes are regrown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "model/model_state.hpp"
#include "model/running_scores.hpp"

namespace graftboost {

// Goes through the iterations in order, like regrowing. If nodes with many rows are regrown in an
// iteration, the gradients of all rows are computed at once: rows in order are faster than single
// ones, and those of several classes share their exponentials. Otherwise they are computed for the
// rows that are asked for. Owns the running scores and the gradients of one iteration.
class FreshGradients {
 public:
  FreshGradients(const ModelState& model, int n_threads);

  // From here on the trees before `first_tree` are final. Nodes with `n_rows` rows in all are
  // regrown in this iteration, and with about `n_rows_left` from this one on.
  void begin_iteration(std::size_t first_tree, std::size_t n_rows, std::size_t n_rows_left);

  // What these rows of a shard record in a tree of the iteration. Several threads may ask at once.
  GradientArray of(std::size_t t, std::size_t shard, std::span<const Slot> slots);
  // How many leaf values that takes for so many rows.
  std::size_t n_looked_up(std::size_t n_rows) const { return scores_.n_looked_up(n_rows); }

 private:
  void record_all();
  GradientArray computed(std::size_t t, std::size_t shard, std::span<const Slot> slots);

  const ModelState& model_;
  int n_threads_;
  std::size_t k_trees_;
  std::size_t first_tree_ = 0;  // of the iteration
  RunningScores scores_;
  bool are_all_recorded_ = false;
  std::vector<std::vector<GradientArray>> all_;  // per shard and tree of the iteration
};

}  // namespace graftboost
