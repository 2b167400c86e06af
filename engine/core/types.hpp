// The basic types of the engine and the grids on which values lie.
//
// Everything that a row contributes to a tree is an integer. Sums of integers depend neither on
// threads, on the order of rows nor on the history of updates, and removing a row leaves exactly
// the sums of the other rows.
#pragma once

#include <cstdint>

namespace graftboost {

using Slot = std::uint32_t;     // position of a row in the engine's arrays; changes when rows move
using RowId = std::int64_t;     // the user's identifier of a row; never changes
using Code = std::uint16_t;     // the candidate interval (or category) of a cell; 0 is "missing"
using Gradient = std::int32_t;  // a recorded gradient, on the fixed grid of its loss
using NarrowGradient = std::int16_t;  // the same in the arrays of a loss of classes
using Weight = std::int32_t;  // the weight of a row as a multiple of the model's weight unit
using NodeIndex =
    std::int32_t;  // position in a tree; the children of split s are 2s + 1 and 2s + 2

inline constexpr Code missing_code = 0;
inline constexpr NodeIndex no_node = -1;

// Leaf values are multiples of 2^-32, so that their sums are exact in double precision and the
// score of a row does not depend on the order of addition.
inline constexpr double leaf_value_grid = 0x1p-32;
inline constexpr double largest_leaf_value = 0x1p15;

// For every kind of split, one comparison of codes modulo 2^16 decides whether a row goes left:
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
