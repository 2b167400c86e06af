// How the values of a column are distributed over rows.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/array.hpp"
#include "core/wiping.hpp"

namespace graftboost {

// Unsigned keys in the order of the floating-point values. Both zeros have the same key.
inline std::uint32_t ordered_key(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0f);
  return bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
}
inline std::uint64_t ordered_key(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return bits ^ ((bits >> 63) ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}

// The distinct values of a column and how many rows have each of them. Distributions of disjoint
// sets of rows can be merged; the result is the same as if all rows had been read together.
//
// `values` ascends and contains no missing value. first[i] is the number of rows whose value is
// below values[i]; `size` is the number of rows with a value.
struct Distribution {
  WipedVector<double> values;
  std::vector<std::size_t> first;
  std::size_t size = 0;
  std::size_t n_zeros = 0;
  std::size_t n_missing = 0;

  std::size_t n_rows() const { return size + n_missing; }
  std::size_t count(std::size_t i) const {
    return (i + 1 < values.size() ? first[i + 1] : size) - first[i];
  }
};

// From the keys of values, in any order, which are sorted with the help of `scratch`. The zeros of
// sparse columns are not among the keys: `n_zeros` is their number, and 0 if the keys contain
// zeros.
Distribution distribution_of(Array<std::uint32_t>& keys, std::size_t n_zeros, std::size_t n_missing,
                             Array<std::uint32_t>& scratch);
Distribution distribution_of(Array<std::uint64_t>& keys, std::size_t n_zeros, std::size_t n_missing,
                             Array<std::uint64_t>& scratch);

Distribution merge(const Distribution& a, const Distribution& b);

}  // namespace graftboost
