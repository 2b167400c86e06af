// All state of a model: both halves, and what they share.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "data/bins.hpp"
#include "model/loss.hpp"
#include "model/node_table.hpp"
#include "model/params.hpp"
#include "model/recording.hpp"
#include "model/row_shard.hpp"
#include "remote/remote_rows.hpp"
#include "train/gain.hpp"

namespace graftboost {

// The rows that updates changed since nodes were last regrown for all of them. Losses and memory
// are in units of memory (see row_memory.hpp).
struct DeferredRows {
  std::int64_t n_removed = 0, n_added = 0;
  std::int64_t achieved = 0;  // change of their losses by booking
  std::int64_t settled = 0;   // memory that was recovered by regrowing since then, estimated

  std::int64_t n_rows() const { return n_removed + n_added; }
  bool empty() const { return n_rows() == 0; }
  bool operator==(const DeferredRows&) const = default;
};

// Owns the rows and the nodes. What always holds between operations: every sum in `nodes` is the
// integer sum of what the rows recorded; `target_sums` are those of the rows; base scores and node
// values follow from sums. Counts that decide anything are of all rows, never of one shard. Model
// guards it against concurrent use.
struct ModelState {
  std::shared_ptr<const BinMap> bins;
  Loss loss;
  TrainingParams params;
  Shards shards;
  std::shared_ptr<RemoteRows> elsewhere;  // rows that other processes hold; null if there are none
  NodeTable nodes;
  TargetSums target_sums;
  std::vector<double> base_scores;  // one per tree of an iteration
  std::vector<double> validation_losses;
  DeferredRows deferred;
  // Bytes that cached histograms may take. A property of the machine, not of the model.
  std::size_t histogram_memory = std::numeric_limits<std::size_t>::max();

  const CodeLayout& layout() const { return shards.layout(); }
  std::size_t n_rows() const {
    return shards.n_rows() + (elsewhere ? elsewhere->n_rows() : std::size_t{0});
  }
  // The mean number of histogram cells that a row falls into.
  double cells_per_row() const;
  int trees_per_iteration() const { return loss.trees_per_iteration(); }
  // The rows of a shard, to record gradients in the iteration that begins with this tree.
  RecordingRows recording_rows(std::size_t shard, std::size_t first_tree) const {
    const RowTable& rows = shards[shard].rows;
    return {
        {rows.target.data(), rows.size()}, {rows.ids.data(), rows.size()}, params.seed, first_tree};
  }
  int n_iterations() const { return static_cast<int>(nodes.size()) / trees_per_iteration(); }
  // The number of trees when training is done, unless it stops early.
  std::size_t n_trees_meant() const {
    return static_cast<std::size_t>(params.n_estimators) *
           static_cast<std::size_t>(trees_per_iteration());
  }
  // The regularization in units of the weight scale, as sums are.
  double l2() const { return params.l2_regularization / loss.weight_scale; }
  GainParams gain_params() const;
  double leaf_value(const Totals& sums) const {
    return loss.leaf_value(sums, params.learning_rate, l2());
  }
  // The variance of what the rows recorded in a tree over their mean hessian: the noise scale of
  // the tree's gains, but for weights. For squared error, the residual variance before the tree.
  double variance_in(std::size_t t) const;
  // The gain of a split node's own split, from the sums of its children.
  double gain_of_split(const GainParams& gain, const Tree& tree, const Node& node) const {
    return graftboost::gain_of(gain, node.sums, tree[node.left].sums);
  }

  // Lays out all shards alike.
  void set_layout(const CodeLayout& layout);
  // Sets the scales of targets and weights from all rows.
  void set_scales();
  // Puts the targets and weights of all rows onto the grids, and adds them up.
  void put_on_grids();
  // Adds the targets of some rows of a shard to target_sums.
  void add_targets(const RowShard& shard, std::size_t first);
};

}  // namespace graftboost
