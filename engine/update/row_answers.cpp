#include "update/row_answers.hpp"

#include <algorithm>

#include "model/rows_by_node.hpp"

namespace graftboost {

template <class Sums>
std::vector<Histogram<Sums>> count_nodes(const UpdateContext& context, std::size_t t,
                                         std::span<const NodeIndex> nodes, Array<Slot>& slots) {
  const ModelState& model = context.model;
  std::vector<std::vector<std::int32_t>> leaves;
  std::vector<Histogram<Sums>> counted;
  for (const NodeIndex node : nodes) {
    leaves.push_back(model.nodes.tree(t).leaf_ids_under(node));
    Histogram<Sums>& histogram = counted.emplace_back(model.layout().histogram_size());
    histogram.fill(Sums(Totals{}));
    for (const RowShard& shard : model.shards) {
      const ReachingRows rows = shard.rows_in(t, leaves.back(), model.params, slots);
      accumulate(shard.rows, shard.recorded_in(t, model.loss.kind), rows.inside, histogram.data());
    }
  }
  if (!model.elsewhere || nodes.empty()) return counted;
  std::vector<Histogram<Sums>*> histograms;
  for (Histogram<Sums>& histogram : counted) histograms.push_back(&histogram);
  model.elsewhere->count_nodes<Sums>(t, leaves, histograms);
  return counted;
}

namespace {

// Rows of other processes come as values, with a table of their own.
void append_moves_elsewhere(ModelState& model, std::size_t t, const Shift& shift,
                            std::vector<MovedRows>& parts) {
  const Split& after = model.nodes.tree(t)[shift.node].split;
  for (FetchedMoves& fetched :
       model.elsewhere->shift(t, shift.node, shift.before, after, model.layout())) {
    MovedRows& part = parts.emplace_back();
    part.own = std::make_shared<const RowTable>(std::move(fetched.rows));
    part.rows = part.own.get();
    for (std::size_t i = 0; i < fetched.from.size(); ++i)
      part.moved.push_back(
          {static_cast<Slot>(i), fetched.from[i], fetched.to[i], fetched.totals[i]});
  }
}

}  // namespace

template <class Sums>
void answer(const UpdateContext& context, TreeCheck<Sums>& check, Array<Slot>& slots) {
  std::vector<NodeIndex>& nodes = check.to_count;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<Histogram<Sums>> counted = count_nodes<Sums>(context, check.t, nodes, slots);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    check.counted.emplace_back(nodes[i], std::move(counted[i]));
  ModelState& model = context.model;
  const Tree& tree = model.nodes.tree(check.t);
  for (const Shift& shift : check.shifts) {
    std::vector<MovedRows>& parts = check.moved.emplace_back();
    for (RowShard& shard : model.shards) {
      parts.push_back({&shard.rows,
                       shard.shift(check.t, tree, shift.node, shift.before, model.params,
                                   model.loss.kind, slots),
                       {}});
    }
    if (model.elsewhere) append_moves_elsewhere(model, check.t, shift, parts);
  }
}

template <class Sums>
std::vector<Histogram<Sums>> count_before(const ModelState& model, std::size_t t,
                                          std::span<const NodeIndex> nodes) {
  const RowsByNode rows(model, t);
  std::vector<Histogram<Sums>> counted;
  for (const NodeIndex i : nodes) counted.push_back(rows.count<Sums>(i));
  if (!model.elsewhere) return counted;
  std::vector<Histogram<Sums>*> histograms;
  for (Histogram<Sums>& histogram : counted) histograms.push_back(&histogram);
  model.elsewhere->recount<Sums>(t, nodes, histograms);
  return counted;
}

template <class Sums>
void recount_tree(ModelState& model, std::size_t t, const GainParams& gain) {
  TreeNodes& nodes = model.nodes[t];
  auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
  std::vector<NodeIndex> chosen{0};
  for (const Node& node : nodes.tree.nodes) {
    if (node.is_leaf()) continue;
    const Totals &left = nodes.tree[node.left].sums, &right = nodes.tree[node.right].sums;
    if (!gain.may_split(left) && !gain.may_split(right)) continue;
    chosen.push_back(left.n <= right.n ? node.left : node.right);
  }
  std::vector<Histogram<Sums>> counted = count_before<Sums>(model, t, chosen);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    histograms[static_cast<std::size_t>(chosen[i])] =
        NodeHistogram<Sums>(model.layout(), counted[i]);
}

#define GRAFTBOOST_FOR_SUMS(Sums)                                                              \
  template std::vector<Histogram<Sums>> count_nodes(const UpdateContext&, std::size_t,         \
                                                    std::span<const NodeIndex>, Array<Slot>&); \
  template void answer(const UpdateContext&, TreeCheck<Sums>&, Array<Slot>&);                  \
  template std::vector<Histogram<Sums>> count_before(const ModelState&, std::size_t,           \
                                                     std::span<const NodeIndex>);              \
  template void recount_tree<Sums>(ModelState&, std::size_t, const GainParams&);
GRAFTBOOST_FOR_SUMS(PackedSums)
GRAFTBOOST_FOR_SUMS(WideSums)

}  // namespace graftboost
