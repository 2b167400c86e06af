#include "update/regrow.hpp"

#include <algorithm>
#include <utility>

#include "train/boosting.hpp"
#include "update/histogram_budget.hpp"
#include "update/row_answers.hpp"

namespace graftboost {

template <class Sums>
Regrower<Sums>::Regrower(const UpdateContext& context, FreshGradients& fresh,
                         const GrowingCells& cells, SplitChecker<Sums>& checker)
    : context_(context),
      model_(context.model),
      fresh_(fresh),
      regrowing_(context.model, fresh, context.n_threads),
      rows_(context.model.shards, cells, context.n_threads, context.model.elsewhere.get()),
      grower_(cells.active(), context.model.loss,
              {context.gain, context.model.params.learning_rate, true}, context.n_threads),
      checker_(checker) {}

template <class Sums>
std::vector<ReachingRows> Regrower<Sums>::find_rows(std::size_t t, NodeIndex node) {
  return regrowing_.find(t, model_.nodes.tree(t).leaf_ids_under(node));
}

template <class Sums>
Regrown<Sums> Regrower<Sums>::regrow(std::size_t t, NodeIndex node,
                                     const std::vector<ReachingRows>& reaching,
                                     UpdateCounts& counts) {
  return regrow(t, node, reaching, model_.nodes.tree(t).n_leaves_under(node), {}, counts);
}

template <class Sums>
void Regrower<Sums>::graft_in(std::size_t t, std::vector<Regrown<Sums>> regrown,
                              UpdateCounts& counts) {
  if (!regrown.empty()) join(t, std::move(regrown), {}, counts);
  for (int turn = 0; turn < model_.params.max_leaf_nodes; ++turn) {
    const GrowthSwap swap = find_growth_swap(context_, t);
    if (swap.leaf == no_node) return;
    swap_growth(t, swap, counts);
  }
}

// --- regrowing -----------------------------------------------------------------------------------

// Whether the histogram of a node follows from cached ones.
template <class Sums>
bool Regrower<Sums>::is_derivable(const TreeNodes& nodes, NodeIndex i) const {
  return histogram(nodes, i).cached || (i != 0 && histogram(nodes, nodes.tree.sibling(i)).cached &&
                                        is_derivable(nodes, nodes.tree[i].parent));
}

template <class Sums>
NodeHistogram<Sums> Regrower<Sums>::derive(const TreeNodes& nodes, NodeIndex i) const {
  if (histogram(nodes, i).cached) return histogram(nodes, i);
  NodeHistogram<Sums> derived = derive(nodes, nodes.tree[i].parent);
  derived -= histogram(nodes, nodes.tree.sibling(i));
  return derived;
}

// Regrows what is below a node to so many leaves. `spare` are leaf ids that may be used besides its
// own.
template <class Sums>
Regrown<Sums> Regrower<Sums>::regrow(std::size_t t, NodeIndex top,
                                     const std::vector<ReachingRows>& reaching, int n_leaves,
                                     const std::vector<std::int32_t>& spare, UpdateCounts& counts) {
  const TreeNodes& nodes = model_.nodes[t];
  const std::vector<std::int32_t> leaves = nodes.tree.leaf_ids_under(top);
  Regrown<Sums> result;
  // The ancestors whose histogram is cached need the difference that regrowing makes.
  NodeIndex above = nodes.tree[top].parent;
  while (above != no_node && !histogram(nodes, above).cached) above = nodes.tree[above].parent;
  const bool derivable = above != no_node && is_derivable(nodes, top);
  if (derivable) result.before = derive(nodes, top);
  Histogram<Sums> counted;
  if (above != no_node && !derivable) {
    counted.resize(model_.layout().histogram_size());
    counted.fill(Sums(Totals{}));
  }
  const auto started = regrowing_.start(t, reaching, rows_, counted);
  if (model_.elsewhere) model_.elsewhere->start_node(rows_.growth(), t, leaves, !counted.empty());

  Graft<Sums>& graft = result.graft;
  graft.node = top;
  graft.leaf_ids = leaves;
  graft.leaf_ids.insert(graft.leaf_ids.end(), spare.begin(), spare.end());
  graft.subtree = grower_.grow(rows_, n_leaves, counted.empty() ? nullptr : &counted);
  const std::span<const std::int32_t> leaf_ids(graft.leaf_ids.data(), grower_.leaf_nodes().size());
  regrowing_.place(t, rows_, grower_.leaf_nodes(), leaf_ids);
  if (model_.elsewhere)
    model_.elsewhere->end_node(rows_.growth(), t, grower_.leaf_nodes(), leaf_ids);
  if (!counted.empty()) result.before = NodeHistogram<Sums>(model_.layout(), counted);
  graft.histograms = grower_.take_histograms();
  graft.bounds = grower_.take_bounds();
  result.more_squares = started.more_squares + rows_.root_elsewhere().squares;
  const std::size_t n_rows =
      started.n_rows + static_cast<std::size_t>(rows_.root_elsewhere().n_rows);
  ++counts.nodes_regrown;
  counts.rows_regrown += static_cast<std::int64_t>(n_rows);
  counts.work += cost::looked_up_row * static_cast<double>(model_.n_rows()) +
                 cost::gathered_value * static_cast<double>(fresh_.n_looked_up(n_rows));
  counts.work += context_.cost.of_growing(graft.subtree, 0);
  return result;
}

// --- grafting ------------------------------------------------------------------------------------

// What regrowing changed in the sums of a node changes in those of its ancestors.
template <class Sums>
void Regrower<Sums>::book_difference(TreeNodes& nodes, const Regrown<Sums>& regrown,
                                     UpdateCounts& counts) {
  auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
  const NodeIndex top = regrown.graft.node;
  const Totals difference = regrown.graft.subtree[0].sums - nodes.tree[top].sums;
  std::vector<FeatureDrift> drift;
  if (!regrown.before.plain.empty() && !GainBounds::are_grouped(model_.layout()))
    drift = drift_between(model_.layout(), context_.gain, regrown.before,
                          regrown.graft.histograms[0], difference);
  for (NodeIndex i = nodes.tree[top].parent; i != no_node; i = nodes.tree[i].parent) {
    const auto at = static_cast<std::size_t>(i);
    nodes.tree[i].sums += difference;
    drift.empty() ? nodes.bounds[at].forget() : nodes.bounds[at].sums_changed(drift);
    // As if half of the histograms were cached.
    counts.work += context_.cost.histogram / 2;
    if (histograms[at].cached) histograms[at].exchange(regrown.before, regrown.graft.histograms[0]);
  }
}

// Grafts, and recomputes gains and values, which follow from sums.
template <class Sums>
void Regrower<Sums>::join(std::size_t t, std::vector<Regrown<Sums>> regrown,
                          std::vector<Graft<Sums>> grafts, UpdateCounts& counts) {
  TreeNodes& nodes = model_.nodes[t];
  grower_.make_room_to_reuse(nodes.tree.nodes.size() + regrown.size());
  for (Regrown<Sums>& r : regrown) {
    book_difference(nodes, r, counts);
    nodes.squares += r.more_squares;
    grower_.reuse(r.before);
    grafts.push_back(std::move(r.graft));
  }
  auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
  Replaced<Sums> replaced = graft(nodes.tree, histograms, nodes.bounds, std::move(grafts));
  for (NodeHistogram<Sums>& former : replaced.histograms) grower_.reuse(former);
  context_.undo.keep_replaced(t, std::move(replaced.histograms), std::move(replaced.bounds));
  for (Node& node : nodes.tree.nodes) {
    if (!node.is_leaf()) node.gain = model_.gain_of_split(context_.gain, nodes.tree, node);
    node.value = model_.leaf_value(node.sums);
  }
  trim_histograms(model_, nodes.tree, histograms);
}

// Undoes a split, if the swap names one, and splits a leaf instead.
template <class Sums>
void Regrower<Sums>::swap_growth(std::size_t t, const GrowthSwap& swap, UpdateCounts& counts) {
  const Tree& tree = model_.nodes.tree(t);
  std::vector<Graft<Sums>> undo;
  std::int32_t spare = 0;
  if (swap.split != no_node) {
    const std::int32_t kept = tree[tree[swap.split].left].leaf;
    spare = tree[tree[swap.split].right].leaf;
    regrowing_.merge_leaves(t, spare, kept);
    if (model_.elsewhere) model_.elsewhere->merge_leaves(t, spare, kept);
    undo.emplace_back();
    undo.back().node = swap.split;
    undo.back().leaf_ids = {kept};
  } else {
    const std::vector<std::int32_t> used = tree.leaf_ids_under(0);
    while (std::binary_search(used.begin(), used.end(), spare)) ++spare;
  }
  std::vector<Regrown<Sums>> regrown;
  regrown.push_back(regrow(t, swap.leaf, find_rows(t, swap.leaf), 2, {spare}, counts));
  const bool undoes = !undo.empty();
  const std::int32_t kept = undoes ? undo[0].leaf_ids[0] : -1;
  join(t, std::move(regrown), std::move(undo), counts);
  if (undoes) evaluate_undone(t, kept, counts);
}

// A split that was undone is a leaf now, whose best candidate may be another one.
template <class Sums>
void Regrower<Sums>::evaluate_undone(std::size_t t, std::int32_t leaf, UpdateCounts& counts) {
  const Tree& tree = model_.nodes.tree(t);
  TreeCheck<Sums> check;
  check.reset(t, tree.nodes.size(), GainBounds::are_grouped(model_.layout()));
  checker_.evaluate_new_leaf(check, tree.leaves[static_cast<std::size_t>(leaf)]);
  while (check.is_waiting()) {
    answer(context_, check, regrowing_.slots());
    checker_.resume(check);
  }
  counts.work += context_.cost.histogram;
}

template class Regrower<PackedSums>;
template class Regrower<WideSums>;

}  // namespace graftboost
