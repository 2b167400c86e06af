// The row side of regrowing: the rows of a node record fresh gradients and get new leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "model/model_state.hpp"
#include "train/growing_rows.hpp"
#include "update/fresh_gradients.hpp"

namespace graftboost {

// Serves the growth of nodes, one after the other. Several can be at work side by side on different
// nodes. Of the nodes it reads no more than the trees before, which must be final.
template <class Sums>
class RegrowingRows {
 public:
  RegrowingRows(ModelState& model, FreshGradients& fresh, int n_threads)
      : model_(model), fresh_(fresh), n_threads_(n_threads), slots_(model.shards.size()) {}

  // Finds the rows in these leaves, per shard, and saves what they recorded. This depends on no
  // other tree, so it can be done for the nodes of all trees side by side.
  std::vector<ReachingRows> find(std::size_t t, const std::vector<std::int32_t>& leaves);

  struct Started {
    std::size_t n_rows = 0;     // in the tree's subsample
    __int128 more_squares = 0;  // what is added to the tree's sum of squared gradients
  };
  // Starts a growth with these rows: they record fresh gradients. `before`, unless it is empty,
  // gets the histogram of what they recorded until then.
  Started start(std::size_t t, const std::vector<ReachingRows>& reaching, GrowingRows<Sums>& rows,
                Histogram<Sums>& before);
  // The rows of these nodes of the growth get these leaf ids.
  void place(std::size_t t, const GrowingRows<Sums>& rows, std::span<const NodeIndex> nodes,
             std::span<const std::int32_t> leaf_ids);
  void merge_leaves(std::size_t t, std::int32_t from, std::int32_t to);
  // Memory to work in.
  Array<Slot>& slots() { return slots_[0]; }

 private:
  __int128 record_fresh(std::size_t t, std::size_t shard, std::span<const Slot> slots);

  ModelState& model_;
  FreshGradients& fresh_;
  int n_threads_;
  std::vector<Array<Slot>> slots_;  // per shard
};

}  // namespace graftboost
