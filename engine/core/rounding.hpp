// Rounding and conversion of numbers in loops that the compiler can vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace graftboost {

// The same as std::nearbyint for |x| < 2^51, without a call: after adding 1.5 * 2^52 no bits are
// left for a fraction.
inline double round_to_even(double x) {
  constexpr double shift = 0x1.8p52;
  return (x + shift) - shift;
}

// Converts an integer with |x| < 2^51 to double in the same way. Unlike a conversion of 64-bit
// integers, this vectorises.
inline constexpr std::int64_t most_shiftable = std::int64_t{1} << 51;
inline double shifted_to_double(std::int64_t x) {
  constexpr double shift = 0x1.8p52;
  return std::bit_cast<double>(x + std::bit_cast<std::int64_t>(shift)) - shift;
}

}  // namespace graftboost
