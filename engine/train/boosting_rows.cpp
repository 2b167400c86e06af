#include "train/boosting_rows.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_together = 4096;

}  // namespace

BoostingRows::BoostingRows(ModelState& model, int n_threads)
    : model_(model),
      n_threads_(n_threads),
      k_trees_(static_cast<std::size_t>(model.trees_per_iteration())),
      score_terms_(model, model.params.n_estimators, model.params.updatable),
      terms_(model.shards.size()) {
  for (std::size_t s = 0; s < model.shards.size(); ++s) {
    for (std::size_t k = 0; k < k_trees_; ++k) {
      terms_[s].emplace_back(model.shards[s].size());
      terms_[s].back().fill(score_terms_.of(model.base_scores[k]));
    }
  }
}

void BoostingRows::record(std::size_t first) {
  squares_.assign(k_trees_, 0);
  for (std::size_t s = 0; s < model_.shards.size(); ++s) {
    RowShard& shard = model_.shards[s];
    const std::size_t n = shard.size();
    shard.trees.resize(first + k_trees_);
    for (std::size_t t = first; t < first + k_trees_; ++t) {
      shard.trees[t].leaf_ids = LeafIds(n, model_.params.max_leaf_nodes);
      shard.trees[t].recorded = GradientArray(model_.loss.records_wide());
      shard.trees[t].recorded.reserve(n + room_to_grow(n));
      shard.trees[t].recorded.resize(n);
    }
    std::vector<const double*> terms;
    std::vector<GradientPointer> gradients;
    for (std::size_t k = 0; k < k_trees_; ++k) {
      terms.push_back(terms_[s][k].data());
      gradients.push_back(shard.trees[first + k].recorded.data());
    }
    parallel_blocks(n_threads_, n, rows_together, [&](std::size_t begin, std::size_t end) {
      RecordScratch scratch(k_trees_);
      score_terms_.record(model_.recording_rows(s, first), terms, gradients, begin, end,
                          ScoresFromLeaves(model_, s, first), scratch);
      // With a subsample, start() adds up what is left.
      if (!model_.params.updatable || model_.params.subsample < 1) return;
      for (std::size_t k = 0; k < k_trees_; ++k) add_squares(first + k, shard, begin, end);
    });
  }
}

void BoostingRows::add_squares(std::size_t t, const RowShard& shard, std::size_t begin,
                               std::size_t end) {
  const __int128 squares = sum_of_squares(shard.recorded_in(t, model_.loss.kind), begin, end);
  const std::lock_guard lock(squares_lock_);
  squares_[t % k_trees_] += squares;
}

template <class Sums>
void BoostingRows::start(std::size_t t, GrowingRows<Sums>& rows, int n_threads) {
  rows.begin(t, model_.loss.kind);
  for (std::size_t s = 0; s < model_.shards.size(); ++s) start(t, s, rows, n_threads);
}

template <class Sums>
void BoostingRows::start(std::size_t t, std::size_t s, GrowingRows<Sums>& rows, int n_threads) {
  RowShard& shard = model_.shards[s];
  const std::size_t n = shard.size();
  Slot* slots = rows.start(s, n);
  if (model_.params.subsample >= 1) {
    parallel_blocks(n_threads, n, rows_together, [&](std::size_t begin, std::size_t end) {
      std::iota(slots + begin, slots + end, static_cast<Slot>(begin));
    });
    return;
  }
  // Each block of rows is divided where it lies, and the lists are moved together afterwards.
  Slot* outside = rows.start_outside(s, n);
  const GradientPointer recorded = shard.trees[t].recorded.data();
  const Subsample subsample = model_.params.subsample_of(t);
  std::vector<std::size_t> n_chosen(n / rows_together + 1);
  parallel_blocks(n_threads, n, rows_together, [&](std::size_t begin, std::size_t end) {
    std::array<std::int32_t, rows_together> inside;
    subsample.find(shard.rows.ids.data() + begin, end - begin, inside.data());
    recorded.visit(
        [&](auto* of_rows) { keep_marked(of_rows + begin, inside.data(), end - begin); });
    n_chosen[begin / rows_together] =
        divide(inside.data(), begin, end - begin, slots + begin, outside + begin);
    if (model_.params.updatable) add_squares(t, shard, begin, end);
  });
  std::size_t n_inside = 0, n_outside = 0;
  for (std::size_t begin = 0; begin < n; begin += rows_together) {
    const std::size_t size = std::min(rows_together, n - begin);
    const std::size_t chosen = n_chosen[begin / rows_together];
    std::copy_n(slots + begin, chosen, slots + n_inside);
    std::copy_n(outside + begin, size - chosen, outside + n_outside);
    n_inside += chosen;
    n_outside += size - chosen;
  }
  rows.start(s, n_inside);
  rows.start_outside(s, n_outside);
}

template <class Sums>
void BoostingRows::place(std::size_t t, const GrowingRows<Sums>& rows,
                         const std::vector<NodeIndex>& nodes, int n_threads) {
  for (std::size_t s = 0; s < model_.shards.size(); ++s) place(t, s, rows, nodes, n_threads);
}

// Leaf ids first and scores afterwards: leaf ids are written in random order but fit in cache, which
// scores would not.
template <class Sums>
void BoostingRows::place(std::size_t t, std::size_t s, const GrowingRows<Sums>& rows,
                         const std::vector<NodeIndex>& nodes, int n_threads) {
  RowShard& shard = model_.shards[s];
  LeafIds& leaf_ids = shard.trees[t].leaf_ids;
  leaf_ids.visit([&]<class LeafId>(LeafId* ids) {
    parallel(n_threads, nodes.size(), [&](std::size_t leaf) {
      for (const Slot row : rows.rows_of(s, nodes[leaf])) ids[row] = static_cast<LeafId>(leaf);
      for (const Slot row : rows.outside_of(s, nodes[leaf])) ids[row] = static_cast<LeafId>(leaf);
    });
  });
  double* terms = terms_[s][t % k_trees_].data();
  const std::vector<double> of_leaves = score_terms_.of_leaves(model_.nodes.tree(t));
  parallel_blocks(n_threads, shard.size(), rows_together, [&](std::size_t begin, std::size_t end) {
    score_terms_.pass(leaf_ids, of_leaves, terms, begin, end);
  });
}

#define GRAFTBOOST_FOR_SUMS(Sums)                                          \
  template void BoostingRows::start(std::size_t, GrowingRows<Sums>&, int); \
  template void BoostingRows::place(std::size_t, const GrowingRows<Sums>&, \
                                    const std::vector<NodeIndex>&, int);
GRAFTBOOST_FOR_SUMS(PackedSums)
GRAFTBOOST_FOR_SUMS(WideSums)

}  // namespace graftboost
