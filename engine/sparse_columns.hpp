// Sparse features column by column: who has one, in place of what a row has.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "array.hpp"
#include "rows.hpp"

namespace graftboost {

// To send the rows of a node left or right, looking through a feature's few cells once is quicker than
// looking through each row's many. Made for training, when every feature's turn comes; valid while the
// rows do not change.
class SparseColumns {
 public:
  explicit SparseColumns(const Rows& rows) : begin_(rows.layout.n_places() + 1) {
    if (!rows.has_sparse()) return;
    const auto& order = rows.layout.by_offset();
    // The place of a cell: entries ascend, so one walk along the places does for a row.
    const auto each = [&](Slot row, auto&& use) {
      std::size_t at = 0;
      for (const std::uint32_t entry : rows.sparse_codes(row)) {
        while (at + 1 < order.size() && rows.layout[order[at + 1]].offset <= entry) {
          at = step(rows.layout, at, entry);
        }
        use(order[at], static_cast<Code>(entry - rows.layout[order[at]].offset));
      }
    };
    for (Slot row = 0; row < rows.size(); ++row)
      each(row, [&](std::uint32_t number, Code) { ++begin_[number + 1]; });
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    cells_.resize(begin_.back());
    std::vector<std::size_t> to(begin_.begin(), begin_.end() - 1);
    for (Slot row = 0; row < rows.size(); ++row)
      each(row, [&](std::uint32_t number, Code code) { cells_[to[number]++] = {row, code}; });
  }

  bool empty(std::uint32_t number) const { return begin_[number] == begin_[number + 1]; }
  // Calls with every row that has a cell of the place kept apart, and its code.
  template <class Use>
  void for_each(std::uint32_t number, Use&& use) const {
    for (std::size_t i = begin_[number]; i < begin_[number + 1]; ++i)
      use(cells_[i].row, cells_[i].code);
  }

 private:
  struct Cell {
    Slot row;
    Code code;
  };

  // Further along the places, not beyond the one that the entry is of: in steps that double.
  static std::size_t step(const CodeLayout& layout, std::size_t at, std::uint32_t entry) {
    const auto& order = layout.by_offset();
    std::size_t by = 1;
    while (at + 2 * by < order.size() && layout[order[at + 2 * by]].offset <= entry) by *= 2;
    return at + by;
  }

  std::vector<std::size_t> begin_;  // of a place's cells, by its number
  Array<Cell> cells_;
};

}  // namespace graftboost
