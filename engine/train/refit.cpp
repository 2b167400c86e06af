#include "train/refit.hpp"

#include <utility>

#include "core/parallel.hpp"
#include "remote/node_half.hpp"
#include "train/boosting.hpp"

namespace graftboost {

void refit(ModelState& model, int n_threads, const std::function<void(ModelState&)>& change) {
  // Two sets of histograms would take too much memory. If the refit fails, these are counted again.
  for (TreeNodes& nodes : model.nodes) nodes.drop_histograms();
  ModelState next;
  next.bins = model.bins;
  next.loss = model.loss;
  next.params = model.params;
  next.histogram_memory = model.histogram_memory;
  next.shards = Shards(model.shards.size());
  for (std::size_t s = 0; s < model.shards.size(); ++s) next.shards[s].rows = model.shards[s].rows;
  next.elsewhere = model.elsewhere;
  const UndoRemote undo_elsewhere(model.elsewhere);
  if (change) {
    change(next);
  } else if (model.elsewhere) {
    model.elsewhere->refit({}, model.loss.kind, model.loss.n_classes);
  }
  if (model.elsewhere) model.elsewhere->read_facts();
  next.set_scales();
  next.put_on_grids();
  next.base_scores = next.loss.base_scores(next.target_sums);
  train(next, nullptr, {}, {}, n_threads);

  next.validation_losses = model.validation_losses;
  if (model.elsewhere) model.elsewhere->prepare(write_node_half(next));

  // Nothing below can fail.
  if (model.elsewhere) model.elsewhere->commit();
  std::swap(model, next);
  // Wiping what the old rows recorded is worth sharing among threads.
  for (RowShard& shard : next.shards)
    parallel(n_threads, shard.trees.size(), [&](std::size_t t) { shard.trees[t] = {}; });
}

}  // namespace graftboost
