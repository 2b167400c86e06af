// Scores of rows before an iteration, from the leaves they are in.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "model/model.hpp"

namespace graftboost {

// Nobody stores scores: a row's score is the sum of its leaves' values. For few rows it is gathered
// tree by tree; once that has cost as much as carrying all rows forward would have, all rows are, and
// gathering starts from there. So no pattern of retrains costs more than twice the better way.
class ScoreKeeper {
 public:
  ScoreKeeper(const Forest& forest, int n_threads);

  // From here on trees before `first_tree` are final, and scores are asked for just before it.
  void begin_iteration(std::size_t first_tree);

  // scores[k][i] for slots[i]. Several threads may ask at once.
  std::vector<Array<double>> gather(std::span<const Slot> slots);
  // Leaf values that takes, for so many rows.
  std::size_t n_looked_up(std::size_t n_rows) const { return n_rows * (first_tree_ - carried_to_); }

 private:
  void carry_all();
  void make_tables();

  const Forest& forest_;
  int n_threads_;
  std::size_t k_trees_;
  std::size_t first_tree_ = 0;
  std::size_t carried_to_ = 0;            // all_ holds the scores before this tree
  std::vector<Array<double>> all_;        // empty until it pays
  std::atomic<std::size_t> gathered_{0};  // leaf values looked up since the last carry
  std::mutex tables_lock_;
  std::vector<std::vector<double>> tables_;  // leaf values by leaf id, of the trees that are final
};

}  // namespace graftboost
