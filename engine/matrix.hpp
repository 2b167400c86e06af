// The caller's table of raw values, seen without a copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace graftboost {

// Borrows the memory; strides are in elements, so any numpy layout fits.
template <class Value>
struct Matrix {
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

}  // namespace graftboost
