#include "model/running_terms.hpp"

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// Rows in order are read faster than single ones: as many rows cost this share.
constexpr double carrying = 0.4;

}  // namespace

RunningTerms::RunningTerms(const ModelState& model, int n_threads)
    : model_(model),
      n_threads_(n_threads),
      k_trees_(static_cast<std::size_t>(model.trees_per_iteration())),
      terms_(model, model.n_iterations(), true) {}

void RunningTerms::begin_iteration(std::size_t first_tree, std::size_t n_rows_left) {
  first_tree_ = first_tree;
  if (static_cast<double>(n_rows_left) > carrying * static_cast<double>(model_.n_rows()))
    carry_all();
}

void RunningTerms::make_tables() {
  std::lock_guard lock(tables_lock_);
  while (tables_.size() < first_tree_) {
    std::vector<double> terms = terms_.of_leaves(model_.nodes.tree(tables_.size()));
    // Rows that are being removed may have the ids of leaves that are no more. Nobody asks for their
    // terms, but those of all rows are carried forward.
    terms.resize(static_cast<std::size_t>(model_.params.max_leaf_nodes), terms_.of(0));
    tables_.push_back(std::move(terms));
  }
}

void RunningTerms::carry_all() {
  make_tables();
  const bool is_new = carried_.empty();
  if (is_new) carried_.resize(model_.shards.size());
  for (std::size_t s = 0; s < model_.shards.size(); ++s) {
    const RowShard& shard = model_.shards[s];
    for (std::size_t k = 0; is_new && k < k_trees_; ++k) {
      carried_[s].emplace_back(shard.size());
      carried_[s][k].fill(terms_.of(model_.base_scores[k]));
    }
    constexpr std::size_t rows_together = 4096;
    parallel_blocks(n_threads_, shard.size(), rows_together,
                    [&](std::size_t begin, std::size_t end) {
                      for (std::size_t t = carried_to_; t < first_tree_; ++t)
                        terms_.pass(shard.trees[t].leaf_ids, tables_[t],
                                    carried_[s][t % k_trees_].data(), begin, end);
                    });
  }
  carried_to_ = first_tree_;
}

std::vector<Array<double>> RunningTerms::gather(std::size_t s, std::span<const Slot> slots) {
  make_tables();
  std::vector<Array<double>> terms;
  for (std::size_t k = 0; k < k_trees_; ++k) {
    const double base = terms_.of(model_.base_scores[k]);
    terms.emplace_back(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i)
      terms[k][i] = carried_.empty() ? base : carried_[s][k][slots[i]];
  }
  for (std::size_t t = carried_to_; t < first_tree_; ++t) {
    double* to = terms[t % k_trees_].data();
    const double* of_leaves = tables_[t].data();
    model_.shards[s].trees[t].leaf_ids.visit([&](const auto* ids) {
      for (std::size_t i = 0; i < slots.size(); ++i)
        to[i] = terms_.combine(to[i], of_leaves[ids[slots[i]]]);
    });
  }
  return terms;
}

}  // namespace graftboost
