// The words of the engine: what a row, a gradient, a sum and a test are, and on which grids they lie.
//
// Everything a row contributes to a tree is an integer. Integer sums have no order, so threads, the
// order of rows and the history of updates cannot change them, and taking a row out leaves exactly
// what was there without it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace graftboost {

using Slot = std::uint32_t;     // where a row lives inside the engine; users know rows by RowId
using RowId = std::int64_t;     // never shifts, whatever is added or removed
using Code = std::uint16_t;     // the candidate interval (or category) of a cell; 0 is "missing"
using Gradient = std::int32_t;  // a recorded gradient, on its loss's fixed grid
using Weight = std::int32_t;    // a row's weight as a multiple of the model's weight unit
using NodeIndex =
    std::int32_t;  // position of a node in its tree; children of split s are 2s+1, 2s+2

inline constexpr Code missing_code = 0;
inline constexpr NodeIndex no_node = -1;

// Leaf values lie on a grid of 2^-32, so that sums of them are exact in double and a row's score
// does not depend on the order in which it was put together.
inline constexpr double leaf_value_grid = 0x1p-32;
inline constexpr double largest_leaf_value = 0x1p15;

// A split needs this much gain: below, it is rounding.
inline constexpr double least_gain = 1e-9;

// Sum over a set of rows of their contributions, wide enough for any model.
struct Totals {
  std::int64_t g = 0;
  std::int64_t h = 0;
  std::int64_t n = 0;

  Totals& operator+=(const Totals& other) {
    g += other.g, h += other.h, n += other.n;
    return *this;
  }
  Totals& operator-=(const Totals& other) {
    g -= other.g, h -= other.h, n -= other.n;
    return *this;
  }
  friend Totals operator+(Totals a, const Totals& b) { return a += b; }
  friend Totals operator-(Totals a, const Totals& b) { return a -= b; }
  friend bool operator==(const Totals&, const Totals&) = default;
};

// The same in sixteen bytes, for a cell of a histogram: g in one lane, h and n share the other,
//
//     lane 0    g
//     lane 1    h (41 bits) | n (23 bits)
//
// One 128-bit add a cell. A row's h is at most 2^18, so that the h of 2^23 - 1 unweighted rows just fits
// into its 41 bits if the lane has no sign. Lanes wrap around: differences of sums of which one contains
// the other are exact whatever happens on the way.
class PackedSums {
  using Lanes [[gnu::vector_size(16)]] = std::uint64_t;

 public:
  static constexpr int count_bits = 23;
  static constexpr std::int64_t most_rows = (std::int64_t{1} << count_bits) - 1;
  static constexpr std::int64_t most_hessian_of_row = std::int64_t{1} << (64 - 2 * count_bits);

  PackedSums() = default;
  explicit PackedSums(const Totals& t)
      : lanes_{static_cast<std::uint64_t>(t.g),
               (static_cast<std::uint64_t>(t.h) << count_bits) + static_cast<std::uint64_t>(t.n)} {}
  explicit operator Totals() const {
    return {static_cast<std::int64_t>(lanes_[0]), hessian_in(lanes_[1]), rows_in(lanes_[1])};
  }

  // As two integers: g, and the lane that h and n share.
  void store(std::uint64_t* two) const { std::memcpy(two, &lanes_, sizeof(lanes_)); }
  static std::int64_t hessian_in(std::uint64_t lane) {
    return static_cast<std::int64_t>(lane >> count_bits);
  }
  static std::int64_t rows_in(std::uint64_t lane) {
    return static_cast<std::int64_t>(lane & std::uint64_t{most_rows});
  }

  PackedSums& operator+=(const PackedSums& other) {
    lanes_ += other.lanes_;
    return *this;
  }
  PackedSums& operator-=(const PackedSums& other) {
    lanes_ -= other.lanes_;
    return *this;
  }
  friend PackedSums operator-(PackedSums a, const PackedSums& b) { return a -= b; }
  friend bool operator==(const PackedSums& a, const PackedSums& b) {
    return ((a.lanes_[0] ^ b.lanes_[0]) | (a.lanes_[1] ^ b.lanes_[1])) == 0;
  }

 private:
  Lanes lanes_{0, 0};
};

// With weights, or with more rows than PackedSums can count, a cell takes the full Totals.
using WideSums = Totals;

// "Goes left" for every kind of split is one comparison of codes modulo 2^16:
//
//     left  <=>  code - low  <=  span
//
//   value <= edge j, missing right    low = 1      span = j - 1     codes 1..j
//   value <= edge j, missing left     low = 0      span = j         codes 0..j
//   is category c                     low = c + 1  span = 0         code c + 1
//   is missing (categorical)          low = 0      span = 0         code 0
struct Test {
  std::uint32_t feature = 0;
  Code low = 0;
  Code span = 0;

  bool left(Code code) const { return static_cast<Code>(code - low) <= span; }
  friend bool operator==(const Test&, const Test&) = default;
};

// std::nearbyint for |x| < 2^51, to the last bit, without a call: adding 1.5 * 2^52 leaves no bits
// for a fraction.
inline double round_to_even(double x) {
  constexpr double shift = 0x1.8p52;
  return (x + shift) - shift;
}

// For |x| < 2^51 the double of an integer by the same trick, which vectorises where a conversion of
// 64-bit integers does not.
inline constexpr std::int64_t most_shiftable = std::int64_t{1} << 51;
inline double shifted_to_double(std::int64_t x) {
  constexpr double shift = 0x1.8p52;
  return std::bit_cast<double>(x + std::bit_cast<std::int64_t>(shift)) - shift;
}

// All randomness is a hash of (seed, what it is for, which one), never a shared stream.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline std::uint64_t hash(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  return mix(mix(mix(seed) + a) + b);
}
// A hash seen as a number in [0, 1).
inline double as_fraction(std::uint64_t hashed) {
  return static_cast<double>(hashed >> 11) * 0x1p-53;
}

}  // namespace graftboost
