// What all steps of an update share.
#pragma once

#include <cstdint>

#include "model/model_state.hpp"
#include "train/gain.hpp"
#include "update/node_undo.hpp"
#include "update/update_cost.hpp"
#include "update/update_rule.hpp"

namespace graftboost {

// Borrowed by every step; nothing in it changes but the model.
struct UpdateContext {
  ModelState& model;
  const UpdateRule& rule;
  NodeUndo& undo;
  GainParams gain;
  ModelCost cost;
  std::int64_t n_rows;  // that the model holds after the update
  int n_threads;

  UpdateContext(ModelState& of, const UpdateRule& by, NodeUndo& saved, int threads)
      : model(of),
        rule(by),
        undo(saved),
        gain(of.gain_params()),
        cost(of.shards.cells_per_row(), of.layout().histogram_size()),
        n_rows(static_cast<std::int64_t>(of.n_rows())),
        n_threads(threads) {
    for (const RowShard& shard : of.shards)
      n_rows -= static_cast<std::int64_t>(shard.removed().size());
  }

  // Whether a split with gain `present` may stay in a node of n rows although another has gain
  // `best`.
  bool tolerates(double best, double present, std::int64_t n) const {
    return rule.tolerates_regret(best, present, model.noise, n_rows, n);
  }
};

}  // namespace graftboost
