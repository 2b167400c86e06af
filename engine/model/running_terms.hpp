// Terms of scores of rows before an iteration, from the leaves they are in.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "model/score_terms.hpp"

namespace graftboost {

// Terms are not stored: they follow from the leaves of a row. For few rows they are gathered tree by
// tree. If many rows are asked for, the terms of all rows are carried forward instead, and gathering
// starts from there. Carrying them over some trees costs as much, per tree, as gathering them for a
// certain number of rows. So they are carried as long as more rows than that are still to come,
// which is about the cheapest way whatever the pattern of regrowing.
class RunningTerms {
 public:
  RunningTerms(const ModelState& model, int n_threads);

  const ScoreTerms& terms() const { return terms_; }

  // From here on the trees before `first_tree` are final, and terms are those just before it. From
  // this iteration on, gather() will be asked for about `n_rows_left` rows.
  void begin_iteration(std::size_t first_tree, std::size_t n_rows_left);

  // Whether the terms of all rows were carried forward to this iteration; and these terms.
  bool are_carried() const { return !carried_.empty() && carried_to_ == first_tree_; }
  const Array<double>& carried(std::size_t shard, std::size_t k) const {
    return carried_[shard][k];
  }
  // terms[k][i] of slots[i] of a shard. Several threads may ask at once.
  std::vector<Array<double>> gather(std::size_t shard, std::span<const Slot> slots);
  // How many leaves that takes for so many rows.
  std::size_t n_looked_up(std::size_t n_rows) const { return n_rows * (first_tree_ - carried_to_); }

 private:
  void carry_all();
  void make_tables();

  const ModelState& model_;
  int n_threads_;
  std::size_t k_trees_;
  ScoreTerms terms_;
  std::size_t first_tree_ = 0;
  std::size_t carried_to_ = 0;                       // carried_ are the terms before this tree
  std::vector<std::vector<Array<double>>> carried_;  // per shard and tree of an iteration; or empty
  std::mutex tables_lock_;
  std::vector<std::vector<double>> tables_;  // terms by leaf id, of the final trees
};

}  // namespace graftboost
