// Rounding and conversion of numbers in ways that vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace graftboost {

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

}  // namespace graftboost
