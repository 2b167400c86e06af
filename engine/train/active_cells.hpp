// The cells of a histogram while trees grow.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/array.hpp"
#include "data/row_table.hpp"
#include "train/split_evaluation.hpp"

namespace graftboost {

// A numbering of histogram cells that all shards share.
//
// Most codes of most sparse features occur in no row. While all trees are trained, histograms
// therefore hold only the cells that some row falls into, renumbered in the same order:
//
//     layout     plain cells | . . x | . . x x | . . . | . . . x |
//     active     plain cells | x | x x | x |
//
// Finding them takes a pass over all rows. To regrow a part of a tree, all cells of the layout are
// active.
class ActiveCells {
 public:
  explicit ActiveCells(const CodeLayout& layout)
      : layout_(layout), size_(layout.histogram_size()) {}
  // `n_rows_in` has the number of rows in each cell of the layout, over all shards.
  ActiveCells(const CodeLayout& layout, const WipedVector<std::uint32_t>& n_rows_in);

  std::size_t size() const { return size_; }
  std::size_t plain_size() const { return layout_.plain_size(); }
  bool is_renumbered() const { return is_renumbered_; }
  const CodeLayout& layout() const { return layout_; }
  // The cells of the layout that the active sparse cells are; null if all are active.
  const std::uint32_t* sparse_cells() const { return is_renumbered_ ? cells_.data() : nullptr; }
  // The layout's cell of an active one.
  std::size_t cell(std::size_t active) const {
    return active < plain_size() || !is_renumbered_ ? active : cells_[active - plain_size()];
  }

  // The active cells of a feature: from the first to before the last.
  std::pair<std::size_t, std::size_t> of(std::uint32_t number) const {
    const FeatureLayout& feature = layout_[number];
    if (!is_renumbered_ || feature.kind != FeatureLayout::Kind::sparse)
      return {feature.offset, feature.offset + feature.n_codes};
    return ranges_[number];
  }
  template <class Sums>
  FeatureCells<Sums> view(std::uint32_t number, const Sums* histogram) const {
    const FeatureLayout& feature = layout_[number];
    const auto [first, last] = of(number);
    if (is_renumbered_ && feature.kind == FeatureLayout::Kind::sparse)
      return {
          histogram + first, {cells_.data() + (first - plain_size()), last - first}, true, false};
    return {histogram + first, {}, false, !feature.counts_only_differing()};
  }

 private:
  const CodeLayout& layout_;
  std::size_t size_;
  bool is_renumbered_ = false;
  WipedVector<std::uint32_t> cells_;                         // of the layout, for each sparse one
  std::vector<std::pair<std::size_t, std::size_t>> ranges_;  // of sparse features, by number
};

// The rows of one shard by active cell, and the active cells of each row.
//
// To send the rows of a node left or right by a sparse feature, one pass over the feature's few
// entries is faster than a search in the many entries of each row. The same holds for counting the
// root, which all rows reach. Valid while the rows do not change.
class ActiveEntries {
 public:
  ActiveEntries(const RowTable& rows, const ActiveCells& cells);
  ActiveEntries(ActiveEntries&&) = default;
  ActiveEntries(const ActiveEntries&) = delete;

  const SparseEntries& entries() const { return entries_; }
  bool lists_rows() const { return lists_rows_; }
  std::span<const Slot> rows_in(std::size_t active) const {
    return {listed_.data() + begin_[active], begin_[active + 1] - begin_[active]};
  }
  bool any_row_in(std::uint32_t number) const {
    const auto [first, last] = cells_.of(number);
    return begin_[first] != begin_[last];
  }
  // Calls use(row, code) for every row that has an entry of the feature.
  template <class Use>
  void for_each_row(std::uint32_t number, Use&& use) const {
    const auto [first, last] = cells_.of(number);
    const std::uint32_t offset = cells_.layout()[number].offset;
    for (std::size_t i = first; i < last; ++i) {
      for (const Slot row : rows_in(i)) use(row, static_cast<Code>(cells_.cell(i) - offset));
    }
  }

 private:
  const ActiveCells& cells_;
  SparseEntries entries_;
  bool lists_rows_ = false;
  std::vector<std::uint64_t> begin_;  // of a cell's rows in listed_
  Array<Slot> listed_;
  Array<std::uint64_t> own_begin_;    // entries row by row ...
  Array<std::uint32_t> own_entries_;  // ... as active cells
};

}  // namespace graftboost
