// Views of the caller's table of raw values, dense or sparse.
//
// Both kinds have the same interface for reading single cells (at) and the non-zero cells of some
// columns (for_each_nonzero), so that code outside the hottest loops is written once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "data/column_index.hpp"

namespace graftboost {

// Borrows the memory. Strides are in elements and may be negative, so that any numpy layout fits.
template <class Number>
struct DenseTable {
  using Value = Number;

  const Value* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t column_stride = 0;

  const Value* row(std::size_t r) const {
    return data + static_cast<std::ptrdiff_t>(r) * row_stride;
  }
  Value at(std::size_t r, std::size_t c) const {
    return row(r)[static_cast<std::ptrdiff_t>(c) * column_stride];
  }

  // Calls use(number, value) for each of the selected columns in which row r is not 0. A missing
  // value is not 0. `selected` numbers columns as ColumnIndex does. The time is proportional to the
  // number of selected columns.
  template <class Columns, class Use>
  void for_each_nonzero(std::size_t r, const Columns& selected, Use&& use) const {
    for (std::size_t i = 0; i < selected.size(); ++i) {
      const Value value = at(r, selected[i]);
      if (value != 0) use(static_cast<std::uint32_t>(i), value);
    }
  }
};

// Borrows the memory of a table in which most cells are 0. Row r has the stored cells begin[r] to
// begin[r + 1] - 1, with ascending columns. Cells that are not stored are 0; a stored 0 is the same
// as a cell that is not stored.
template <class Number>
struct SparseTable {
  using Value = Number;

  const std::int64_t* begin = nullptr;
  const std::int32_t* column = nullptr;
  const Value* value = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;

  // Calls use(column, value) for every cell of row r that is not 0.
  template <class Use>
  void for_each(std::size_t r, Use&& use) const {
    for (std::int64_t i = begin[r]; i < begin[r + 1]; ++i) {
      if (value[i] != 0) use(static_cast<std::uint32_t>(column[i]), value[i]);
    }
  }
  Value at(std::size_t r, std::uint32_t c) const {
    const auto *first = column + begin[r], *last = column + begin[r + 1];
    const auto* found = std::lower_bound(first, last, static_cast<std::int32_t>(c));
    return found != last && *found == static_cast<std::int32_t>(c) ? value[found - column]
                                                                   : Value{0};
  }

  // As for dense tables. The time is proportional to the number of stored cells of the row.
  template <class Columns, class Use>
  void for_each_nonzero(std::size_t r, const Columns& selected, Use&& use) const {
    for_each(r, [&](std::uint32_t c, Value v) {
      const std::uint32_t number = selected.find(c);
      if (number != ColumnIndex::none) use(number, v);
    });
  }
};

template <class Table>
inline constexpr bool is_sparse_table = std::is_same_v<Table, SparseTable<typename Table::Value>>;

}  // namespace graftboost
