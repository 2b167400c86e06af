#include "update/booking.hpp"

#include <algorithm>

#include "update/histogram_drift.hpp"

namespace graftboost {

void book_sums(const UpdateContext& context, std::size_t t, ChangedRows& changed,
               ConstGradientPointer gradients, std::span<double> scores, UpdateCounts& counts) {
  const ModelState& model = context.model;
  TreeNodes& nodes = context.model.nodes[t];
  Tree& tree = nodes.tree;
  const RowTable& rows = changed.rows();
  const std::size_t n_removed = changed.n_removed();
  const auto leaf_of = [&](std::size_t i) { return tree.leaves[changed.leaf(t, i)]; };
  context.undo.save_paths(t, changed.size(), leaf_of);
  const RecordedGradients recorded = changed.recorded_in(t, model.loss.kind);
  // Many rows are added up in their leaves first, and then each node in its parent.
  const bool many = changed.size() > tree.nodes.size();
  WipedVector<Totals> changes(many ? tree.nodes.size() : 0);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const auto row = static_cast<Slot>(i);
    const bool inside = model.params.in_subsample(t, rows.ids[i]), enters = changed.enters(i);
    if (enters) changed.record(t, i, inside ? gradients[i - n_removed] : 0);
    if (!inside) continue;
    counts.work += cost::booked_row;
    const Totals totals = recorded.of(row);
    if (many) {
      Totals& change = changes[static_cast<std::size_t>(leaf_of(i))];
      enters ? change += totals : change -= totals;
    }
    for (NodeIndex node = leaf_of(i); !many && node != no_node; node = tree[node].parent)
      enters ? tree[node].sums += totals : tree[node].sums -= totals;
    const __int128 square = recorded.square_of(row);
    nodes.squares += enters ? square : -square;
  }
  for (std::size_t i = changes.size(); i-- > 0;) {  // children come after their parent
    Node& node = tree.nodes[i];
    node.sums += changes[i];
    if (i != 0) changes[static_cast<std::size_t>(node.parent)] += changes[i];
    if (node.is_leaf()) node.value = model.leaf_value(node.sums);
  }
  for (std::size_t i = n_removed; i < changed.size(); ++i) {
    Node& leaf = tree[leaf_of(i)];
    if (!many) leaf.value = model.leaf_value(leaf.sums);
    scores[i - n_removed] += leaf.value;
  }
}

namespace {

// Rows of a leaf are booked together if a histogram has no more cells than so many per row.
constexpr std::size_t rows_together = 64;

// A row with so many cells was booked in so many nodes. As if half of the histograms were cached, and
// as if rows were booked one by one: neither the memory budget nor shards may decide anything.
void count_booking(std::size_t n_cells, std::int64_t n_nodes, UpdateCounts& counts) {
  counts.work += cost::booked_row;
  counts.work.add(cost::booked_cell * static_cast<double>(n_cells) / 2, n_nodes);
}

}  // namespace

void TouchedNodes::reset(std::size_t n_nodes, bool grouped) {
  touched.assign(n_nodes, false);
  if (!grouped) return;
  features.resize(n_nodes);
  for (auto& rows : features) rows.clear();
}

template <class Sums>
HistogramBooker<Sums>::HistogramBooker(const UpdateContext& context)
    : context_(context), grouped_(GainBounds::are_grouped(context.model.layout())) {
  decodes_ = !grouped_ && GainBounds::are_kept(context.model.layout());
}

// As book() does, without histograms. What is counted must not depend on whether there are any.
template <class Sums>
bool HistogramBooker<Sums>::touch_paths(std::size_t t, const ChangedRows& changed,
                                        TouchedNodes& touched, UpdateCounts& counts) const {
  const ModelState& model = context_.model;
  const Tree& tree = model.nodes.tree(t);
  std::vector<std::int64_t> path_length(tree.leaves.size());  // of leaves that were touched
  bool any = false;
  for (std::size_t row = 0; row < changed.size(); ++row) {
    if (!model.params.in_subsample(t, changed.rows().ids[row])) continue;
    any = true;
    const std::size_t leaf = changed.leaf(t, row);
    if (path_length[leaf] == 0) {
      for (NodeIndex i = tree.leaves[leaf]; i != no_node; i = tree[i].parent) {
        touched.touched[static_cast<std::size_t>(i)] = true;
        ++path_length[leaf];
      }
    }
    count_booking(changed.cells_of(row).size(), path_length[leaf], counts);
  }
  return any;
}

template <class Sums>
void HistogramBooker<Sums>::book(TreeNodes& nodes, NodeIndex top, NodeIndex leaf,
                                 const BookedRow& row, TouchedNodes& touched,
                                 UpdateCounts& counts) {
  const CodeLayout& layout = context_.model.layout();
  auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
  const Sums sums(row.totals);
  const auto code_of = [&](std::uint32_t f) {
    return row.codes.empty() ? row.rows.code(row.slot, layout[f], layout[f].column) : row.codes[f];
  };
  std::int64_t n_nodes = 0;
  for (NodeIndex i = leaf; i != top; i = nodes.tree[i].parent, ++n_nodes) {
    const auto at = static_cast<std::size_t>(i);
    touched.touched[at] = true;
    if (grouped_) touched.features[at].push_back(row.features);
    nodes.bounds[at].row_changed(context_.gain, row.totals, row.enters,
                                 layout.any_commonly_missing(),
                                 layout.number_of(nodes.tree[i].split.feature), row.codes, code_of);
    if (histograms[at].cached) histograms[at].book(row.cells, sums, row.enters);
  }
  count_booking(row.cells.size(), n_nodes, counts);
}

// Leaf by leaf, so that the histograms on a path stay in cache.
template <class Sums>
bool HistogramBooker<Sums>::book_all(std::size_t t, const ChangedRows& changed,
                                     TouchedNodes& touched, UpdateCounts& counts, bool back) {
  const ModelState& model = context_.model;
  TreeNodes& nodes = context_.model.nodes[t];
  if (!nodes.counted) return touch_paths(t, changed, touched, counts);
  const RecordedGradients recorded = changed.recorded_in(t, model.loss.kind);
  sort_by_leaf(t, changed);
  const auto book_one = [&](Slot row) {
    const auto codes = decodes_ ? changed.codes_of(row) : std::span<const Code>();
    book(nodes, no_node, nodes.tree.leaves[changed.leaf(t, row)],
         {changed.rows(), row, changed.cells_of(row), codes, recorded.of(row),
          changed.enters(row) != back, grouped_ ? &changed.features_of(row) : nullptr},
         touched, counts);
  };
  for (std::size_t begin = 0; begin < by_leaf_.size();) {
    const std::size_t leaf = changed.leaf(t, by_leaf_[begin]);
    const std::size_t n = begin_[leaf] - begin;
    const std::span<const Slot> rows(by_leaf_.data() + begin, n);
    begin += n;
    // Those that are removed come first.
    const auto split =
        std::ranges::partition_point(rows, [&](Slot row) { return !changed.enters(row); });
    const std::span<const Slot> removed(rows.begin(), split);
    const bool together = !back && pays_together(removed.size());
    if (together) {
      book_together(
          nodes, no_node, nodes.tree.leaves[leaf], removed.size(), false,
          [&](auto&& use) {
            for (const Slot row : removed) use(changed.cells_of(row), recorded.of(row));
          },
          touched, counts);
    }
    for (const Slot row : together ? rows.subspan(removed.size()) : rows) book_one(row);
  }
  return !by_leaf_.empty();
}

template <class Sums>
bool HistogramBooker<Sums>::pays_together(std::size_t n_rows) const {
  const CodeLayout& layout = context_.model.layout();
  return decodes_ && layout.histogram_size() == layout.plain_size() &&
         rows_together * n_rows >= layout.histogram_size();
}

// Rows of a leaf: their histogram is added to those on the path, or subtracted. for_each_row(use)
// calls use(cells, totals) for each. What rows that leave move the sums of candidates by is known
// from their histogram, and is less than what single rows could move them by. So many rows that
// enter would leave little of the bounds, which are forgotten.
template <class Sums>
template <class ForEachRow>
void HistogramBooker<Sums>::book_together(TreeNodes& nodes, NodeIndex top, NodeIndex leaf,
                                          std::size_t n_rows, bool enters,
                                          ForEachRow&& for_each_row, TouchedNodes& touched,
                                          UpdateCounts& counts) {
  auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
  const CodeLayout& layout = context_.model.layout();
  std::int64_t n_nodes = 0;
  for (NodeIndex i = leaf; i != top; i = nodes.tree[i].parent) ++n_nodes;
  together_.plain.resize(layout.plain_size());
  together_.plain.fill(Sums(Totals{}));
  Totals totals;
  for_each_row([&](std::span<const std::uint32_t> cells, const Totals& of_row) {
    totals += of_row;
    together_.book(cells, Sums(of_row), true);
    count_booking(cells.size(), n_nodes, counts);
  });
  std::vector<FeatureDrift> drift;
  if (!enters) drift = drift_of(layout, context_.gain, together_, totals);
  for (NodeIndex i = leaf; i != top; i = nodes.tree[i].parent) {
    const auto at = static_cast<std::size_t>(i);
    touched.touched[at] = true;
    enters ? nodes.bounds[at].forget()
           : nodes.bounds[at].rows_removed(drift, static_cast<std::int64_t>(n_rows));
    if (!histograms[at].cached) continue;
    enters ? histograms[at] += together_ : histograms[at] -= together_;
  }
}

// Decodes a row once for all nodes it is booked in.
template <class Sums>
typename HistogramBooker<Sums>::BookedRow HistogramBooker<Sums>::decode(const RowTable& rows,
                                                                        const MovedRow& row) {
  cells_.clear();
  rows.for_each_cell(row.row, [&](std::uint32_t cell) { cells_.push_back(cell); });
  codes_.clear();
  for (std::size_t f = 0; decodes_ && f < rows.layout.size(); ++f)
    codes_.push_back(rows.code(row.row, rows.layout[f], rows.layout[f].column));
  return {rows, row.row, cells_, codes_, row.totals, false, nullptr};
}

template <class Sums>
void HistogramBooker<Sums>::book_moved(TreeNodes& nodes, NodeIndex top, const RowTable& rows,
                                       std::span<const MovedRow> moved,
                                       std::list<WipedVector<std::uint32_t>>& features,
                                       TouchedNodes& touched, UpdateCounts& counts) {
  const std::vector<NodeIndex>& leaves = nodes.tree.leaves;
  n_leaving_.assign(leaves.size(), 0);
  n_entering_.assign(leaves.size(), 0);
  for (const MovedRow& row : moved) ++n_leaving_[row.from], ++n_entering_[row.to];
  const auto book_leaf = [&](std::size_t leaf, std::size_t n, bool enters) {
    if (!pays_together(n)) return;
    book_together(
        nodes, top, leaves[leaf], n, enters,
        [&](auto&& use) {
          for (const MovedRow& row : moved) {
            if ((enters ? row.to : row.from) != leaf) continue;
            cells_.clear();
            rows.for_each_cell(row.row, [&](std::uint32_t cell) { cells_.push_back(cell); });
            use(std::span<const std::uint32_t>(cells_), row.totals);
          }
        },
        touched, counts);
  };
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    book_leaf(leaf, n_leaving_[leaf], false);
    book_leaf(leaf, n_entering_[leaf], true);
  }
  for (const MovedRow& row : moved) {
    const bool leaves_alone = !pays_together(n_leaving_[row.from]);
    const bool enters_alone = !pays_together(n_entering_[row.to]);
    if (!leaves_alone && !enters_alone) continue;
    BookedRow booked = decode(rows, row);
    if (grouped_) booked.features = &features.emplace_back(rows.present(row.row));
    if (leaves_alone) book(nodes, top, leaves[row.from], booked, touched, counts);
    booked.enters = true;
    if (enters_alone) book(nodes, top, leaves[row.to], booked, touched, counts);
  }
}

// The changed rows in the tree's subsample. Those of a leaf stay in order: removed rows first.
template <class Sums>
void HistogramBooker<Sums>::sort_by_leaf(std::size_t t, const ChangedRows& changed) {
  const TrainingParams& params = context_.model.params;
  begin_.assign(context_.model.nodes.tree(t).leaves.size() + 1, 0);
  const auto each = [&](auto&& use) {
    for (Slot row = 0; row < changed.size(); ++row)
      if (params.in_subsample(t, changed.rows().ids[row])) use(row, changed.leaf(t, row));
  };
  each([&](Slot, std::size_t leaf) { ++begin_[leaf + 1]; });
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  by_leaf_.resize(begin_.back());
  each([&](Slot row, std::size_t leaf) { by_leaf_[begin_[leaf]++] = row; });
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
