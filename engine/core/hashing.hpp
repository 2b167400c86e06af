// The one source of randomness: hashes of what a number is for.
#pragma once

#include <cstdint>

namespace graftboost {

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
