// What all steps of an update share.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "model/model_state.hpp"
#include "train/gain.hpp"
#include "update/node_undo.hpp"
#include "update/update_cost.hpp"
#include "update/update_rule.hpp"

namespace graftboost {

// Borrowed by every step.
struct UpdateContext {
  ModelState& model;
  const UpdateRule& rule;
  NodeUndo& undo;
  GainParams gain;
  ModelCost cost;
  std::int64_t n_rows;  // that the model holds after the update
  // The regret that is tolerated. The fidelity rule chooses it when all changed rows are booked;
  // until then it is infinite.
  double tolerance;
  double mean_weight;
  std::vector<double> variance;  // in each tree, with the changed rows once they are booked
  int n_threads;

  UpdateContext(ModelState& of, const UpdateRule& by, NodeUndo& saved, int threads)
      : model(of),
        rule(by),
        undo(saved),
        gain(of.gain_params()),
        cost(of.cells_per_row(), of.layout().histogram_size()),
        n_rows(static_cast<std::int64_t>(of.n_rows())),
        tolerance(by.kind == UpdateRule::Kind::fidelity ? std::numeric_limits<double>::infinity()
                                                        : by.tolerance),
        mean_weight(1),
        n_threads(threads) {
    for (std::size_t t = 0; t < of.nodes.size(); ++t) variance.push_back(of.variance_in(t));
    for (const RowShard& shard : of.shards)
      n_rows -= static_cast<std::int64_t>(shard.removed().size());
    if (of.elsewhere) n_rows -= static_cast<std::int64_t>(of.elsewhere->removed().rows.size());
    mean_weight = static_cast<double>(of.target_sums.weight) * of.loss.weight_unit /
                  static_cast<double>(n_rows);
  }

  // The regret of a split with gain `present` if another has gain `best` and it takes work on n
  // rows to replace it, on a scale that is the same for all trees and nodes. Gains are proportional
  // to weights.
  double relative_regret(std::size_t t, double best, double present, std::int64_t n) const {
    const double noise = variance[t] * mean_weight;
    return (best - present) / noise * (static_cast<double>(n_rows) / static_cast<double>(n));
  }
  bool tolerates(std::size_t t, double best, double present, std::int64_t n) const {
    return relative_regret(t, best, present, n) <= tolerance;
  }
};

}  // namespace graftboost
