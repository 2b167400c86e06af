// Sparse features column by column: who has one, in place of what a row has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "array.hpp"
#include "rows.hpp"

namespace graftboost {

// For each cell of a histogram, the rows that have an entry of it, ascending. To send the rows of a node
// left or right, looking through a feature's few entries once is quicker than looking through each row's
// many; and so is adding up the cells one by one, where all rows count. Made for training, when every
// feature's turn comes; valid while the rows do not change.
class SparseColumns {
 public:
  explicit SparseColumns(const Rows& rows) : begin_(rows.layout.histogram_size() + 1) {
    if (!rows.has_sparse()) return;
    for (Slot row = 0; row < rows.size(); ++row)
      for (const std::uint32_t cell : rows.sparse_codes(row)) ++begin_[cell + 1];
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    rows_.resize(begin_.back());
    std::vector<std::size_t> to(begin_.begin(), begin_.end() - 1);
    for (Slot row = 0; row < rows.size(); ++row)
      for (const std::uint32_t cell : rows.sparse_codes(row)) rows_[to[cell]++] = row;
  }

  // Of all cells below this one.
  std::size_t n_below(std::size_t cell) const { return begin_[cell]; }
  std::span<const Slot> rows_in(std::size_t cell) const {
    return {rows_.data() + begin_[cell], begin_[cell + 1] - begin_[cell]};
  }

  bool empty(const CodeLayout::Place& place) const {
    return begin_[place.offset] == begin_[place.offset + place.n_codes];
  }
  // Calls with every row that has an entry of the place, and its code.
  template <class Use>
  void for_each(const CodeLayout::Place& place, Use&& use) const {
    for (std::uint32_t code = 0; code < place.n_codes; ++code)
      for (const Slot row : rows_in(place.offset + code)) use(row, static_cast<Code>(code));
  }

 private:
  std::vector<std::size_t> begin_;  // of a cell's rows
  Array<Slot> rows_;
};

}  // namespace graftboost
