// What the scale of weights depends on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace graftboost {

// The weights of all rows, of which at least one is positive, wherever the rows are. The answers
// are maxima and sums of integers, so they do not depend on how rows are distributed over shards.
class WeightStatistics {
 public:
  static constexpr int precision = 40;  // bits of a weight below the largest
  static constexpr std::size_t n_counts = std::size_t{1} << 13;

  struct Sum {
    unsigned __int128 weight = 0;  // in units of `top` * 2^-precision
    std::uint64_t n_positive = 0;
  };
  // Positive weights, in whole units of `top` * 2^-bits, from `from` on: how many are less than
  // 2^shift above it, how many less than twice that, and so on.
  struct Steps {
    double top;
    std::int32_t bits, from, shift;
  };

  virtual double largest() const = 0;
  // `top` is a power of two that is not above the largest weight, but above its half.
  virtual Sum sum(double top) const = 0;
  virtual std::vector<std::uint64_t> count(const Steps& steps) const = 0;

 protected:
  ~WeightStatistics() = default;
};

// A positive weight in whole units: at least one.
Weight weight_in_units(double weight, double top, int bits);

// Of weights in memory, in several arrays.
class WeightsInMemory final : public WeightStatistics {
 public:
  explicit WeightsInMemory(std::vector<std::span<const double>> weights)
      : weights_(std::move(weights)) {}

  double largest() const override;
  Sum sum(double top) const override;
  std::vector<std::uint64_t> count(const Steps& steps) const override;

 private:
  template <class Use>
  void each(Use&& use) const {
    for (const std::span<const double> part : weights_)
      for (const double weight : part) use(weight);
  }

  std::vector<std::span<const double>> weights_;
};

}  // namespace graftboost
