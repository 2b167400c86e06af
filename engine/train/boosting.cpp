#include "train/boosting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <type_traits>

#include "core/parallel.hpp"
#include "train/boosting_rows.hpp"
#include "train/growing_rows.hpp"
#include "update/histogram_budget.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_together = 4096;

// Cells in which some row of the model is counted; empty if all cells of the layout are used.
WipedVector<std::uint32_t> count_rows_in_cells(ModelState& model) {
  WipedVector<std::uint32_t> counts = GrowingCells::count_rows(model.shards);
  if (model.elsewhere && (model.elsewhere->facts().has_sparse != 0 || !counts.empty())) {
    counts.resize(model.layout().histogram_size());
    model.elsewhere->add_cell_counts(counts);
  }
  return counts;
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
        rows_in_cells_(count_rows_in_cells(model)),
        cells_(GrowingCells::of_rows(model.shards, rows_in_cells_)),
        rows_(model, n_threads) {
    if (model.elsewhere) {
      model.elsewhere->begin_training(model.loss, model.params, std::is_same_v<Sums, PackedSums>,
                                      model.base_scores,
                                      rows_in_cells_.empty() ? nullptr : &rows_in_cells_);
    }
  }

  void iterate() {
    const std::size_t first = model_.nodes.size();
    rows_.record(first);
    model_.nodes.resize(first + k_trees_);
    if (model_.elsewhere) {
      model_.elsewhere->record(first);
      model_.elsewhere->rounds().together(k_trees_, [&](std::size_t k) { grow(first + k, 1); });
    } else {
      // The trees of an iteration do not depend on each other: as many as there are threads grow
      // side by side. The remaining ones grow one after the other, with all threads in the tree.
      const std::size_t side_by_side = k_trees_ - k_trees_ % static_cast<std::size_t>(n_threads_);
      parallel(n_threads_, side_by_side, [&](std::size_t k) { grow(first + k, 1); });
      for (std::size_t k = side_by_side; k < k_trees_; ++k) grow(first + k, n_threads_);
    }
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
          new Workplace{GrowingRows<Sums>(model_.shards, cells_, n_threads, model_.elsewhere.get()),
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

  void grow(std::size_t t, int n_threads) {
    WorkplacePtr workplace = borrow_workplace(n_threads);
    auto& [rows, grower] = *workplace;
    if (model_.elsewhere) model_.elsewhere->start_tree(rows.growth(), t);
    rows_.start(t, rows, n_threads);
    TreeNodes& nodes = model_.nodes[t];
    nodes.tree = grower.grow(rows, model_.params.max_leaf_nodes);
    rows_.place(t, rows, grower.leaf_nodes(), n_threads);
    if (model_.elsewhere)
      model_.elsewhere->end_tree(rows.growth(), t, nodes.tree, grower.leaf_nodes());
    if (model_.params.updatable) {
      TreeHistograms<Sums> histograms = grower.take_histograms();
      trim_histograms(model_, nodes.tree, histograms);
      nodes.histograms = std::move(histograms);
      nodes.bounds = grower.take_bounds();
      nodes.squares = rows_.squares(t) + rows.root_elsewhere().squares;
    }
    return_workplace(std::move(workplace), n_threads);
  }

  ModelState& model_;
  int n_threads_;
  std::size_t k_trees_;
  GrowingParams growing_;
  WipedVector<std::uint32_t> rows_in_cells_;
  GrowingCells cells_;
  BoostingRows rows_;
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
  if (model.elsewhere) model.elsewhere->end_training(model.nodes.size());
  if (!model.params.updatable)
    for (RowShard& shard : model.shards) shard.trees.clear();
}

// Lays out the columns, of those without cuts, that enough rows have, and no others.
void lay_out_frequent_columns(ModelState& model) {
  WipedVector<std::uint32_t> counts, columns;
  for (const RowShard& shard : model.shards) shard.rows.count_uncut_columns(counts);
  if (model.elsewhere && model.elsewhere->facts().has_sparse != 0)
    model.elsewhere->add_column_counts(counts, model.bins->n_features());
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
  if (model.elsewhere) {
    model.elsewhere->set_layout(columns);
    model.elsewhere->read_facts();
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
  const bool is_weighted_elsewhere = model.elsewhere && model.elsewhere->facts().is_weighted != 0;
  const bool packed = std::none_of(model.shards.begin(), model.shards.end(), is_weighted) &&
                      !is_weighted_elsewhere &&
                      static_cast<std::int64_t>(model.n_rows()) <= PackedSums::most_rows;
  const auto run = packed ? boost<PackedSums> : boost<WideSums>;
  run(model, validation, stopping, on_iteration, n_threads);
  model.params.n_estimators = model.n_iterations();  // for refits
}

}  // namespace graftboost
