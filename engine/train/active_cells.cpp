#include "train/active_cells.hpp"

namespace graftboost {

ActiveCells::ActiveCells(const CodeLayout& layout, const WipedVector<std::uint32_t>& n_rows_in)
    : layout_(layout), size_(layout.plain_size()), is_renumbered_(true), ranges_(layout.size()) {
  for (std::size_t i = layout.first_sparse(); i < layout.by_offset().size(); ++i) {
    const std::uint32_t number = layout.by_offset()[i];
    const FeatureLayout& feature = layout[number];
    const std::size_t first = size_;
    for (std::uint32_t cell = feature.offset; cell < feature.offset + feature.n_codes; ++cell) {
      if (n_rows_in[cell] == 0) continue;
      cells_.push_back(cell);
      ++size_;
    }
    ranges_[number] = {first, size_};
  }
}

ActiveEntries::ActiveEntries(const RowTable& rows, const ActiveCells& cells)
    : cells_(cells), entries_(rows.entries()) {
  if (!cells.is_renumbered()) return;
  lists_rows_ = true;
  const std::size_t n = rows.has_sparse() ? rows.size() : 0;
  WipedVector<std::uint32_t> active_of(cells.layout().histogram_size());
  for (std::size_t i = 0; i < cells.size(); ++i)
    active_of[cells.cell(i)] = static_cast<std::uint32_t>(i);
  begin_.resize(cells.size() + 1);
  for (Slot row = 0; row < n; ++row)
    for (const std::uint32_t cell : rows.sparse_codes(row)) ++begin_[active_of[cell] + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  own_begin_.resize(n);
  own_entries_.resize(begin_.back());
  listed_.resize(begin_.back());
  std::vector<std::uint64_t> to(begin_.begin(), begin_.end() - 1);
  std::uint64_t at = 0;
  for (Slot row = 0; row < n; ++row) {
    own_begin_[row] = at;
    for (const std::uint32_t cell : rows.sparse_codes(row)) {
      own_entries_[at++] = active_of[cell];
      listed_[to[active_of[cell]]++] = row;
    }
  }
  if (n != 0) entries_ = {own_begin_.data(), rows.sparse_count.data(), own_entries_.data()};
}

}  // namespace graftboost
