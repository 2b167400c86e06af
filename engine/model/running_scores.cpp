#include "model/running_scores.hpp"

#include "core/parallel.hpp"

namespace graftboost {

ScoreKeeper::ScoreKeeper(const Forest& forest, int n_threads)
    : forest_(forest),
      n_threads_(n_threads),
      k_trees_(static_cast<std::size_t>(forest.trees_per_iteration())) {}

void ScoreKeeper::begin_iteration(std::size_t first_tree) {
  first_tree_ = first_tree;
  if (gathered_.load() > forest_.rows.size() * (first_tree_ - carried_to_)) carry_all();
}

void ScoreKeeper::make_tables() {
  std::lock_guard lock(tables_lock_);
  while (tables_.size() < first_tree_)
    tables_.push_back(forest_.trees[tables_.size()].leaf_values());
}

void ScoreKeeper::carry_all() {
  make_tables();
  const std::size_t n = forest_.rows.size();
  if (all_.empty()) {
    for (std::size_t k = 0; k < k_trees_; ++k) {
      all_.emplace_back(n);
      all_[k].fill(forest_.base_scores[k]);
    }
  }
  constexpr std::size_t rows_together = 4096;
  parallel_blocks(n_threads_, n, rows_together, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = carried_to_; t < first_tree_; ++t) {
      double* scores = all_[t % k_trees_].data();
      const double* values = tables_[t].data();
      forest_.states[t].leaf_ids.visit([&](const auto* ids) {
        for (std::size_t r = begin; r < end; ++r) scores[r] += values[ids[r]];
      });
    }
  });
  carried_to_ = first_tree_;
  gathered_ = 0;
}

std::vector<Array<double>> ScoreKeeper::gather(std::span<const Slot> slots) {
  make_tables();
  std::vector<Array<double>> scores;
  for (std::size_t k = 0; k < k_trees_; ++k) {
    scores.emplace_back(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      scores[k][i] = all_.empty() ? forest_.base_scores[k] : all_[k][slots[i]];
    }
  }
  for (std::size_t t = carried_to_; t < first_tree_; ++t) {
    double* to = scores[t % k_trees_].data();
    const double* values = tables_[t].data();
    forest_.states[t].leaf_ids.visit([&](const auto* ids) {
      for (std::size_t i = 0; i < slots.size(); ++i) to[i] += values[ids[slots[i]]];
    });
  }
  gathered_ += n_looked_up(slots.size());
  return scores;
}

}  // namespace graftboost
