#include "model/weights.hpp"

#include <algorithm>
#include <cmath>

namespace graftboost {

Weight weight_in_units(double weight, double top, int bits) {
  return static_cast<Weight>(std::max(1.0, std::nearbyint(std::ldexp(weight / top, bits))));
}

double WeightsInMemory::largest() const {
  double largest = 0;
  each([&](double weight) { largest = std::max(largest, weight); });
  return largest;
}

WeightStatistics::Sum WeightsInMemory::sum(double top) const {
  Sum sum;
  each([&](double weight) {
    sum.weight += static_cast<std::uint64_t>(std::nearbyint(std::ldexp(weight / top, precision)));
    sum.n_positive += weight != 0;
  });
  return sum;
}

std::vector<std::uint64_t> WeightsInMemory::count(const Steps& steps) const {
  std::vector<std::uint64_t> counts(n_counts);
  each([&](double weight) {
    if (weight == 0) return;
    const Weight above = weight_in_units(weight, steps.top, steps.bits) - steps.from;
    const std::size_t step = static_cast<std::size_t>(above) >> steps.shift;
    if (above >= 0 && step < n_counts) ++counts[step];
  });
  return counts;
}

}  // namespace graftboost
