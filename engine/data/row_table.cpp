#include "data/row_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace graftboost {

std::vector<RowTable::Move> RowTable::moves_to_vacate(const std::vector<Slot>& removed) const {
  const std::size_t left = n_ - removed.size();
  std::vector<Move> moves;
  for (const Slot slot : removed)
    if (slot < left) moves.push_back({0, slot});
  auto move = moves.begin();
  auto gone = std::lower_bound(removed.begin(), removed.end(), left);
  for (std::size_t from = left; from < n_; ++from) {
    if (gone != removed.end() && *gone == from) {
      ++gone;
    } else {
      (move++)->from = static_cast<Slot>(from);
    }
  }
  return moves;
}

void RowTable::vacate(const std::vector<Slot>& removed, const std::vector<Move>& moves) noexcept {
  const std::size_t left = n_ - removed.size(), row_bytes = layout.row_bytes();
  for (const Slot slot : removed) {
    if (!has_sparse()) break;
    count_rare(slot, slot + 1, -1);
    if (n_in_histograms_) *n_in_histograms_ -= sparse_count[slot];
    std::ranges::fill_n(sparse_entries.begin() + sparse_begin[slot],
                        sparse_count[slot] + rare_count[slot], 0);
  }
  for (const Move& m : moves) {
    std::copy_n(cells.begin() + m.from * row_bytes, row_bytes, cells.begin() + m.to * row_bytes);
  }
  cells.resize(left * row_bytes);
  move_and_shrink(sparse_begin, moves, left);
  move_and_shrink(sparse_count, moves, left);
  move_and_shrink(rare_count, moves, left);
  move_and_shrink(target, moves, left);
  move_and_shrink(weight, moves, left);
  move_and_shrink(raw_target, moves, left);
  move_and_shrink(raw_weight, moves, left);
  move_and_shrink(ids, moves, left);
  n_ = left;
  if (has_sparse()) gather_sparse_entries();
}

void RowTable::truncate(const Extent& before) noexcept {
  cells.resize(before.n * layout.row_bytes());
  for (Array<std::uint32_t>* counts : {&sparse_count, &rare_count})
    counts->resize(before.sparse ? before.n : 0);
  sparse_begin.resize(before.sparse ? before.n : 0);
  sparse_entries.resize(before.n_entries);
  target.resize(before.n);
  raw_target.resize(std::min(raw_target.size(), before.n));
  weight.resize(before.weighted ? before.n : 0);
  raw_weight.resize(before.weighted ? before.n : 0);
  ids.resize(before.n);
  n_ = before.n;
  n_in_histograms_.reset();
  rows_with_.clear();
  rare_counted_ = false;
}

// Entries of removed rows leave gaps; when these are half of all, the rest moves together. If there is
// no memory for that now, there may be next time: the gaps were overwritten.
void RowTable::gather_sparse_entries() noexcept {
  std::size_t used = 0;
  for (std::size_t r = 0; r < n_; ++r) used += sparse_count[r] + rare_count[r];
  if (sparse_entries.size() < 2 * used + 1024) return;
  Array<std::uint32_t> together;
  try {
    together.resize(used);
  } catch (const std::bad_alloc&) {
    return;
  }
  std::uint64_t at = 0;
  for (std::size_t r = 0; r < n_; ++r) {
    const std::size_t n = sparse_count[r] + rare_count[r];
    std::copy_n(sparse_entries.begin() + sparse_begin[r], n, together.begin() + at);
    sparse_begin[r] = at;
    at += n;
  }
  sparse_entries.swap(together);
}

WipedVector<std::uint32_t> RowTable::present(Slot row) const {
  WipedVector<std::uint32_t> numbers;
  const auto& order = layout.by_offset();
  for (std::size_t i = 0; i < layout.first_sparse(); ++i) {
    const FeatureLayout& place = layout[order[i]];
    if (place.counts_only_differing() && code(row, place, place.column) != place.common_code)
      numbers.push_back(order[i]);
  }
  if (!has_sparse()) return numbers;
  for (const std::uint32_t entry : sparse_codes(row)) {
    const auto after = std::partition_point(order.begin(), order.end(), [&](std::uint32_t number) {
      return layout[number].offset <= entry;
    });
    numbers.push_back(*std::prev(after));
  }
  return numbers;
}

std::uint64_t RowTable::n_in_histograms() const {
  if (!has_sparse()) return 0;
  if (!n_in_histograms_) {
    n_in_histograms_ = 0;
    for (std::size_t r = 0; r < n_; ++r) *n_in_histograms_ += sparse_count[r];
  }
  return *n_in_histograms_;
}

// --- columns that become frequent, or rare again -------------------------------------------------

void RowTable::count_rare(Slot first, std::size_t last, std::int32_t by) {
  if (!rare_counted_) return;
  for (std::size_t r = first; r < last; ++r) {
    for (const std::uint32_t entry : rare_cells(static_cast<Slot>(r))) {
      const std::uint32_t column = RareCell::column(entry);
      if (column >= rows_with_.size()) rows_with_.resize(column + 1);
      rows_with_[column] += static_cast<std::uint32_t>(by);
    }
  }
}

std::vector<std::uint32_t> RowTable::rare_columns(Slot first) const {
  std::vector<std::uint32_t> found;
  if (!has_sparse()) return found;
  for (std::size_t r = first; r < n_; ++r) {
    for (const std::uint32_t entry : rare_cells(static_cast<Slot>(r)))
      found.push_back(RareCell::column(entry));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::uint32_t RowTable::n_rows_with(std::uint32_t column) {
  if (!has_sparse()) return 0;
  if (!rare_counted_) {
    rare_counted_ = true;
    count_rare(0, n_, 1);
  }
  return column < rows_with_.size() ? rows_with_[column] : 0;
}

WipedVector<RowTable::NewCell> RowTable::cells_to_place(
    const CodeLayout& next, std::span<const std::uint32_t> columns) const {
  WipedVector<NewCell> placed;
  std::uint64_t bits = 0;  // most other columns are told by these
  for (const std::uint32_t column : columns) bits |= std::uint64_t{1} << (column % 64);
  for (std::size_t r = 0; r < n_; ++r) {
    const auto row = static_cast<Slot>(r);
    for (const std::uint32_t entry : rare_cells(row)) {
      const std::uint32_t column = RareCell::column(entry);
      if ((bits >> (column % 64) & 1) != 0 && std::ranges::binary_search(columns, column))
        placed.push_back({row, next.of(column).offset + RareCell::code(entry)});
    }
  }
  return placed;
}

void RowTable::give_places(CodeLayout& next, std::span<const std::uint32_t> columns,
                           std::span<const NewCell> placed) noexcept {
  for (std::size_t i = 0, end = 0; i < placed.size(); i = end) {
    const Slot row = placed[i].row;
    while (end < placed.size() && placed[end].row == row) ++end;
    std::uint32_t* rare = sparse_entries.begin() + sparse_begin[row] + sparse_count[row];
    std::uint32_t* kept = std::remove_if(rare, rare + rare_count[row], [&](std::uint32_t entry) {
      return next.of(RareCell::column(entry)).kind != FeatureLayout::Kind::rare;
    });
    // Places behind all others, so they go between the two lists.
    const auto n = static_cast<std::uint32_t>(end - i);
    std::copy_backward(rare, kept, kept + n);
    for (std::uint32_t j = 0; j < n; ++j) rare[j] = placed[i + j].cell;
    sparse_count[row] += n;
    rare_count[row] -= n;
    if (n_in_histograms_) *n_in_histograms_ += n;
  }
  for (const std::uint32_t column : columns)
    if (column < rows_with_.size()) rows_with_[column] = 0;
  std::swap(layout, next);
}

// Where the cells of columns without cuts begin: those that were given places, then rare ones.
std::size_t RowTable::first_added_cell() const {
  return layout.added().empty() ? layout.histogram_size() : layout.of(layout.added()[0]).offset;
}

bool RowTable::have_added_columns(std::span<const Slot> rows) const {
  if (layout.added().empty()) return false;
  const std::size_t first = first_added_cell();
  return std::ranges::any_of(
      rows, [&](Slot row) { return sparse_count[row] != 0 && sparse_codes(row).back() >= first; });
}

void RowTable::mark_added_columns(const std::vector<Slot>& removed, std::vector<bool>& held) const {
  if (!has_sparse()) return;
  const std::size_t first = first_added_cell();
  const std::uint32_t n_codes = BinMap::rare().n_codes();
  auto gone = removed.begin();
  for (std::size_t r = 0; r < n_; ++r) {
    if (gone != removed.end() && *gone == r) {
      ++gone;
      continue;
    }
    const auto cells = sparse_codes(static_cast<Slot>(r));
    for (auto cell = cells.rbegin(); cell != cells.rend() && *cell >= first; ++cell)
      held[(*cell - first) / n_codes] = true;
  }
}

void RowTable::count_uncut_columns(WipedVector<std::uint32_t>& counts) const {
  if (!has_sparse()) return;
  const std::size_t first = first_added_cell();
  const std::uint32_t n_codes = BinMap::rare().n_codes();
  for (std::size_t r = 0; r < n_; ++r) {
    const std::uint32_t* entries = sparse_entries.begin() + sparse_begin[r];
    for (std::size_t i = 0; i < sparse_count[r] + rare_count[r]; ++i) {
      if (entries[i] < first) continue;
      const std::uint32_t column = entries[i] >= RareCell::first
                                       ? RareCell::column(entries[i])
                                       : layout.added()[(entries[i] - first) / n_codes];
      if (column >= counts.size()) counts.resize(column + column / 2 + 1);
      ++counts[column];
    }
  }
}

// Sparse arrays are made when the first row with an entry comes, for all rows.
void RowTable::append_rows(const RowTable& from, std::span<const Slot> chosen) {
  const std::size_t first = n_, n = first + chosen.size(), row_bytes = layout.row_bytes();
  const auto append = [&]<class T>(Array<T>& to, const Array<T>& values) {
    if (values.empty()) return;
    to.resize(n);
    for (std::size_t i = 0; i < chosen.size(); ++i) to[first + i] = values[chosen[i]];
  };
  cells.resize(n * row_bytes);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::copy_n(from.cells.begin() + chosen[i] * row_bytes, row_bytes,
                cells.begin() + (first + i) * row_bytes);
  }
  append(target, from.target);
  append(weight, from.weight);
  append(raw_target, from.raw_target);
  append(raw_weight, from.raw_weight);
  append(ids, from.ids);
  const auto n_entries = [&](Slot row) {
    return from.has_sparse() ? from.sparse_count[row] + from.rare_count[row] : 0;
  };
  const bool any = std::ranges::any_of(chosen, [&](Slot row) { return n_entries(row) != 0; });
  if (any && !has_sparse()) {
    sparse_begin.resize(first);
    sparse_begin.fill(0);
    sparse_count.resize(first);
    sparse_count.fill(0);
    rare_count.resize(first);
    rare_count.fill(0);
  }
  n_ = n;
  if (!any && !has_sparse()) return;
  sparse_begin.resize(n);
  sparse_count.resize(n);
  rare_count.resize(n);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Slot row = chosen[i];
    const std::uint64_t at = sparse_entries.size();
    sparse_begin[first + i] = at;
    sparse_count[first + i] = from.has_sparse() ? from.sparse_count[row] : 0;
    rare_count[first + i] = from.has_sparse() ? from.rare_count[row] : 0;
    sparse_entries.resize(at + n_entries(row));
    if (n_entries(row) != 0)
      std::copy_n(from.sparse_entries.begin() + from.sparse_begin[row], n_entries(row),
                  sparse_entries.begin() + at);
    if (n_in_histograms_) *n_in_histograms_ += sparse_count[first + i];
  }
  count_rare(static_cast<Slot>(first), n, 1);
}

// All that was known by place is rewritten: the cells of columns that were given places, and rare ones.
void RowTable::exchange_layout(CodeLayout& other) noexcept {
  const std::size_t first = first_added_cell();
  const std::uint32_t n_codes = BinMap::rare().n_codes();
  for (std::size_t r = 0; r < sparse_begin.size(); ++r) {
    std::uint32_t* begin = sparse_entries.begin() + sparse_begin[r];
    std::uint32_t* end = begin + sparse_count[r] + rare_count[r];
    std::uint32_t* changed = std::lower_bound(begin, end, first);
    if (changed == end) continue;
    for (std::uint32_t* entry = changed; entry != end; ++entry) {
      std::uint32_t rare = *entry;
      if (rare < RareCell::first) {
        const auto at = static_cast<std::uint32_t>(*entry - first);
        rare = RareCell::of(layout.added()[at / n_codes], static_cast<Code>(at % n_codes));
      }
      const FeatureLayout& place = other.of(RareCell::column(rare));
      *entry = place.kind == FeatureLayout::Kind::rare ? rare : place.offset + RareCell::code(rare);
    }
    std::sort(changed, end);
    const auto n_rare =
        static_cast<std::uint32_t>(end - std::lower_bound(changed, end, RareCell::first));
    sparse_count[r] += rare_count[r] - n_rare;
    rare_count[r] = n_rare;
  }
  std::swap(layout, other);
  n_in_histograms_.reset();
  rows_with_.clear();
  rare_counted_ = false;  // other columns are rare now
}

}  // namespace graftboost
