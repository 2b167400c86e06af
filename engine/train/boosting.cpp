#include "train/boosting.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>

#include "core/parallel.hpp"
#include "model/score_terms.hpp"
#include "train/growing_rows.hpp"
#include "update/histogram_budget.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_together = 4096;

// Calls block(shard, begin, end) for blocks of the rows of all shards.
template <class Block>
void parallel_rows(const Shards& shards, int n_threads, Block&& block) {
  for (std::size_t s = 0; s < shards.size(); ++s) {
    parallel_blocks(n_threads, shards[s].size(), rows_together,
                    [&](std::size_t begin, std::size_t end) { block(s, begin, end); });
  }
}

// One run of boosting over the rows of a model. `Sums` are the cells of histograms.
template <class Sums>
class Booster {
 public:
  Booster(ModelState& model, int n_threads)
      : model_(model),
        n_threads_(n_threads),
        k_trees_(static_cast<std::size_t>(model.trees_per_iteration())),
        growing_(growing_params(model)),
        cells_(GrowingCells::of_rows(model.shards)),
        score_terms_(model, model.params.n_estimators, model.params.updatable),
        terms_(model.shards.size()) {
    for (std::size_t s = 0; s < model.shards.size(); ++s) {
      for (std::size_t k = 0; k < k_trees_; ++k) {
        terms_[s].emplace_back(model.shards[s].size());
        terms_[s].back().fill(score_terms_.of(model.base_scores[k]));
      }
    }
  }

  void iterate() {
    const std::size_t first = model_.nodes.size();
    squares_.assign(k_trees_, 0);
    record_gradients(first);
    // The trees of an iteration do not depend on each other: as many as there are threads grow side
    // by side. The remaining ones grow one after the other, with all threads in the tree.
    model_.nodes.resize(first + k_trees_);
    const std::size_t side_by_side = k_trees_ - k_trees_ % static_cast<std::size_t>(n_threads_);
    parallel(n_threads_, side_by_side, [&](std::size_t k) { grow(first, k, 1); });
    for (std::size_t k = side_by_side; k < k_trees_; ++k) grow(first, k, n_threads_);
    if (model_.params.updatable) return;
    for (RowShard& shard : model_.shards)
      for (std::size_t t = first; t < first + k_trees_; ++t) shard.trees[t] = {};
  }

 private:
  // What one tree needs to grow.
  struct Workplace {
    GrowingRows<Sums> rows;
    TreeGrower<Sums> grower;
  };
  using WorkplacePtr = std::unique_ptr<Workplace>;

  WorkplacePtr borrow_workplace(int n_threads) {
    std::lock_guard lock(workplaces_lock_);
    auto& idle = n_threads == 1 ? for_one_thread_ : for_all_threads_;
    if (idle.empty()) {
      return WorkplacePtr(
          new Workplace{GrowingRows<Sums>(model_.shards, cells_, n_threads),
                        TreeGrower<Sums>(cells_.active(), model_.loss, growing_, n_threads)});
    }
    WorkplacePtr workplace = std::move(idle.back());
    idle.pop_back();
    return workplace;
  }
  void return_workplace(WorkplacePtr workplace, int n_threads) {
    std::lock_guard lock(workplaces_lock_);
    (n_threads == 1 ? for_one_thread_ : for_all_threads_).push_back(std::move(workplace));
  }

  void record_gradients(std::size_t first) {
    for (RowShard& shard : model_.shards) {
      const std::size_t n = shard.size();
      shard.trees.resize(first + k_trees_);
      for (std::size_t t = first; t < first + k_trees_; ++t) {
        shard.trees[t].leaf_ids = LeafIds(n, model_.params.max_leaf_nodes);
        shard.trees[t].recorded = GradientArray(model_.loss.records_wide());
        shard.trees[t].recorded.reserve(n + room_to_grow(n));
        shard.trees[t].recorded.resize(n);
      }
    }
    parallel_rows(model_.shards, n_threads_,
                  [&](std::size_t s, std::size_t begin, std::size_t end) {
                    RowShard& shard = model_.shards[s];
                    std::vector<const double*> terms;
                    std::vector<GradientPointer> gradients;
                    for (std::size_t k = 0; k < k_trees_; ++k) {
                      terms.push_back(terms_[s][k].data());
                      gradients.push_back(shard.trees[first + k].recorded.data());
                    }
                    RecordScratch scratch(k_trees_);
                    score_terms_.record(model_.recording_rows(s, first), terms, gradients, begin,
                                        end, ScoresFromLeaves(model_, s, first), scratch);
                    // With a subsample, choose_rows() adds up what is left.
                    if (!model_.params.updatable || model_.params.subsample < 1) return;
                    for (std::size_t k = 0; k < k_trees_; ++k)
                      add_squares(first + k, shard, begin, end);
                  });
  }

  void add_squares(std::size_t t, const RowShard& shard, std::size_t begin, std::size_t end) {
    const __int128 squares = sum_of_squares(shard.recorded_in(t, model_.loss.kind), begin, end);
    const std::lock_guard lock(squares_lock_);
    squares_[t % k_trees_] += squares;
  }

  void grow(std::size_t first, std::size_t k, int n_threads) {
    const std::size_t t = first + k;
    WorkplacePtr workplace = borrow_workplace(n_threads);
    GrowingRows<Sums>& rows = workplace->rows;
    rows.begin(t, model_.loss.kind);
    for (std::size_t s = 0; s < model_.shards.size(); ++s) choose_rows(t, s, rows, n_threads);
    TreeNodes& nodes = model_.nodes[t];
    nodes.tree = workplace->grower.grow(rows, model_.params.max_leaf_nodes);
    for (std::size_t s = 0; s < model_.shards.size(); ++s)
      place_rows(t, s, rows, terms_[s][k].data(), n_threads);
    if (model_.params.updatable) {
      TreeHistograms<Sums> histograms = workplace->grower.take_histograms();
      trim_histograms(model_, nodes.tree, histograms);
      nodes.histograms = std::move(histograms);
      nodes.bounds = workplace->grower.take_bounds();
      nodes.squares = squares_[k];
    }
    return_workplace(std::move(workplace), n_threads);
  }

  // Starts the growth with the tree's subsample. The rows outside it record nothing.
  void choose_rows(std::size_t t, std::size_t s, GrowingRows<Sums>& rows, int n_threads) {
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

  // Writes the leaf of every row first and brings the terms past the tree afterwards: leaf ids are
  // written in random order but fit in cache, which terms would not.
  void place_rows(std::size_t t, std::size_t s, const GrowingRows<Sums>& rows, double* terms,
                  int n_threads) {
    const Tree& tree = model_.nodes[t].tree;
    RowShard& shard = model_.shards[s];
    LeafIds& leaf_ids = shard.trees[t].leaf_ids;
    leaf_ids.visit([&]<class LeafId>(LeafId* ids) {
      parallel(n_threads, tree.leaves.size(), [&](std::size_t leaf) {
        for (const Slot row : rows.rows_of(s, tree.leaves[leaf]))
          ids[row] = static_cast<LeafId>(leaf);
        for (const Slot row : rows.outside_of(s, tree.leaves[leaf]))
          ids[row] = static_cast<LeafId>(leaf);
      });
    });
    const std::vector<double> of_leaves = score_terms_.of_leaves(tree);
    parallel_blocks(n_threads, shard.size(), rows_together,
                    [&](std::size_t begin, std::size_t end) {
                      score_terms_.pass(leaf_ids, of_leaves, terms, begin, end);
                    });
  }

  ModelState& model_;
  int n_threads_;
  std::size_t k_trees_;
  GrowingParams growing_;
  GrowingCells cells_;
  ScoreTerms score_terms_;
  std::vector<std::vector<Array<double>>> terms_;  // per shard and tree of an iteration
  std::mutex squares_lock_;
  std::vector<__int128> squares_;  // of what rows record, per tree of the iteration
  std::mutex workplaces_lock_;
  std::vector<WorkplacePtr> for_one_thread_, for_all_threads_;
};

// The mean loss of the validation rows. Each row's loss is rounded to a grid so that the sum is one
// of integers and does not depend on the order of rows.
double validation_loss(const ModelState& model, const Validation& validation) {
  constexpr double grid = 0x1p-30;
  __int128 sum = 0;
  double total = 0;
  std::vector<double> scores(validation.scores.size());
  for (std::size_t r = 0; r < validation.rows.size(); ++r) {
    for (std::size_t k = 0; k < scores.size(); ++k) scores[k] = validation.scores[k][r];
    const double weight = validation.weight.empty() ? 1.0 : validation.weight[r];
    const double part = weight * model.loss.of_row(validation.rows.target[r], scores) / grid;
    sum += static_cast<__int128>(std::nearbyint(std::min(part, 0x1p62)));
    total += weight;
  }
  const double unit =
      model.loss.kind == LossKind::squared ? model.loss.scale * model.loss.scale : 1;
  return static_cast<double>(sum) * grid / total * unit;
}

void add_newest_trees(const ModelState& model, Validation& validation, int n_threads) {
  const std::size_t k_trees = validation.scores.size();
  const std::size_t first = model.nodes.size() - k_trees;
  parallel_blocks(n_threads, validation.rows.size(), rows_together,
                  [&](std::size_t begin, std::size_t end) {
                    for (std::size_t k = 0; k < k_trees; ++k) {
                      const Tree& tree = model.nodes.tree(first + k);
                      for (std::size_t r = begin; r < end; ++r) {
                        const NodeIndex leaf = tree.route([&](std::uint32_t column) {
                          return validation.rows.code(static_cast<Slot>(r), column);
                        });
                        validation.scores[k][r] += tree[leaf].value;
                      }
                    }
                  });
}

template <class Sums>
void boost(ModelState& model, Validation* validation, const Stopping& stopping,
           const OnIteration& on_iteration, int n_threads) {
  Booster<Sums> booster(model, n_threads);
  int best = 0;
  double best_loss = std::numeric_limits<double>::infinity();
  for (int done = 1; done <= model.params.n_estimators; ++done) {
    booster.iterate();
    double loss = std::numeric_limits<double>::quiet_NaN();
    if (validation != nullptr) {
      add_newest_trees(model, *validation, n_threads);
      loss = validation_loss(model, *validation);
      model.validation_losses.push_back(loss);
      if (loss < best_loss - stopping.tolerance) best = done, best_loss = loss;
    }
    const bool told_to_stop = on_iteration && on_iteration(done, loss);
    if (told_to_stop || (stopping.patience > 0 && done - best >= stopping.patience)) break;
  }
  if (validation != nullptr && stopping.patience > 0) {
    const std::size_t n_kept =
        static_cast<std::size_t>(std::max(best, 1) * model.trees_per_iteration());
    model.nodes.resize(n_kept);
    for (RowShard& shard : model.shards) shard.trees.resize(n_kept);
  }
  if (!model.params.updatable)
    for (RowShard& shard : model.shards) shard.trees.clear();
}

// Lays out the columns, of those without cuts, that enough rows have, and no others.
void lay_out_frequent_columns(ModelState& model) {
  WipedVector<std::uint32_t> counts, columns;
  for (const RowShard& shard : model.shards) shard.rows.count_uncut_columns(counts);
  for (std::uint32_t column = 0; column < counts.size(); ++column) {
    if (counts[column] >= static_cast<std::uint32_t>(model.params.min_samples_leaf))
      columns.push_back(column);
  }
  if (std::ranges::is_permutation(columns, model.layout().added())) return;
  CodeLayout chosen(*model.bins);
  chosen.add(columns);
  for (RowShard& shard : model.shards) {
    CodeLayout next = chosen;
    shard.rows.exchange_layout(next);
  }
}

}  // namespace

GrowingParams growing_params(const ModelState& model) {
  return {model.gain_params(), model.params.learning_rate, model.params.updatable};
}

void train(ModelState& model, Validation* validation, const Stopping& stopping,
           const OnIteration& on_iteration, int n_threads) {
  lay_out_frequent_columns(model);
  const auto is_weighted = [](const RowShard& shard) { return !shard.rows.weight.empty(); };
  const bool packed = std::none_of(model.shards.begin(), model.shards.end(), is_weighted) &&
                      static_cast<std::int64_t>(model.n_rows()) <= PackedSums::most_rows;
  const auto run = packed ? boost<PackedSums> : boost<WideSums>;
  run(model, validation, stopping, on_iteration, n_threads);
  model.params.n_estimators = model.n_iterations();  // for refits
}

}  // namespace graftboost
