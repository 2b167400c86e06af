// Columns of a RowTable that become frequent when rows are added, or rare again when rows are
// removed.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "data/row_table.hpp"

namespace graftboost {

void RowTable::count_rare(std::size_t first, std::size_t last, std::int32_t by) {
  if (!is_rare_counted_ || !has_sparse()) return;
  for (std::size_t r = first; r < last; ++r) {
    for (const std::uint32_t entry : rare_cells(static_cast<Slot>(r))) {
      const std::uint32_t column = RareCell::column(entry);
      if (column >= n_rows_with_.size()) n_rows_with_.resize(column + 1);
      n_rows_with_[column] += static_cast<std::uint32_t>(by);
    }
  }
}

std::vector<std::uint32_t> RowTable::rare_columns(Slot first) const {
  std::vector<std::uint32_t> found;
  for (std::size_t r = first; r < n_ && has_sparse(); ++r) {
    for (const std::uint32_t entry : rare_cells(static_cast<Slot>(r)))
      found.push_back(RareCell::column(entry));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::uint32_t RowTable::n_rows_with(std::uint32_t column) {
  if (!is_rare_counted_) {
    is_rare_counted_ = true;
    count_rare(0, n_, 1);
  }
  return column < n_rows_with_.size() ? n_rows_with_[column] : 0;
}

WipedVector<RowTable::NewCell> RowTable::new_cells(const CodeLayout& next,
                                                   std::span<const std::uint32_t> columns) const {
  WipedVector<NewCell> found;
  std::uint64_t bits = 0;  // most other columns are excluded by their last six bits
  for (const std::uint32_t column : columns) bits |= std::uint64_t{1} << (column % 64);
  for (std::size_t r = 0; r < n_ && has_sparse(); ++r) {
    const auto row = static_cast<Slot>(r);
    for (const std::uint32_t entry : rare_cells(row)) {
      const std::uint32_t column = RareCell::column(entry);
      if ((bits >> (column % 64) & 1) != 0 && std::ranges::binary_search(columns, column))
        found.push_back({row, next.of(column).offset + RareCell::code(entry)});
    }
  }
  return found;
}

void RowTable::lay_out_columns(CodeLayout& next, std::span<const std::uint32_t> columns,
                               std::span<const NewCell> cells) noexcept {
  for (std::size_t i = 0, end = 0; i < cells.size(); i = end) {
    const Slot row = cells[i].row;
    while (end < cells.size() && cells[end].row == row) ++end;
    std::uint32_t* rare = sparse_entries.begin() + sparse_begin[row] + sparse_count[row];
    std::uint32_t* kept = std::remove_if(rare, rare + rare_count[row], [&](std::uint32_t entry) {
      return next.of(RareCell::column(entry)).kind != FeatureLayout::Kind::rare;
    });
    // The new cells are above all others of the row, so they belong between the two lists.
    const auto n = static_cast<std::uint32_t>(end - i);
    std::copy_backward(rare, kept, kept + n);
    for (std::uint32_t j = 0; j < n; ++j) rare[j] = cells[i + j].cell;
    sparse_count[row] += n;
    rare_count[row] -= n;
    if (n_in_histograms_) *n_in_histograms_ += n;
  }
  for (const std::uint32_t column : columns)
    if (column < n_rows_with_.size()) n_rows_with_[column] = 0;
  std::swap(layout, next);
}

// Entries from here on belong to columns that are rare in the bins: first to those that were added
// to the layout, then to those that are still rare.
std::size_t RowTable::first_added_cell() const {
  return layout.added().empty() ? layout.histogram_size() : layout.of(layout.added()[0]).offset;
}

bool RowTable::have_added_columns(std::span<const Slot> rows) const {
  if (layout.added().empty() || !has_sparse()) return false;
  const std::size_t first = first_added_cell();
  return std::ranges::any_of(
      rows, [&](Slot row) { return sparse_count[row] != 0 && sparse_codes(row).back() >= first; });
}

void RowTable::mark_added_columns(const std::vector<Slot>& removed, std::vector<bool>& held) const {
  const std::size_t first = first_added_cell();
  const std::uint32_t n_codes = BinMap::rare().n_codes();
  auto gone = removed.begin();
  for (std::size_t r = 0; r < n_ && has_sparse(); ++r) {
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
  const std::size_t first = first_added_cell();
  const std::uint32_t n_codes = BinMap::rare().n_codes();
  for (std::size_t r = 0; r < n_ && has_sparse(); ++r) {
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

// Entries of added columns become rare cells, and all rare cells of columns that are added in the
// other layout become cells of histograms.
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
      const FeatureLayout& feature = other.of(RareCell::column(rare));
      *entry =
          feature.kind == FeatureLayout::Kind::rare ? rare : feature.offset + RareCell::code(rare);
    }
    std::sort(changed, end);
    const auto n_rare =
        static_cast<std::uint32_t>(end - std::lower_bound(changed, end, RareCell::first));
    sparse_count[r] += rare_count[r] - n_rare;
    rare_count[r] = n_rare;
  }
  std::swap(layout, other);
  n_in_histograms_.reset();
  n_rows_with_.clear();
  is_rare_counted_ = false;  // other columns are rare now
}

}  // namespace graftboost
