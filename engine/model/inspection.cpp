#include "model/inspection.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "train/histogram.hpp"
#include "train/split_evaluation.hpp"
#include "train/boosting.hpp"

namespace graftboost {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

double score_of(const GainParams& params, const Totals& side) {
  const double g = static_cast<double>(side.g) * params.gradient_unit;
  return g * g / (static_cast<double>(side.h) * params.hessian_unit + params.l2);
}

SplitRank place_of(const GainParams& params, const CodeLayout& layout, const Tree& tree,
                    NodeIndex i, const WideSums* histogram) {
  const Node& node = tree.nodes[static_cast<std::size_t>(i)];
  const Totals& left = tree.nodes[static_cast<std::size_t>(node.left)].sums;
  const Totals right = node.sums - left;
  const bool counts = std::min(left.n, right.n) >= params.min_samples_leaf;
  SplitRank result{i};
  result.left_rows = left.n;
  result.right_rows = right.n;
  result.left_score = score_of(params, left);
  result.right_score = score_of(params, right);
  result.gain = counts ? gain_of(params, node.sums, left) : never;
  result.other_gain = never;
  for (std::size_t p = 0; p < layout.size(); ++p) {
    const WideSums* cells = histogram + layout[p].offset;
    result.n_better += count_better(params, layout[p], node.sums, cells, result.gain);
    if (layout[p].column == node.split.feature) continue;
    result.other_gain = std::max(result.other_gain,
                                 best_split_of_feature(params, layout[p], node.sums, cells).gain);
  }
  const FeatureLayout& own = layout.of(node.split.feature);
  const WideSums* cells = histogram + own.offset;
  result.next_gain = next_gain(params, own, node.sums, cells, result.gain);
  if (result.next_gain != never) result.next_rows = margin_of(own, node.split, cells).rows;
  return result;
}

}  // namespace

std::vector<SplitRank> split_ranks(const Forest& forest, std::size_t t) {
  const Tree& tree = forest.trees[t];
  const CodeLayout& layout = forest.rows.layout;
  const GainParams params = growing_params(forest).gain;
  std::vector<std::vector<Slot>> reached(tree.nodes.size());
  forest.states[t].leaf_ids.visit([&](const auto* ids) {
    for (Slot row = 0; row < forest.rows.size(); ++row) {
      if (!forest.in_bag(t, forest.rows.ids[row])) continue;
      NodeIndex i = tree.nodes[static_cast<std::size_t>(tree.leaves[ids[row]])].parent;
      for (; i != no_node; i = tree.nodes[static_cast<std::size_t>(i)].parent)
        reached[static_cast<std::size_t>(i)].push_back(row);
    }
  });
  std::vector<SplitRank> places;
  Histogram<WideSums> histogram(layout.histogram_size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].is_leaf()) continue;
    const std::size_t n = reached[i].size();
    reached[i].resize(n + slots_read_ahead);
    histogram.fill(WideSums(Totals{}));
    accumulate(forest.rows, forest.contributions_to(t), {reached[i].data(), n}, histogram.data());
    for (std::size_t p = 0; p < layout.size(); ++p) {
      if (layout[p].counts_only_differing())
        complete(layout[p], tree.nodes[i].sums, histogram.data() + layout[p].offset);
    }
    places.push_back(place_of(params, layout, tree, static_cast<NodeIndex>(i), histogram.data()));
  }
  return places;
}

HeldRows held_rows(Forest& forest, std::span<const RowId> ids) {
  if (!forest.index.built()) forest.index.build(forest.rows.ids);
  const bool classes = forest.loss.kind != LossKind::squared;
  const CodeLayout& layout = forest.rows.layout;
  HeldRows held;
  std::vector<std::pair<std::uint32_t, Code>> cells;
  for (const RowId id : ids) {
    const Slot row = forest.slot_of(id, "row_ids");
    cells.clear();
    for (std::size_t p = 0; p < layout.size(); ++p) {
      const Code code = forest.rows.code(row, layout[p], layout[p].column);
      if (code != layout[p].zero_code) cells.emplace_back(layout[p].column, code);
    }
    if (forest.rows.has_sparse()) {
      for (const std::uint32_t entry : forest.rows.rare_cells(row))
        cells.emplace_back(RareCell::column(entry), RareCell::code(entry));
    }
    std::sort(cells.begin(), cells.end());
    for (const auto& [column, code] : cells) {
      held.columns.push_back(static_cast<std::int32_t>(column));
      held.codes.push_back(code);
    }
    held.begin.push_back(static_cast<std::int64_t>(held.codes.size()));
    held.target.push_back(classes ? forest.rows.target[row] : forest.rows.raw_target[row]);
  }
  return held;
}

std::vector<std::uint8_t> held_codes(const Forest& forest, std::uint32_t feature) {
  std::vector<std::uint8_t> held((*forest.bins)[feature].n_codes());
  for (Slot row = 0; row < forest.rows.size(); ++row) held[forest.rows.code(row, feature)] = 1;
  return held;
}

}  // namespace graftboost
