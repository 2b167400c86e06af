#include "model/inspection.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "train/split_evaluation.hpp"
#include "update/row_answers.hpp"

namespace graftboost {
namespace {

double score_of(const GainParams& params, const Totals& child) {
  const double g = static_cast<double>(child.g) * params.gradient_unit;
  return g * g / (static_cast<double>(child.h) * params.hessian_unit + params.l2);
}

SplitRank rank_split(const GainParams& params, const CodeLayout& layout, const Tree& tree,
                     NodeIndex i, const WideSums* histogram) {
  const Node& node = tree[i];
  const Totals& left = tree[node.left].sums;
  const Totals right = node.sums - left;
  SplitRank result{i};
  result.left_rows = left.n;
  result.right_rows = right.n;
  result.left_score = score_of(params, left);
  result.right_score = score_of(params, right);
  result.gain = gain_of(params, node.sums, left);
  result.other_gain = no_gain;
  SplitEvaluator<WideSums> evaluator(params, node.sums);
  const auto cells = [&](const FeatureLayout& feature) {
    return FeatureCells<WideSums>{
        histogram + feature.offset, {}, false, !feature.counts_only_differing()};
  };
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const FeatureLayout& feature = layout[f];
    result.n_better += evaluator.count_better(feature, cells(feature), result.gain);
    if (feature.column == node.split.feature) continue;
    result.other_gain = std::max(result.other_gain, evaluator.best(feature, cells(feature)).gain);
  }
  const FeatureLayout& own = layout.of(node.split.feature);
  result.next_gain = evaluator.next_gain(own, cells(own), result.gain);
  if (result.next_gain != no_gain)
    result.next_rows = evaluator.margin(own, cells(own), node.split).rows;
  return result;
}

}  // namespace

std::vector<SplitRank> rank_splits(const ModelState& model, std::size_t t) {
  const Tree& tree = model.nodes.tree(t);
  const GainParams params = model.gain_params();
  std::vector<NodeIndex> splits;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i)
    if (!tree.nodes[i].is_leaf()) splits.push_back(static_cast<NodeIndex>(i));
  const std::vector<Histogram<WideSums>> counted = count_before<WideSums>(model, t, splits);
  std::vector<SplitRank> ranks;
  for (std::size_t i = 0; i < splits.size(); ++i)
    ranks.push_back(rank_split(params, model.layout(), tree, splits[i], counted[i].data()));
  return ranks;
}

HeldRows held_rows(ModelState& model, std::span<const RowId> ids) {
  const bool classes = model.loss.kind != LossKind::squared;
  const CodeLayout& layout = model.layout();
  HeldRows held;
  std::vector<std::pair<std::uint32_t, Code>> cells;
  for (const RowId id : ids) {
    const auto found = model.shards.find(id);
    if (!found) {
      throw std::invalid_argument("row_ids: the model holds no row with id " + std::to_string(id) +
                                  "; row_ids_ has the ids of those it holds");
    }
    const RowTable& rows = model.shards[found->shard].rows;
    const Slot row = found->slot;
    cells.clear();
    for (std::size_t f = 0; f < layout.size(); ++f) {
      const Code code = rows.code(row, layout[f], layout[f].column);
      if (code != layout[f].zero_code) cells.emplace_back(layout[f].column, code);
    }
    if (rows.has_sparse()) {
      for (const std::uint32_t entry : rows.rare_cells(row))
        cells.emplace_back(RareCell::column(entry), RareCell::code(entry));
    }
    std::sort(cells.begin(), cells.end());
    for (const auto& [column, code] : cells) {
      held.columns.push_back(static_cast<std::int32_t>(column));
      held.codes.push_back(code);
    }
    held.begin.push_back(static_cast<std::int64_t>(held.codes.size()));
    held.target.push_back(classes ? rows.target[row] : rows.raw_target[row]);
  }
  return held;
}

std::vector<std::uint8_t> held_codes(const ModelState& model, std::uint32_t feature) {
  std::vector<std::uint8_t> held((*model.bins)[feature].n_codes());
  for (const RowShard& shard : model.shards)
    for (Slot row = 0; row < shard.size(); ++row) held[shard.rows.code(row, feature)] = 1;
  if (model.elsewhere) model.elsewhere->mark_held_codes(feature, held);
  return held;
}

std::vector<double> gain_importances(const ModelState& model) {
  std::vector<double> gains(model.bins->n_features());
  for (const TreeNodes& nodes : model.nodes) {
    for (const Node& node : nodes.tree.nodes) {
      // A split that leaves a child too little has no gain; an update may keep it.
      if (!node.is_leaf() && node.gain > 0) gains[node.split.feature] += node.gain;
    }
  }
  return gains;
}

}  // namespace graftboost
