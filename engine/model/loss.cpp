#include "model/loss.hpp"

#include <array>
#include <bit>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace graftboost {
namespace {

constexpr double probability_one = 1 << Loss::probability_bits;
constexpr double largest_probability = probability_one - 1;

}  // namespace

double Loss::leaf_value(const Totals& sums, double learning_rate, double l2) const {
  const double g = static_cast<double>(sums.g) * gradient_unit();
  const double h = static_cast<double>(sums.h) * hessian_unit() + l2;
  if (!(h > 0)) return 0;
  const double step = std::clamp(-(g / h), -largest_step(), largest_step());
  return on_leaf_grid(step * (learning_rate * class_factor()));
}

double power_of_two_below(double x) { return std::ldexp(1.0, std::ilogb(x)); }

double power_of_two_above(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
}

// Uses the middle and the extent: a mean and a deviation would depend on the order of rows.
bool Loss::set_scale(double least_target, double most_target) {
  const double middle = least_target / 2 + most_target / 2;
  double extent = most_target / 2 - least_target / 2;
  if (extent == 0) extent = middle != 0 ? std::abs(middle) : 1;
  const double fitting = power_of_two_above(extent / widest_target_at_fit);
  if (fitting == 0 || !std::isfinite(1 / fitting)) return false;
  centre = middle;
  scale = fitting;
  return true;
}

namespace {

// At most six significant digits; std::to_string writes 1e300 with 301 digits.
std::string in_words(double x) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.6g", x);
  return text.data();
}

int bit_width(unsigned __int128 x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(x));
}

}  // namespace

std::int32_t Loss::target_on_grid(double y) const {
  if (kind != LossKind::squared) return static_cast<std::int32_t>(y);
  const double scaled = (y - centre) / scale;
  if (!(std::abs(scaled) <= widest_target)) {
    throw std::invalid_argument(
        "y: a value lies too far from the targets seen at fit; this model can hold " +
        in_words(centre - widest_target * scale) + " to " +
        in_words(centre + widest_target * scale) + ". Fit a new model with it among the rows");
  }
  return static_cast<std::int32_t>(std::nearbyint(scaled / target_grid));
}

// Everything here is a sum or an order statistic of integers, so it does not depend on the order of
// rows.
namespace {

// The median of positive weights in whole units; the lower one of two.
Weight median_in_units(const WeightStatistics& weights, std::uint64_t n, double top, int bits) {
  constexpr int step_bits = std::bit_width(WeightStatistics::n_counts) - 1;
  std::uint64_t rank = (n - 1) / 2;
  std::int32_t from = 0;
  for (int shift = step_bits; shift >= 0; shift -= step_bits) {
    const std::vector<std::uint64_t> counts = weights.count({top, bits, from, shift});
    std::int32_t step = 0;
    for (; rank >= counts[static_cast<std::size_t>(step)]; ++step)
      rank -= counts[static_cast<std::size_t>(step)];
    from += step << shift;
  }
  return from;
}

}  // namespace

void Loss::set_weight_scale(const WeightStatistics& weights) {
  constexpr int precision = WeightStatistics::precision;
  const int most_bits = kind == LossKind::squared ? 20 : 24;
  const double top = power_of_two_below(weights.largest());
  const WeightStatistics::Sum sum = weights.sum(top);
  // The finest unit for which the sums do not overflow, as a fraction of `top`.
  const int room = std::bit_width(static_cast<std::uint64_t>(most_weight() / 2)) - 1;
  const int bits = std::clamp(room + precision - bit_width(sum.weight - 1), 0, most_bits);
  const double typical = median_in_units(weights, sum.n_positive, top, bits);
  weighted = true;
  // The smallest doubles have no power of two so far below them.
  weight_scale = std::max(std::ldexp(top, std::ilogb(typical) - bits),
                          std::numeric_limits<double>::denorm_min());
  weight_unit = std::ldexp(top / weight_scale, -bits);
  typical_weight = typical * weight_unit;
}

Weight Loss::weight_on_grid(double weight) const {
  if (weight == 0) return 0;
  const double units = std::max(1.0, std::nearbyint(weight / weight_scale / weight_unit));
  if (units > largest_weight) {
    throw std::invalid_argument(
        "sample_weight: a weight is too large beside the weights seen at fit; this model can hold "
        "weights up to " +
        in_words(largest_weight * weight_unit * weight_scale) +
        " (a row without a weight has weight 1). Fit a new model with it among the rows");
  }
  return static_cast<Weight>(units);
}

std::vector<double> Loss::base_scores(const TargetSums& sums) const {
  if (kind == LossKind::squared) {
    const double mean = static_cast<double>(sums.sum) / static_cast<double>(sums.weight);
    return {on_leaf_grid(mean * target_grid)};
  }
  // A class without rows counts half a row, and one without weight a fraction of a typical weight,
  // less than any positive weight, so that its probability is small but not zero.
  const double least = weighted ? 0x1p-25 * typical_weight / weight_unit : 0.5;
  const auto share = [&](int k) {
    return std::max(static_cast<double>(sums.classes[static_cast<std::size_t>(k)]), least);
  };
  if (kind == LossKind::logistic) return {on_leaf_grid(std::log(share(1) / share(0)))};
  double total = 0;
  for (int k = 0; k < n_classes; ++k) total += share(k);
  std::vector<double> scores;
  for (int k = 0; k < n_classes; ++k) scores.push_back(on_leaf_grid(std::log(share(k) / total)));
  return scores;
}

void Loss::slopes(std::int32_t target, std::span<const double> scores, double* slopes) const {
  const auto minus = [](double p, bool is_class) { return p - (is_class ? 1.0 : 0.0); };
  switch (kind) {
    case LossKind::logistic:
      slopes[0] = minus(1.0 / (1.0 + std::exp(-scores[0])), target == 1);
      return;
    case LossKind::softmax: {
      const double top = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double score : scores) sum += std::exp(score - top);
      for (std::size_t k = 0; k < scores.size(); ++k) {
        const bool is_class = static_cast<std::size_t>(target) == k;
        slopes[k] = minus(std::exp(scores[k] - top) / sum, is_class);
      }
      return;
    }
    case LossKind::squared:
      slopes[0] = squared_gradient(target, scores[0]) * target_grid;
  }
}

Gradient Loss::squared_gradient(std::int32_t target, double score) {
  constexpr double most = 1 << squared_gradient_bits;
  return static_cast<Gradient>(
      std::clamp(round_to_even(score / target_grid) - target, -most, most));
}

Gradient Loss::rounded(double slope, double dither) const {
  if (kind == LossKind::squared) return static_cast<Gradient>(slope / target_grid);
  const double g = round_to_even(slope * probability_one + dither);
  return static_cast<Gradient>(std::clamp(g, -largest_probability, largest_probability));
}

double Loss::of_row(std::int32_t target, std::span<const double> scores) const {
  switch (kind) {
    case LossKind::logistic: {
      const double margin = target == 1 ? scores[0] : -scores[0];
      return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
    }
    case LossKind::softmax: {
      const double top = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double s : scores) sum += std::exp(s - top);
      return std::log(sum) + top - scores[static_cast<std::size_t>(target)];
    }
    case LossKind::squared:
      break;
  }
  const double residual = scores[0] - target * target_grid;
  return residual * residual / 2;
}

}  // namespace graftboost
