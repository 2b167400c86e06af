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

double RowTable::cells_per_row() const {
  const auto plain = static_cast<double>(layout.n_bytes() + layout.n_words());
  if (!has_sparse() || n_ == 0) return plain;
  if (!n_in_histograms_) {
    n_in_histograms_ = 0;
    for (std::size_t r = 0; r < n_; ++r) *n_in_histograms_ += sparse_count[r];
  }
  return plain + static_cast<double>(*n_in_histograms_) / static_cast<double>(n_);
}

// --- columns that become frequent, or rare again -------------------------------------------------

void RowTable::count_rare(Slot first, std::size_t last, std::int32_t by) {
  if (rows_with_.empty()) return;
  for (std::size_t r = first; r < last; ++r) {
    for (const std::uint32_t entry : rare_cells(static_cast<Slot>(r)))
      rows_with_[RareCell::column(entry)] += static_cast<std::uint32_t>(by);
  }
}

std::vector<std::uint32_t> RowTable::find_frequent(Slot first, std::size_t least) {
  std::vector<std::uint32_t> found;
  if (!has_sparse()) return found;
  const auto n_columns = [&](std::size_t begin, std::size_t end) {
    std::size_t n = 0;
    for (std::size_t r = begin; r < end; ++r) {
      const auto cells = rare_cells(static_cast<Slot>(r));
      if (!cells.empty()) n = std::max<std::size_t>(n, RareCell::column(cells.back()) + 1);
    }
    return n;
  };
  std::size_t n = n_columns(first, n_);
  if (n == 0) return found;
  const bool counted = !rows_with_.empty();
  if (!counted) n = std::max(n, n_columns(0, first));
  if (rows_with_.size() < n) rows_with_.resize(n);
  count_rare(counted ? first : 0, n_, 1);
  for (std::size_t r = first; r < n_; ++r) {
    for (const std::uint32_t entry : rare_cells(static_cast<Slot>(r))) {
      if (rows_with_[RareCell::column(entry)] >= least) found.push_back(RareCell::column(entry));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

WipedVector<RowTable::NewCell> RowTable::cells_to_place(const CodeLayout& next,
                                                std::span<const std::uint32_t> columns) const {
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

std::optional<CodeLayout> RowTable::layout_without_unused(const BinMap& bins,
                                                      std::span<const std::uint32_t> asked_for,
                                                      const std::vector<Slot>& removed) const {
  const std::size_t first = first_added_cell();
  const std::uint32_t n_codes = BinMap::rare().n_codes();
  std::vector<bool> held(layout.added().size());
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
  std::vector<std::uint32_t> stay;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const std::uint32_t column = layout.added()[i];
    if (held[i] || std::ranges::binary_search(asked_for, column)) stay.push_back(column);
  }
  if (stay.size() == held.size()) return std::nullopt;
  CodeLayout next(bins);
  next.add(stay);
  return next;
}

void RowTable::choose_places(const BinMap& bins, std::size_t least) {
  rows_with_.clear();  // rows may have come that were not counted
  if (!has_sparse()) return;
  const std::size_t first = first_added_cell();
  const std::uint32_t n_codes = BinMap::rare().n_codes();
  WipedVector<std::uint32_t> counts, columns;
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
  for (std::uint32_t column = 0; column < counts.size(); ++column)
    if (counts[column] >= least) columns.push_back(column);
  if (std::ranges::is_permutation(columns, layout.added())) return;
  CodeLayout chosen(bins);
  chosen.add(columns);
  exchange_layout(chosen);
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
  rows_with_.clear();  // counts other columns now
}

}  // namespace graftboost
