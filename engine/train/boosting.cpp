#include "train/boosting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "update/histogram_budget.hpp"
#include "core/parallel.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_together = 4096;

std::int64_t largest_weight(const RowTable& rows) {
  return rows.weight.empty() ? 1 : *std::max_element(rows.weight.begin(), rows.weight.end());
}

// One run of boosting over a forest's rows. `Sums` is what a histogram cell is made of.
template <class Sums>
class Booster {
 public:
  Booster(Forest& forest, int n_threads)
      : forest_(forest),
        n_threads_(n_threads),
        k_trees_(static_cast<std::size_t>(forest.trees_per_iteration())),
        growing_(growing_params(forest)),
        cells_(WorkingCells::of_all_rows(forest.rows)) {
    const std::size_t n = forest.rows.size();
    for (std::size_t k = 0; k < k_trees_; ++k) {
      scores_.emplace_back(n);
      scores_.back().fill(forest.base_scores[k]);
    }
  }

  void iterate() {
    const std::size_t first = forest_.trees.size(), n = forest_.rows.size();
    std::vector<TreeState> states(k_trees_);
    std::vector<const double*> scores;
    std::vector<Gradient*> gradients;
    for (std::size_t k = 0; k < k_trees_; ++k) {
      states[k].leaf_ids = LeafIds(n, forest_.params.max_leaf_nodes);
      states[k].recorded.reserve(n + room_to_grow(n));
      states[k].recorded.resize(n);
      scores.push_back(scores_[k].data());
      gradients.push_back(states[k].recorded.data());
    }
    const std::span<const std::int32_t> targets(forest_.rows.target.data(), n);
    parallel_blocks(n_threads_, n, rows_together, [&](std::size_t begin, std::size_t end) {
      forest_.loss.record(targets, scores, gradients, begin, end);
    });

    // The trees of an iteration do not depend on each other: as many as there are threads grow side
    // by side. What is left over is grown one by one, with all threads in the tree.
    forest_.trees.resize(first + k_trees_);
    const std::size_t side_by_side = k_trees_ - k_trees_ % static_cast<std::size_t>(n_threads_);
    parallel(n_threads_, side_by_side, [&](std::size_t k) { grow(first, k, states[k], 1); });
    for (std::size_t k = side_by_side; k < k_trees_; ++k) grow(first, k, states[k], n_threads_);
    if (forest_.params.updatable) {
      std::move(states.begin(), states.end(), std::back_inserter(forest_.states));
    }
  }

  // The variance of what the trees leave unexplained, in squared units of the scores.
  double residual_variance() const {
    const std::size_t n = forest_.rows.size();
    __int128 sum = 0;
    Gradient residual = 0;
    for (std::size_t r = 0; r < n; ++r) {
      forest_.loss.record_row(forest_.rows.target[r], {&scores_[0][r], 1}, &residual);
      sum += static_cast<__int128>(residual) * residual;
    }
    const double grid = Loss::target_grid;
    return std::max(static_cast<double>(sum) / static_cast<double>(n), 1.0) * (grid * grid);
  }

 private:
  using GrowerPtr = std::unique_ptr<Grower<Sums>>;

  GrowerPtr borrow_grower(int n_threads) {
    std::lock_guard lock(growers_lock_);
    auto& idle = n_threads == 1 ? single_growers_ : shared_growers_;
    if (idle.empty()) {
      return std::make_unique<Grower<Sums>>(forest_.rows, forest_.loss, growing_, cells_,
                                            n_threads);
    }
    GrowerPtr grower = std::move(idle.back());
    idle.pop_back();
    return grower;
  }
  void return_grower(GrowerPtr grower, int n_threads) {
    std::lock_guard lock(growers_lock_);
    (n_threads == 1 ? single_growers_ : shared_growers_).push_back(std::move(grower));
  }

  void grow(std::size_t first, std::size_t k, TreeState& state, int n_threads) {
    const std::size_t t = first + k;
    GrowerPtr grower = borrow_grower(n_threads);
    const std::vector<Slot> outside = choose_rows(t, state, *grower, n_threads);
    const Contributions contributions{
        state.recorded.data(), forest_.rows.weight.empty() ? nullptr : forest_.rows.weight.data(),
        forest_.loss.kind};
    Tree& tree = forest_.trees[t];
    tree = grower->grow(contributions, growing_.max_leaf_nodes);
    state.leaf_ids.visit([&](auto* leaf_ids) {
      place_rows(tree, *grower, outside, leaf_ids, scores_[k].data(), n_threads);
    });
    if (forest_.params.updatable) {
      KeptSums<Sums> kept = grower->take_kept_sums();
      drop_surplus(forest_, tree, kept);
      state.sums = std::move(kept);
      state.watches = grower->take_watches();
    }
    return_grower(std::move(grower), n_threads);
  }

  // Hands the tree's subsample to the grower; returns the rows outside it, which record nothing.
  std::vector<Slot> choose_rows(std::size_t t, TreeState& state, Grower<Sums>& grower,
                                int n_threads) {
    const std::size_t n = forest_.rows.size();
    Slot* slots = grower.start(n);
    if (forest_.params.subsample >= 1) {
      parallel_blocks(n_threads, n, rows_together, [&](std::size_t begin, std::size_t end) {
        std::iota(slots + begin, slots + end, static_cast<Slot>(begin));
      });
      return {};
    }
    std::vector<Slot> outside;
    std::size_t n_inside = 0;
    for (Slot row = 0; row < n; ++row) {
      if (forest_.in_bag(t, forest_.rows.ids[row])) {
        slots[n_inside++] = row;
      } else {
        outside.push_back(row);
        state.recorded[row] = 0;
      }
    }
    grower.start(n_inside);
    return outside;
  }

  // Writes every row's leaf, then adds the leaves' values to the scores in a walk of its own: the ids
  // are written here and there but fit in cache, the scores would not.
  template <class LeafId>
  void place_rows(const Tree& tree, const Grower<Sums>& grower, const std::vector<Slot>& outside,
                  LeafId* leaf_ids, double* scores, int n_threads) {
    parallel(n_threads, tree.leaves.size(), [&](std::size_t leaf) {
      for (const Slot row : grower.slots_of(tree.leaves[leaf]))
        leaf_ids[row] = static_cast<LeafId>(leaf);
    });
    for (const Slot row : outside) {
      const NodeIndex leaf = tree.route([&](std::uint32_t f) { return forest_.rows.code(row, f); });
      leaf_ids[row] = static_cast<LeafId>(tree.nodes[static_cast<std::size_t>(leaf)].leaf);
    }
    const std::vector<double> values = tree.leaf_values();
    parallel_blocks(n_threads, forest_.rows.size(), rows_together,
                    [&](std::size_t begin, std::size_t end) {
                      for (std::size_t r = begin; r < end; ++r) scores[r] += values[leaf_ids[r]];
                    });
  }

  Forest& forest_;
  int n_threads_;
  std::size_t k_trees_;
  GrowingParams growing_;
  WorkingCells cells_;
  std::vector<Array<double>> scores_;
  std::mutex growers_lock_;
  std::vector<GrowerPtr> single_growers_, shared_growers_;
};

// Mean loss over the validation rows. Each row's part is rounded to a grid and the sum is one of
// integers: like everything else it must not depend on the order of rows.
double validation_loss(const Forest& forest, const Validation& validation) {
  constexpr double grid = 0x1p-30;
  __int128 sum = 0;
  double total = 0;
  std::vector<double> scores(validation.scores.size());
  for (std::size_t r = 0; r < validation.rows.size(); ++r) {
    for (std::size_t k = 0; k < scores.size(); ++k) scores[k] = validation.scores[k][r];
    const double weight = validation.weight.empty() ? 1.0 : validation.weight[r];
    const double part = weight * forest.loss.of_row(validation.rows.target[r], scores) / grid;
    sum += static_cast<__int128>(std::nearbyint(std::min(part, 0x1p62)));
    total += weight;
  }
  const double unit =
      forest.loss.kind == LossKind::squared ? forest.loss.scale * forest.loss.scale : 1;
  return static_cast<double>(sum) * grid / total * unit;
}

void add_newest_trees(const Forest& forest, Validation& validation, int n_threads) {
  const std::size_t k_trees = validation.scores.size();
  const std::size_t first = forest.trees.size() - k_trees;
  parallel_blocks(
      n_threads, validation.rows.size(), rows_together, [&](std::size_t begin, std::size_t end) {
        for (std::size_t k = 0; k < k_trees; ++k) {
          const Tree& tree = forest.trees[first + k];
          for (std::size_t r = begin; r < end; ++r) {
            const NodeIndex leaf = tree.route(
                [&](std::uint32_t f) { return validation.rows.code(static_cast<Slot>(r), f); });
            validation.scores[k][r] += tree.nodes[static_cast<std::size_t>(leaf)].value;
          }
        }
      });
}

template <class Sums>
void boost(Forest& forest, Validation* validation, const Stopping& stopping,
           const OnIteration& on_iteration, int n_threads) {
  Booster<Sums> booster(forest, n_threads);
  int best = 0;
  double best_loss = std::numeric_limits<double>::infinity();
  for (int done = 1; done <= forest.params.n_estimators; ++done) {
    booster.iterate();
    double loss = std::numeric_limits<double>::quiet_NaN();
    if (validation != nullptr) {
      add_newest_trees(forest, *validation, n_threads);
      loss = validation_loss(forest, *validation);
      forest.validation_losses.push_back(loss);
      if (loss < best_loss - stopping.tolerance) best = done, best_loss = loss;
    }
    const bool told_to_stop = on_iteration && on_iteration(done, loss);
    if (told_to_stop || (stopping.patience > 0 && done - best >= stopping.patience)) break;
  }
  // Gains grow with the weights, so the noise that they are compared with does too.
  forest.noise = static_cast<double>(forest.target_sums.weight) * forest.loss.weight_unit /
                 static_cast<double>(forest.rows.size());
  if (forest.loss.kind == LossKind::squared) forest.noise *= booster.residual_variance();
  if (validation != nullptr && stopping.patience > 0) {
    const std::size_t keep =
        static_cast<std::size_t>(std::max(best, 1) * forest.trees_per_iteration());
    forest.trees.resize(keep);
    if (forest.params.updatable) forest.states.resize(keep);
  }
}

}  // namespace

GrowingParams growing_params(const Forest& forest) {
  GrowingParams params;
  params.max_leaf_nodes = forest.params.max_leaf_nodes;
  params.learning_rate = forest.params.learning_rate;
  params.keep_sums = forest.params.updatable;
  params.gain = {forest.loss.gradient_unit(),
                  forest.loss.hessian_unit(),
                  forest.l2(),
                  forest.loss.least_hessian,
                  forest.params.min_samples_leaf,
                  forest.loss.largest_gradient() * largest_weight(forest.rows)};
  return params;
}

void train(Forest& forest, Validation* validation, const Stopping& stopping,
           const OnIteration& on_iteration, int n_threads) {
  forest.rows.choose_places(*forest.bins, static_cast<std::size_t>(forest.params.min_samples_leaf));
  const bool packed = forest.rows.weight.empty() &&
                      static_cast<std::int64_t>(forest.rows.size()) <= PackedSums::most_rows;
  const auto run = packed ? boost<PackedSums> : boost<WideSums>;
  run(forest, validation, stopping, on_iteration, n_threads);
  forest.params.n_estimators = forest.n_iterations();  // what a refit is to train
}

}  // namespace graftboost
