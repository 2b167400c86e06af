// The row side of boosting: what rows record, and the trees they have passed.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/array.hpp"
#include "model/model_state.hpp"
#include "model/score_terms.hpp"
#include "train/growing_rows.hpp"

namespace graftboost {

// Brings the rows of a model from iteration to iteration: they record gradients, are handed to the
// trees that grow, and are placed in the leaves of these trees. Of the nodes it reads no more than
// the trees that are complete. Owns the terms of the scores of all rows.
class BoostingRows {
 public:
  BoostingRows(ModelState& model, int n_threads);

  // The rows record gradients in the trees of the iteration that begins with tree `first`.
  void record(std::size_t first);
  // Starts the growth of a tree with its subsample. The rows outside it record nothing. Trees of an
  // iteration can be started and placed side by side.
  template <class Sums>
  void start(std::size_t t, GrowingRows<Sums>& rows, int n_threads);
  // Of what the rows of a started tree recorded, squared.
  __int128 squares(std::size_t t) const { return squares_[t % k_trees_]; }
  // Writes the leaf of every row in a tree that has grown: the rows of leaf l are those of node
  // nodes[l] of the growth. Then brings their scores past the tree.
  template <class Sums>
  void place(std::size_t t, const GrowingRows<Sums>& rows, const std::vector<NodeIndex>& nodes,
             int n_threads);

 private:
  template <class Sums>
  void start(std::size_t t, std::size_t shard, GrowingRows<Sums>& rows, int n_threads);
  template <class Sums>
  void place(std::size_t t, std::size_t shard, const GrowingRows<Sums>& rows,
             const std::vector<NodeIndex>& nodes, int n_threads);
  void add_squares(std::size_t t, const RowShard& shard, std::size_t begin, std::size_t end);

  ModelState& model_;
  int n_threads_;
  std::size_t k_trees_;
  ScoreTerms score_terms_;
  std::vector<std::vector<Array<double>>> terms_;  // per shard and tree of an iteration
  std::mutex squares_lock_;
  std::vector<__int128> squares_;  // of what rows record, per tree of the iteration
};

}  // namespace graftboost
