// The caller's table of raw values, seen without a copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace graftboost {

// Borrows the memory; strides are in elements, so any numpy layout fits.
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
};

// The same with most cells 0, of which only the others need be there: row r has cells begin[r] to
// begin[r + 1], their columns ascending. A cell that is there and 0 is as good as none.
template <class Number>
struct SparseTable {
  using Value = Number;

  const std::int64_t* begin = nullptr;
  const std::int32_t* column = nullptr;
  const Value* value = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;

  // Calls with the column and the value of every cell of a row that is not 0.
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
};

}  // namespace graftboost
