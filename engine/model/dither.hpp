// The random shift of gradients before they are rounded to two bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/hashing.hpp"
#include "core/types.hpp"

namespace graftboost {

// A gradient of a class is shifted by its dither, up to half a unit of the grid either way, and then
// rounded to the nearest. That is right on average, so the errors of many rows cancel; without, all
// rows with the same score would have the same error. A hash of (seed, tree, row id) decides, so
// what a row records depends neither on the order of rows nor on shards and threads, and a row that
// is removed and added again records the same.
//
// A row has a key, a tree has another, and two 32-bit multiplications make a dither of them: this is
// computed for every row in every tree, and must vectorise.
namespace dither {

inline constexpr std::uint64_t purpose = 0x646974686572;  // no tree has such a number

using Key = std::uint32_t;

inline Key of_tree(std::uint64_t seed, std::size_t tree) {
  return static_cast<Key>(hash(seed, purpose, tree) >> 32);
}
[[gnu::always_inline]] inline Key of_row(RowId id) {
  const auto bits = static_cast<std::uint64_t>(id);
  return static_cast<Key>(bits) ^ (static_cast<Key>(bits >> 32) * 0x9e3779b1u);
}
// From -1/2 up to, but not including, 1/2.
[[gnu::always_inline]] inline double of(Key tree, Key row) {
  Key x = tree ^ row;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return static_cast<double>(static_cast<std::int32_t>(x)) * 0x1p-32;
}

}  // namespace dither
}  // namespace graftboost
