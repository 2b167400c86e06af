#include "train/refit.hpp"

#include <utility>

#include "core/parallel.hpp"
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
  if (change) change(next);
  next.set_scales();
  next.put_on_grids();
  next.base_scores = next.loss.base_scores(next.target_sums);
  train(next, nullptr, {}, {}, n_threads);

  // Nothing below can fail.
  next.validation_losses = std::move(model.validation_losses);
  std::swap(model, next);
  // Wiping what the old rows recorded is worth sharing among threads.
  for (RowShard& shard : next.shards)
    parallel(n_threads, shard.trees.size(), [&](std::size_t t) { shard.trees[t] = {}; });
}

}  // namespace graftboost
