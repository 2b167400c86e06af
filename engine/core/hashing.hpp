// Hashing, the only source of randomness.
#pragma once

#include <cstdint>

namespace graftboost {

// Every random number is a hash of (seed, purpose, index), never the next number of a shared
// stream, so that it depends neither on threads nor on the order of rows.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline std::uint64_t hash(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  return mix(mix(mix(seed) + a) + b);
}
// A hash as a number in [0, 1), from its upper 53 bits.
inline double as_fraction(std::uint64_t hashed) {
  return static_cast<double>(hashed >> 11) * 0x1p-53;
}

}  // namespace graftboost
