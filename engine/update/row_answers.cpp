#include "update/row_answers.hpp"

#include <algorithm>

#include "model/rows_by_node.hpp"

namespace graftboost {

template <class Sums>
Histogram<Sums> count_node(const UpdateContext& context, std::size_t t, NodeIndex node,
                           Array<Slot>& slots) {
  const ModelState& model = context.model;
  Histogram<Sums> histogram(model.layout().histogram_size());
  histogram.fill(Sums(Totals{}));
  const std::vector<std::int32_t> leaves = model.nodes.tree(t).leaf_ids_under(node);
  for (const RowShard& shard : model.shards) {
    const ReachingRows rows = shard.rows_in(t, leaves, model.params, slots);
    accumulate(shard.rows, shard.recorded_in(t, model.loss.kind), rows.inside, histogram.data());
  }
  return histogram;
}

template <class Sums>
void answer(const UpdateContext& context, TreeCheck<Sums>& check, Array<Slot>& slots) {
  std::vector<NodeIndex>& nodes = check.to_count;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (const NodeIndex node : nodes)
    check.counted.emplace_back(node, count_node<Sums>(context, check.t, node, slots));
  ModelState& model = context.model;
  const Tree& tree = model.nodes.tree(check.t);
  for (const Shift& shift : check.shifts) {
    std::vector<MovedRows>& parts = check.moved.emplace_back();
    for (RowShard& shard : model.shards) {
      parts.push_back({&shard.rows, shard.shift(check.t, tree, shift.node, shift.before,
                                                model.params, model.loss.kind, slots)});
    }
  }
}

template <class Sums>
void recount_tree(ModelState& model, std::size_t t, const GainParams& gain) {
  TreeNodes& nodes = model.nodes[t];
  auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
  const RowsByNode rows(model, t);
  const auto recount = [&](NodeIndex i) {
    Histogram<Sums> histogram = rows.count<Sums>(i);
    histograms[static_cast<std::size_t>(i)] = NodeHistogram<Sums>(model.layout(), histogram);
  };
  recount(0);
  for (const Node& node : nodes.tree.nodes) {
    if (node.is_leaf()) continue;
    const Totals &left = nodes.tree[node.left].sums, &right = nodes.tree[node.right].sums;
    if (!gain.may_split(left) && !gain.may_split(right)) continue;
    recount(left.n <= right.n ? node.left : node.right);
  }
}

#define GRAFTBOOST_FOR_SUMS(Sums)                                                                  \
  template Histogram<Sums> count_node(const UpdateContext&, std::size_t, NodeIndex, Array<Slot>&); \
  template void answer(const UpdateContext&, TreeCheck<Sums>&, Array<Slot>&);                      \
  template void recount_tree<Sums>(ModelState&, std::size_t, const GainParams&);
GRAFTBOOST_FOR_SUMS(PackedSums)
GRAFTBOOST_FOR_SUMS(WideSums)

}  // namespace graftboost
