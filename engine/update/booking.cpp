#include "update/booking.hpp"

namespace graftboost {

void book_sums(const UpdateContext& context, std::size_t t, ChangedRows& changed,
               std::span<const Gradient> gradients, std::span<double> scores,
               UpdateCounts& counts) {
  const ModelState& model = context.model;
  TreeNodes& nodes = context.model.nodes[t];
  Tree& tree = nodes.tree;
  const RowTable& rows = changed.rows();
  const std::size_t n_removed = changed.n_removed();
  std::vector<NodeIndex> leaves;
  for (std::size_t i = 0; i < changed.size(); ++i)
    leaves.push_back(tree.leaves[changed.leaf(t, i)]);
  context.undo.save_paths(t, leaves);
  const RecordedGradients recorded = changed.recorded_in(t, model.loss.kind);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const auto row = static_cast<Slot>(i);
    const bool inside = model.params.in_subsample(t, rows.ids[i]), enters = changed.enters(i);
    if (enters) changed.record(t, i, inside ? gradients[i - n_removed] : 0);
    if (!inside) continue;
    counts.work += cost::booked_row;
    const Totals totals = recorded.of(row);
    for (NodeIndex node = leaves[i]; node != no_node; node = tree[node].parent)
      enters ? tree[node].sums += totals : tree[node].sums -= totals;
    const __int128 square = recorded.square_of(row);
    nodes.squares += enters ? square : -square;
  }
  for (std::size_t i = n_removed; i < changed.size(); ++i) {
    Node& leaf = tree[leaves[i]];
    leaf.value = model.leaf_value(leaf.sums);
    scores[i - n_removed] += leaf.value;
  }
}

void TouchedNodes::reset(std::size_t n_nodes, bool grouped) {
  touched.assign(n_nodes, false);
  if (!grouped) return;
  features.resize(n_nodes);
  for (auto& rows : features) rows.clear();
}

template <class Sums>
HistogramBooker<Sums>::HistogramBooker(const UpdateContext& context)
    : context_(context), grouped_(GainBounds::are_grouped(context.model.layout())) {
  const CodeLayout& layout = context.model.layout();
  decodes_ = !grouped_ && GainBounds::are_kept(layout);
  if (decodes_) codes_.resize(layout.size());
}

template <class Sums>
void HistogramBooker<Sums>::book(TreeNodes& nodes, NodeIndex top, NodeIndex leaf,
                                 const RowTable& rows, Slot row, const Totals& totals, bool enters,
                                 const WipedVector<std::uint32_t>* features, TouchedNodes& touched,
                                 UpdateCounts& counts) {
  const CodeLayout& layout = rows.layout;
  auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
  const Sums sums(totals);
  cells_.clear();
  rows.for_each_cell(row, [&](std::uint32_t cell) { cells_.push_back(cell); });
  // Only the bounds of added rows ask for all codes.
  for (std::uint32_t f = 0; enters && decodes_ && f < codes_.size(); ++f)
    codes_[f] = rows.code(row, layout[f], 0);
  const auto code_of = [&](std::uint32_t f) {
    return decodes_ ? codes_[f] : rows.code(row, layout[f], 0);
  };
  counts.work += cost::booked_row;
  for (NodeIndex i = leaf; i != top; i = nodes.tree[i].parent) {
    const auto at = static_cast<std::size_t>(i);
    touched.touched[at] = true;
    if (grouped_) touched.features[at].push_back(features);
    nodes.bounds[at].row_changed(context_.gain, totals, enters, layout.any_commonly_missing(),
                                 layout.number_of(nodes.tree[i].split.feature), code_of);
    // As if half of the histograms were cached: the memory budget must not decide anything.
    counts.work += cost::booked_cell * static_cast<double>(cells_.size()) / 2;
    if (histograms[at].cached) histograms[at].book(cells_, sums, enters);
  }
}

template <class Sums>
bool HistogramBooker<Sums>::book_all(std::size_t t, const ChangedRows& changed,
                                     TouchedNodes& touched, UpdateCounts& counts, bool back) {
  const ModelState& model = context_.model;
  TreeNodes& nodes = context_.model.nodes[t];
  const RecordedGradients recorded = changed.recorded_in(t, model.loss.kind);
  bool any = false;
  for (Slot row = 0; row < changed.size(); ++row) {
    if (!model.params.in_subsample(t, changed.rows().ids[row])) continue;
    any = true;
    book(nodes, no_node, nodes.tree.leaves[changed.leaf(t, row)], changed.rows(), row,
         recorded.of(row), changed.enters(row) != back,
         grouped_ ? &changed.features_of(row) : nullptr, touched, counts);
  }
  return any;
}

template <class Sums>
void HistogramBooker<Sums>::book_new_cells(std::size_t t, const ChangedRows& changed,
                                           bool is_counted) {
  TreeNodes& nodes = context_.model.nodes[t];
  // Bounds of single features have no room for more features.
  for (GainBounds& bounds : nodes.bounds)
    if (!bounds.is_grouped() || !grouped_) bounds.forget();
  if (is_counted) return;
  auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
  for (const ChangedRows::NewCell& cell : changed.new_cells()) {
    const Totals& totals = changed.new_cell_totals(t, cell.row);
    if (totals == Totals{}) continue;
    const Sums sums(totals);
    NodeIndex i = nodes.tree.leaves[changed.new_cell_leaf(t, cell.row)];
    for (; i != no_node; i = nodes.tree[i].parent) {
      NodeHistogram<Sums>& histogram = histograms[static_cast<std::size_t>(i)];
      if (histogram.cached) histogram.book({&cell.cell, 1}, sums, true);
    }
  }
}

template class HistogramBooker<PackedSums>;
template class HistogramBooker<WideSums>;

}  // namespace graftboost
