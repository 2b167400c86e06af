// An update up to the point at which rows are booked.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/models.hpp"
#include "tests/row_changes.hpp"
#include "update/booking.hpp"
#include "update/changed_rows.hpp"
#include "update/node_undo.hpp"
#include "update/update_context.hpp"

namespace graftboost::testing {

// Owns a model with an update under way: some rows are marked as removed, and others were appended.
// If `lays_out`, all rare columns are laid out, whether enough rows have them or not.
class StartedUpdate {
 public:
  StartedUpdate(const ModelOptions& options, std::size_t n_rows, std::size_t n_added,
                double share_removed, std::uint64_t seed, bool lays_out = false, UpdateRule by = {})
      : rows(random_rows(options, n_rows + n_added, seed)),
        model(fit_state(rows.slice(0, n_rows), options)),
        before(model),
        rule(by),
        undo(std::make_unique<NodeUndo>(model)) {
    Random random(seed + 7);
    for (RowShard& shard : model.shards) {
      std::vector<Slot> removed;
      for (Slot slot = 0; slot < shard.size(); ++slot)
        if (random.chance(share_removed)) removed.push_back(slot);
      for (const Slot slot : removed)
        model.target_sums.add(shard.rows.target[slot], -shard.weight_of(slot));
      shard.begin_update(std::move(removed));
    }
    if (n_added != 0) {
      const TrainingRows added = rows.slice(n_rows, n_rows + n_added);
      model.shards.append(*model.bins, added.sample(), model.loss.kind, 1);
    }
    for (RowShard& shard : model.shards) {
      shard.put_on_grids(model.loss, shard.n_before());
      model.add_targets(shard, shard.n_before());
      shard.extend_trees();
    }
    model.base_scores = model.loss.base_scores(model.target_sums);
    LaidOutColumns laid_out;
    if (lays_out) laid_out = lay_out_rare_columns(model);
    n_laid_out = laid_out.columns.size();
    changed = std::make_unique<ChangedRows>(model, 1);
    if (lays_out) changed->set_new_cells(model, laid_out.cells);
    context = std::make_unique<UpdateContext>(model, rule, *undo, 1);
  }

  // Books the sums of a tree, and places the added rows, with random gradients. Returns the scores
  // that this adds.
  std::vector<double> book_sums(std::size_t t, Random& random, UpdateCounts& counts) {
    GradientArray gradients(model.loss.records_wide(), changed->n_added());
    const Gradient most = model.loss.largest_gradient();
    for (std::size_t i = 0; i < changed->n_added(); ++i)
      gradients.set(i, std::clamp(static_cast<Gradient>(random.normal() * most / 4), -most, most));
    std::vector<double> scores(changed->n_added());
    graftboost::book_sums(*context, t, *changed, gradients.data(), scores, counts);
    context->variance[t] = model.variance_in(t);
    for (std::size_t i = changed->n_removed(); i < changed->size(); ++i) {
      const auto [shard, slot] = changed->location(i);
      model.shards[shard].place(t, slot, changed->leaf(t, i),
                                changed->recorded_in(t, model.loss.kind).gradient[i]);
    }
    return scores;
  }

  TrainingRows rows;
  ModelState model;
  const ModelState before;
  const UpdateRule rule;
  std::unique_ptr<NodeUndo> undo;
  std::unique_ptr<ChangedRows> changed;
  std::unique_ptr<UpdateContext> context;
  std::size_t n_laid_out = 0;
};

// Models of different kinds, for updates.
inline std::vector<ModelOptions> various_models() {
  ModelOptions plain, weighted, grouped, trimmed;
  plain.training.subsample = 0.7;
  weighted.weighted = true;
  weighted.loss = LossKind::squared;
  weighted.n_shards = 2;
  weighted.max_bins = 300;
  grouped.many_columns = true;
  grouped.n_shards = 3;
  trimmed.loss = LossKind::softmax;
  trimmed.n_classes = 3;
  trimmed.training.subsample = 0.6;
  trimmed.histogram_memory = 60'000;
  trimmed.training.n_estimators = 2;
  return {plain, weighted, grouped, trimmed};
}

}  // namespace graftboost::testing
