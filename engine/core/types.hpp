// The words of the engine: what a row, a gradient, a sum and a split are, and on which grids they lie.
//
// Everything a row contributes to a tree is an integer. Integer sums have no order, so threads, the
// order of rows and the history of updates cannot change them, and taking a row out leaves exactly
// what was there without it.
#pragma once

#include <cstdint>

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

// "Goes left" for every kind of split is one comparison of codes modulo 2^16:
//
//     left  <=>  code - low  <=  span
//
//   value <= edge j, missing right    low = 1      span = j - 1     codes 1..j
//   value <= edge j, missing left     low = 0      span = j         codes 0..j
//   is category c                     low = c + 1  span = 0         code c + 1
//   is missing (categorical)          low = 0      span = 0         code 0
struct Split {
  std::uint32_t feature = 0;
  Code low = 0;
  Code span = 0;

  bool goes_left(Code code) const { return static_cast<Code>(code - low) <= span; }
  friend bool operator==(const Split&, const Split&) = default;
};

}  // namespace graftboost
