#include "model/row_shard.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace graftboost {

// --- rows ----------------------------------------------------------------------------------------

template <class Table>
void RowShard::append(const BinMap& bins, const Sample<Table>& sample, LossKind kind,
                      int n_threads) {
  const std::size_t first = rows.size(), n = first + sample.x.rows;
  rows.append_codes(bins, sample.x, n_threads);
  rows.ids.resize(n);
  if (sample.ids.empty()) {
    std::iota(rows.ids.begin() + first, rows.ids.end(), static_cast<RowId>(first));
  } else {
    std::copy(sample.ids.begin(), sample.ids.end(), rows.ids.begin() + first);
  }
  rows.target.resize(n);
  if (kind == LossKind::squared) {
    rows.raw_target.resize(n);
    std::copy(sample.y.begin(), sample.y.end(), rows.raw_target.begin() + first);
  } else {
    std::copy(sample.y.begin(), sample.y.end(), rows.target.begin() + first);
  }
  if (!sample.weight.empty() && rows.raw_weight.empty()) {
    rows.raw_weight.resize(first);
    rows.raw_weight.fill(1);
  }
  if (sample.weight.empty() && rows.raw_weight.empty()) return;
  rows.raw_weight.resize(n);
  rows.weight.resize(n);
  for (std::size_t i = 0; i < sample.x.rows; ++i) {
    rows.raw_weight[first + i] = sample.weight.empty() ? 1.0 : sample.weight[i];
  }
}

void RowShard::put_on_grids(const Loss& loss, std::size_t first) {
  if (loss.kind == LossKind::squared) {
    for (std::size_t r = first; r < rows.size(); ++r)
      rows.target[r] = loss.target_on_grid(rows.raw_target[r]);
  }
  for (std::size_t r = first; r < rows.weight.size(); ++r)
    rows.weight[r] = loss.weight_on_grid(rows.raw_weight[r]);
}

// --- an update -----------------------------------------------------------------------------------

void RowShard::begin_update(std::vector<Slot> removed) {
  undo_ = std::make_unique<RowUndo>(rows, trees.size());
  removed_ = std::move(removed);
  if (!index.built()) index.build(rows.ids);
  for (const Slot slot : removed_) index.erase(rows.ids, slot);
}

void RowShard::extend_trees() {
  for (std::size_t slot = n_before(); slot < rows.size(); ++slot)
    index.insert(rows.ids, static_cast<Slot>(slot));
  for (TreeRows& tree : trees) {
    tree.recorded.resize(rows.size());
    tree.leaf_ids.resize(rows.size());
  }
}

void RowShard::place(std::size_t t, Slot row, std::uint16_t leaf, Gradient recorded) {
  trees[t].recorded.set(row, recorded);
  trees[t].leaf_ids.visit([&]<class LeafId>(LeafId* ids) { ids[row] = static_cast<LeafId>(leaf); });
}

void RowShard::lay_out_columns(CodeLayout layout, std::span<const std::uint32_t> columns,
                               std::span<const RowTable::NewCell> cells) {
  rows.lay_out_columns(layout, columns, cells);
  undo_->save_layout(std::move(layout));
}

ReachingRows RowShard::rows_in(std::size_t t, const std::vector<std::int32_t>& leaves,
                               const TrainingParams& params, Array<Slot>& slots) const {
  const std::size_t n = rows.size();
  slots.resize(n + slots_read_ahead);
  Slot* begin = slots.begin();
  Slot* end = begin + select_rows(trees[t].leaf_ids, n, leaves, begin);
  // Both lists are ascending.
  constexpr std::size_t few = 16;
  if (removed_.size() > few) {
    auto gone = removed_.begin();
    end = std::remove_if(begin, end, [&](Slot row) {
      while (gone != removed_.end() && *gone < row) ++gone;
      return gone != removed_.end() && *gone == row;
    });
  } else {
    for (const Slot row : removed_) {
      Slot* found = std::lower_bound(begin, end, row);
      if (found != end && *found == row) end = std::copy(found + 1, end, found);
    }
  }
  Slot* middle = end;
  if (params.subsample < 1) {
    const Subsample subsample = params.subsample_of(t);
    Array<Slot> outside(static_cast<std::size_t>(end - begin));
    std::size_t n_inside = 0, n_outside = 0;
    for (const Slot* slot = begin; slot != end; ++slot) {
      const Slot row = *slot;
      const bool inside = subsample.contains(rows.ids[row]);
      begin[n_inside] = outside[n_outside] = row;
      n_inside += inside;
      n_outside += !inside;
    }
    middle = begin + n_inside;
    std::copy_n(outside.begin(), n_outside, middle);
  }
  std::fill_n(end, slots_read_ahead, Slot{0});
  return {{begin, middle}, {middle, end}};
}

WipedVector<MovedRow> RowShard::shift(std::size_t t, const Tree& tree, NodeIndex top,
                                      const Split& before, const TrainingParams& params,
                                      LossKind kind, Array<Slot>& slots) {
  const Split& after = tree[top].split;
  const FeatureLayout& feature = rows.layout.of(after.feature);
  const ReachingRows reached = rows_in(t, tree.leaf_ids_under(top), params, slots);
  const auto moving = [&](std::span<const Slot> from) {
    Slot* found = slots.data() + (from.data() - slots.data());
    const auto moves = [&](Code code) { return before.goes_left(code) != after.goes_left(code); };
    std::size_t n = 0;
    if (feature.kind == FeatureLayout::Kind::narrow) {
      std::array<bool, 256> byte_moves;
      for (std::size_t byte = 0; byte < byte_moves.size(); ++byte)
        byte_moves[byte] = moves(static_cast<Code>(byte));
      const std::size_t row_bytes = rows.layout.row_bytes();
      const std::uint8_t* cells = rows.cells.data() + feature.position;
      for (std::size_t i = 0; i < from.size(); ++i) {
        const Slot row = from[i], ahead = from[std::min(i + slots_read_ahead, from.size() - 1)];
        __builtin_prefetch(cells + ahead * row_bytes);
        found[n] = row;
        n += byte_moves[cells[row * row_bytes]];
      }
    } else {
      for (const Slot row : from)
        if (moves(rows.code(row, feature, after.feature))) found[n++] = row;
    }
    save_rows(t, {found, n});
    return std::span<const Slot>(found, n);
  };
  const std::span<const Slot> inside = moving(reached.inside), outside = moving(reached.outside);
  WipedVector<MovedRow> moved;
  moved.reserve(inside.size());
  const RecordedGradients recorded = recorded_in(t, kind);
  trees[t].leaf_ids.visit([&]<class LeafId>(LeafId* ids) {
    const auto move = [&](Slot row) {
      const NodeIndex to =
          tree.route([&](std::uint32_t column) { return rows.code(row, column); }, top);
      return std::exchange(ids[row], static_cast<LeafId>(tree[to].leaf));
    };
    for (const Slot row : inside) {
      const std::uint16_t from = move(row);
      moved.push_back({row, from, ids[row], recorded.of(row)});
    }
    for (const Slot row : outside) move(row);
  });
  return moved;
}

void RowShard::merge_leaves(std::size_t t, std::int32_t from, std::int32_t to, Array<Slot>& slots) {
  slots.resize(rows.size() + slots_read_ahead);
  const std::span<const Slot> moving(
      slots.data(), select_rows(trees[t].leaf_ids, rows.size(), {from}, slots.data()));
  save_rows(t, moving);
  trees[t].leaf_ids.visit([&]<class LeafId>(LeafId* ids) {
    for (const Slot row : moving) ids[row] = static_cast<LeafId>(to);
  });
}

std::span<const Slot> RowShard::save_rows(std::size_t t, std::span<const Slot> slots) {
  return undo_->save_rows(t, trees[t], slots);
}

void RowShard::commit(const std::vector<RowTable::Move>& moves) noexcept {
  undo_.reset();
  if (!removed_.empty()) {
    const std::size_t left = rows.size() - removed_.size();
    for (const RowTable::Move& move : moves) index.erase(rows.ids, move.from);
    rows.vacate(removed_, moves);
    for (const RowTable::Move& move : moves) index.insert(rows.ids, move.to);
    for (TreeRows& tree : trees) {
      move_and_shrink(tree.recorded.narrow, moves, left);
      move_and_shrink(tree.recorded.wide, moves, left);
      move_and_shrink(tree.leaf_ids.narrow, moves, left);
      move_and_shrink(tree.leaf_ids.wide, moves, left);
    }
  }
  removed_.clear();
}

void RowShard::undo() noexcept {
  if (!undo_) return;
  undo_->restore(rows, trees);
  undo_.reset();
  removed_.clear();
  index = {};
}

// --- all shards ----------------------------------------------------------------------------------

std::size_t Shards::n_rows() const {
  std::size_t n = 0;
  for (const RowShard& shard : shards_) n += shard.size();
  return n;
}

double Shards::cells_per_row() const {
  std::uint64_t n_entries = 0;
  for (const RowShard& shard : shards_) n_entries += shard.rows.n_in_histograms();
  const auto plain = static_cast<double>(layout().n_bytes() + layout().n_words());
  const std::size_t n = n_rows();
  return n_entries == 0 ? plain : plain + static_cast<double>(n_entries) / static_cast<double>(n);
}

std::optional<Shards::Location> Shards::find(RowId id) {
  const std::size_t shard = shard_of(id);
  const auto slot = shards_[shard].find(id);
  return slot ? std::optional<Location>({shard, *slot}) : std::nullopt;
}

template <class Table>
void Shards::append(const BinMap& bins, const Sample<Table>& sample, LossKind kind, int n_threads) {
  if (shards_.size() == 1) return shards_[0].append(bins, sample, kind, n_threads);
  // Rows are encoded once and then dealt out.
  RowShard all;
  all.rows.layout = layout();
  WipedVector<double> weights(sample.weight.begin(), sample.weight.end());
  const auto is_weighted = [](const RowShard& shard) { return !shard.rows.raw_weight.empty(); };
  if (weights.empty() && std::any_of(begin(), end(), is_weighted)) weights.assign(sample.x.rows, 1);
  WipedVector<RowId> ids(sample.ids.begin(), sample.ids.end());
  if (ids.empty()) {
    ids.resize(sample.x.rows);
    std::iota(ids.begin(), ids.end(), static_cast<RowId>(n_rows()));
  }
  all.append(
      bins,
      Sample<Table>{sample.x, sample.y, {weights.data(), weights.size()}, {ids.data(), ids.size()}},
      kind, n_threads);
  std::vector<WipedVector<Slot>> dealt(size());
  for (Slot row = 0; row < all.size(); ++row) dealt[shard_of(all.rows.ids[row])].push_back(row);
  for (std::size_t s = 0; s < size(); ++s) {
    RowTable& rows = shards_[s].rows;
    if (!weights.empty() && rows.raw_weight.empty()) {
      rows.raw_weight.resize(rows.size());
      rows.raw_weight.fill(1);
      rows.weight.resize(rows.size());
    }
    rows.append_rows(all.rows, {dealt[s].data(), dealt[s].size()});
  }
}

#define GRAFTBOOST_FOR_TABLE(Table)                                                   \
  template void RowShard::append(const BinMap&, const Sample<Table>&, LossKind, int); \
  template void Shards::append(const BinMap&, const Sample<Table>&, LossKind, int);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
