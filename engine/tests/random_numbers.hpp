// Pseudo-random numbers that are the same on every platform.
#pragma once

#include <cstdint>

#include "core/hashing.hpp"

namespace graftboost::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}

  std::uint64_t bits() { return mix(state_++); }
  double fraction() { return as_fraction(bits()); }
  bool chance(double probability) { return fraction() < probability; }
  // In [0, n).
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }
  // Bell-shaped, in (-6, 6).
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += fraction();
    return sum;
  }

 private:
  std::uint64_t state_;
};

}  // namespace graftboost::testing
