// The cells of a histogram while trees grow.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/array.hpp"
#include "train/histogram.hpp"
#include "data/row_table.hpp"

namespace graftboost {

// Most codes of most sparse features no row has. So when trees are trained, their histograms have only
// the cells that a row has an entry of, numbered anew in the same order,
//
//     layout     plain cells | . . x | . . x x | . . . | . . . x |
//     working    plain cells | x | x x | x |
//
// and it is known which rows these are, ascending. To send the rows of a node left or right, looking
// through a feature's few entries once is quicker than looking through each row's many; and so is adding
// up the cells one by one, where all rows count.
//
// Finding that out takes a walk over all rows. To mend a part of a tree, which has few, the working cells
// are those of the layout. Valid while the rows do not change.
class WorkingCells {
 public:
  static WorkingCells as_laid_out(const RowTable& rows) { return WorkingCells(rows); }
  static WorkingCells of_all_rows(const RowTable& rows) {
    WorkingCells cells(rows);
    if (rows.has_sparse()) cells.number_anew();
    return cells;
  }

  WorkingCells(WorkingCells&&) = default;
  WorkingCells(const WorkingCells&) = delete;

  std::size_t size() const { return size_; }
  std::size_t plain_size() const { return layout_.plain_size(); }
  const SparseEntries& entries() const { return entries_; }
  // The cells of the layout that the sparse ones are; null if they are the same.
  const std::uint32_t* sparse_cells() const { return lists_rows_ ? cells_.data() : nullptr; }
  // Likewise of one sparse place.
  std::span<const std::uint32_t> sparse_cells(std::uint32_t number) const {
    const auto [first, last] = ranges_[number];
    return {cells_.data() + (first - plain_size()), last - first};
  }

  // The cells of a place, from the first to before the last.
  std::pair<std::size_t, std::size_t> of(std::uint32_t number) const {
    const FeatureLayout& place = layout_[number];
    if (!lists_rows_ || place.kind != FeatureLayout::Kind::sparse)
      return {place.offset, place.offset + place.n_codes};
    return ranges_[number];
  }
  // All cells of a place, whose common code's follows from the node's totals.
  template <class Sums>
  const Sums* complete_cells(std::uint32_t number, const Sums* histogram, const Totals& node,
                             std::vector<Sums>& scratch) const {
    const FeatureLayout& place = layout_[number];
    if (!place.counts_only_differing()) return histogram + place.offset;
    scratch.assign(place.n_codes, Sums(Totals{}));
    if (lists_rows_ && place.kind == FeatureLayout::Kind::sparse) {
      for (std::size_t i = ranges_[number].first; i < ranges_[number].second; ++i)
        scratch[cells_[i - plain_size()] - place.offset] = histogram[i];
    } else {
      std::copy_n(histogram + place.offset, place.n_codes, scratch.data());
    }
    complete(place, node, scratch.data());
    return scratch.data();
  }

  bool lists_rows() const { return lists_rows_; }
  std::span<const Slot> rows_in(std::size_t cell) const {
    return {listed_.data() + begin_[cell], begin_[cell + 1] - begin_[cell]};
  }
  bool any_row_in(std::uint32_t number) const {
    const auto [first, last] = of(number);
    return begin_[first] != begin_[last];
  }
  // Calls with every row that has an entry of the place, and its code.
  template <class Use>
  void for_each_row(std::uint32_t number, Use&& use) const {
    const auto [first, last] = of(number);
    for (std::size_t i = first; i < last; ++i) {
      const std::size_t cell = i < plain_size() ? i : cells_[i - plain_size()];
      for (const Slot row : rows_in(i)) use(row, static_cast<Code>(cell - layout_[number].offset));
    }
  }

 private:
  explicit WorkingCells(const RowTable& rows)
      : rows_(rows),
        layout_(rows.layout),
        size_(layout_.histogram_size()),
        entries_(rows.entries()) {}

  void number_anew() {
    const std::size_t n = rows_.size(), n_plain = plain_size();
    WipedVector<std::uint32_t> n_rows(layout_.histogram_size()), number(n_rows.size());
    for (Slot row = 0; row < n; ++row)
      for (const std::uint32_t cell : rows_.sparse_codes(row)) ++n_rows[cell];
    ranges_.resize(layout_.size());
    begin_.push_back(0);
    const auto add = [&](std::size_t cell) {
      number[cell] = static_cast<std::uint32_t>(begin_.size() - 1);
      begin_.push_back(begin_.back() + n_rows[cell]);
    };
    for (std::size_t cell = 0; cell < n_plain; ++cell) add(cell);
    for (std::size_t i = layout_.first_sparse(); i < layout_.by_offset().size(); ++i) {
      const FeatureLayout& place = layout_[layout_.by_offset()[i]];
      const std::size_t first = begin_.size() - 1;
      for (std::uint32_t cell = place.offset; cell < place.offset + place.n_codes; ++cell) {
        if (n_rows[cell] == 0) continue;
        cells_.push_back(cell);
        add(cell);
      }
      ranges_[layout_.by_offset()[i]] = {first, begin_.size() - 1};
    }
    size_ = begin_.size() - 1;

    own_begin_.resize(n);
    own_entries_.resize(begin_.back());
    listed_.resize(begin_.back());
    std::vector<std::uint64_t> to(begin_.begin(), begin_.end() - 1);
    std::uint64_t at = 0;
    for (Slot row = 0; row < n; ++row) {
      own_begin_[row] = at;
      for (const std::uint32_t cell : rows_.sparse_codes(row)) {
        own_entries_[at++] = number[cell];
        listed_[to[number[cell]]++] = row;
      }
    }
    entries_ = {own_begin_.data(), rows_.sparse_count.data(), own_entries_.data()};
    lists_rows_ = true;
  }

  const RowTable& rows_;
  const CodeLayout& layout_;
  std::size_t size_;
  SparseEntries entries_;
  bool lists_rows_ = false;
  WipedVector<std::uint32_t> cells_;                         // of the layout, for each sparse one
  std::vector<std::pair<std::size_t, std::size_t>> ranges_;  // of sparse places, by number
  std::vector<std::uint64_t> begin_;                         // of a cell's rows in listed_
  Array<Slot> listed_;
  Array<std::uint64_t> own_begin_;    // entries row by row ...
  Array<std::uint32_t> own_entries_;  // ... with the cells' new numbers
};

}  // namespace graftboost
