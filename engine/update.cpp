#include "update.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "parallel.hpp"
#include "tree_update.hpp"

namespace graftboost {
namespace {

// When this share of all row visits of a refit has gone, or will, into retraining nodes, a refit is
// cheaper: a retrained row costs more than a refitted one, because its score has to be gathered.
constexpr double most_retrained = 0.5;

// Beyond one row in so many, booking the changed rows alone costs as much as counting all again.
constexpr double largest_change = 4;

// Goes through the iterations; the trees of one do not depend on each other.
template <class Sums>
bool update_all(Forest& forest, const Change& change, const ToleranceRule& rule,
                UpdateCounts& counts, int n_threads) {
  const auto k_trees = static_cast<std::size_t>(forest.trees_per_iteration());
  const std::size_t n_added = change.added.size();
  ScoreKeeper scores(forest, n_threads);
  std::vector<std::unique_ptr<TreeUpdater<Sums>>> updaters;
  const auto n_updaters =
      std::min<std::size_t>(k_trees, static_cast<std::size_t>(std::max(n_threads, 1)));
  for (int i = 0; i < std::max(n_threads, 1); ++i) {
    updaters.push_back(
        std::make_unique<TreeUpdater<Sums>>(forest, change, rule, scores, n_threads));
  }
  std::vector<Array<double>> added_scores(k_trees);
  std::vector<Array<Gradient>> added_gradients(k_trees);
  Array<std::int32_t> targets(n_added);
  std::vector<const double*> score_of;
  std::vector<Gradient*> gradient_of;
  for (std::size_t i = 0; i < n_added; ++i) targets[i] = forest.rows.target[change.added[i]];
  for (std::size_t k = 0; k < k_trees; ++k) {
    added_scores[k].resize(n_added);
    added_scores[k].fill(forest.base_scores[k]);
    added_gradients[k].resize(n_added);
    score_of.push_back(added_scores[k].data());
    gradient_of.push_back(added_gradients[k].data());
  }
  const double all_visits = static_cast<double>(forest.rows.size() - change.removed.size()) *
                            static_cast<double>(forest.trees.size());
  // What is removed is known beforehand, so all trees can be looked at side by side. What an added row
  // records depends on what the trees before have become.
  std::vector<std::optional<typename TreeUpdater<Sums>::Failed>> failed(forest.trees.size());
  if (n_added == 0) {
    parallel(n_threads, updaters.size(), [&](std::size_t u) {
      for (std::size_t t = u; t < failed.size(); t += updaters.size())
        failed[t] = updaters[u]->book_and_check(t);
    });
  }
  for (std::size_t first = 0; first < forest.trees.size(); first += k_trees) {
    scores.begin_iteration(first);
    if (n_added != 0)
      forest.loss.record({targets.data(), n_added}, score_of, gradient_of, 0, n_added);
    for (std::size_t k = 0; k < k_trees; ++k) {
      for (std::size_t i = 0; i < n_added; ++i) {
        forest.states[first + k].recorded[change.added[i]] = added_gradients[k][i];
      }
    }
    // Each updater takes every n-th class, so that which tree is updated by whom is fixed.
    parallel(n_threads, n_updaters, [&](std::size_t u) {
      for (std::size_t k = u; k < k_trees; k += n_updaters) {
        const std::size_t t = first + k;
        if (n_added != 0) failed[t] = updaters[u]->book_and_check(t);
        if (failed[t]) updaters[u]->mend(t, *failed[t]);
      }
    });
    for (std::size_t k = 0; k < k_trees && n_added != 0; ++k) {
      const std::vector<double> values = forest.trees[first + k].leaf_values();
      forest.states[first + k].leaf_ids.visit([&](const auto* ids) {
        for (std::size_t i = 0; i < n_added; ++i)
          added_scores[k][i] += values[ids[change.added[i]]];
      });
    }
    double visits = 0;
    for (const auto& updater : updaters)
      visits += static_cast<double>(updater->counts.rows_retrained);
    const double done =
        static_cast<double>(first + k_trees) / static_cast<double>(forest.trees.size());
    if (done >= 0.05 && visits > most_retrained * done * all_visits) return false;
  }
  for (const auto& updater : updaters) counts += updater->counts;
  return true;
}

}  // namespace

bool update_trees(Forest& forest, const Change& change, const ToleranceRule& rule,
                  UpdateCounts& counts, int n_threads) {
  if (forest.trees.empty()) return true;
  const bool packed = std::holds_alternative<KeptSums<PackedSums>>(forest.states[0].sums);
  return packed ? update_all<PackedSums>(forest, change, rule, counts, n_threads)
                : update_all<WideSums>(forest, change, rule, counts, n_threads);
}

void restore_sums(Forest& forest, int n_threads) {
  const auto stale = [](const TreeState& state) { return !state.counted; };
  if (std::none_of(forest.states.begin(), forest.states.end(), stale)) return;
  const Change none;
  const ToleranceRule rule;
  ScoreKeeper scores(forest, n_threads);
  parallel(n_threads, forest.trees.size(), [&](std::size_t t) {
    std::visit(
        [&]<class Sums>(KeptSums<Sums>&) {
          TreeUpdater<Sums>(forest, none, rule, scores, 1).restore(t);
        },
        forest.states[t].sums);
  });
}

namespace {

std::vector<Slot> slots_of_ids(const Forest& forest, std::span<const RowId> ids) {
  std::vector<Slot> slots;
  for (const RowId id : ids) {
    const auto slot = forest.index.find(forest.rows.ids, id);
    if (!slot) {
      throw std::invalid_argument("row_ids: the model holds no row with id " + std::to_string(id));
    }
    slots.push_back(*slot);
  }
  std::sort(slots.begin(), slots.end());
  const auto twice = std::adjacent_find(slots.begin(), slots.end());
  if (twice != slots.end()) {
    throw std::invalid_argument("row_ids: the id " + std::to_string(forest.rows.ids[*twice]) +
                                " is to be removed twice; name each row once");
  }
  return slots;
}

template <class Value>
void check_added(const Forest& forest, const Sample<Value>& added,
                 const std::vector<Slot>& removed) {
  std::vector<RowId> ids(added.ids.begin(), added.ids.end());
  for (const RowId id : ids) {
    const auto slot = forest.index.find(forest.rows.ids, id);
    if (slot && !std::binary_search(removed.begin(), removed.end(), *slot)) {
      throw std::invalid_argument("row_ids: the model already holds a row with id " +
                                  std::to_string(id) +
                                  "; remove it in the same update, or choose another id");
    }
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) {
    throw std::invalid_argument("row_ids: the id " + std::to_string(*twice) +
                                " is given to two rows");
  }
  for (const double y : added.y) forest.loss.target_on_grid(y);
  if (!forest.rows.weight.empty()) {
    for (const double weight : added.weight) forest.loss.weight_on_grid(weight);
  }
}

// Whether the sums as they are made cannot hold the rows to come.
bool needs_other_sums(const Forest& forest, std::size_t n_rows) {
  const bool packed = std::holds_alternative<KeptSums<PackedSums>>(forest.states[0].sums);
  return packed && (!forest.rows.raw_weight.empty() ||
                    static_cast<std::int64_t>(n_rows) > PackedSums::most_rows);
}

void grow_classes(Forest& forest, std::span<const std::int32_t> relabel, int n_classes) {
  forest.loss.kind = LossKind::softmax;
  forest.loss.n_classes = n_classes;
  forest.target_sums = TargetSums(n_classes);
  for (std::size_t r = 0; r < forest.rows.size(); ++r) {
    std::int32_t& target = forest.rows.target[r];
    target = relabel[static_cast<std::size_t>(target)];
    forest.target_sums.add(target, forest.rows.weight.empty() ? 1 : forest.rows.weight[r]);
  }
}

void vacate(Forest& forest, const std::vector<Slot>& removed) {
  if (removed.empty()) return;
  const std::size_t left = forest.rows.size() - removed.size();
  for (Slot slot = static_cast<Slot>(left); slot < forest.rows.size(); ++slot) {
    if (!std::binary_search(removed.begin(), removed.end(), slot))
      forest.index.erase(forest.rows.ids, slot);
  }
  const std::vector<Rows::Move> moves = forest.rows.vacate(removed);
  for (const Rows::Move& move : moves) forest.index.insert(forest.rows.ids, move.to);
  for (TreeState& state : forest.states) {
    move_and_shrink(state.recorded, moves, left);
    move_and_shrink(state.leaf_ids.narrow, moves, left);
    move_and_shrink(state.leaf_ids.wide, moves, left);
  }
}

}  // namespace

template <class Value>
UpdateCounts update(Forest& forest, const Sample<Value>* added, std::span<const RowId> removed,
                    std::span<const std::int32_t> relabel, int n_classes, const ToleranceRule& rule,
                    int n_threads) {
  std::lock_guard lock(forest.change_lock);
  if (!forest.index.built()) forest.index.build(forest.rows.ids);
  Change change;
  change.removed = slots_of_ids(forest, removed);
  if (added != nullptr) check_added(forest, *added, change.removed);
  const std::size_t n_before = forest.rows.size(), n_added = added == nullptr ? 0 : added->x.rows;
  if (n_before + n_added == change.removed.size()) {
    throw std::invalid_argument(
        "row_ids: these are all the rows that the model holds; a model needs at "
        "least one, so add rows in the same update or fit anew");
  }

  // Nothing below is expected to fail.
  UpdateCounts counts;
  const bool grows = forest.loss.kind != LossKind::squared && n_classes > forest.loss.n_classes;
  if (grows) grow_classes(forest, relabel, n_classes);
  for (const Slot slot : change.removed) {
    forest.index.erase(forest.rows.ids, slot);
    forest.target_sums.add(
        forest.rows.target[slot],
        -(forest.rows.weight.empty() ? 1 : std::int64_t{forest.rows.weight[slot]}));
  }
  if (added != nullptr) {
    forest.append(*added, n_threads);
    forest.put_on_grids(n_before);
    for (std::size_t slot = n_before; slot < forest.rows.size(); ++slot) {
      change.added.push_back(static_cast<Slot>(slot));
      forest.index.insert(forest.rows.ids, static_cast<Slot>(slot));
    }
  }
  bool in_place = !grows && !needs_other_sums(forest, forest.rows.size()) &&
                  largest_change * static_cast<double>(change.removed.size() + n_added) <=
                      static_cast<double>(forest.rows.size());
  if (in_place) {
    for (TreeState& state : forest.states) {
      state.recorded.resize(forest.rows.size());
      state.leaf_ids.resize(forest.rows.size());
    }
    forest.base_scores = forest.loss.base_scores(forest.target_sums);
    in_place = update_trees(forest, change, rule, counts, n_threads);
  }
  if (!in_place) forest.states.clear();
  vacate(forest, change.removed);
  if (!in_place) {
    counts = {};
    counts.refitted = true;
    forest.refit(n_threads);
  }
  forest.forget_snapshot();
  return counts;
}

template UpdateCounts update(Forest&, const Sample<float>*, std::span<const RowId>,
                             std::span<const std::int32_t>, int, const ToleranceRule&, int);
template UpdateCounts update(Forest&, const Sample<double>*, std::span<const RowId>,
                             std::span<const std::int32_t>, int, const ToleranceRule&, int);

}  // namespace graftboost
