#include "model/loss.hpp"

#include <array>
#include <bit>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "core/vectorise.hpp"

namespace graftboost {
namespace {

constexpr double probability_one = 1 << Loss::probability_bits;
constexpr double largest_probability = probability_one - 1;

// e^x for |x| <= 700 with a relative error below 2^-45 + |x| 2^-52, in operations that vectorise.
// The second part is of no account: where |x| is large, probabilities are close to 0 or 1.
constexpr double approximate_range = 700;
[[gnu::always_inline]] inline double approximate_exp(double x) {
  constexpr double log2_e = 0x1.71547652b82fep0, ln2 = 0x1.62e42fefa39efp-1;
  // As in round_to_even; the last bits of the sum are those of the nearest integer.
  constexpr double shift = 0x1.8p52;
  const double shifted = x * log2_e + shift;
  const double r = x - (shifted - shift) * ln2;  // |r| <= ln2 / 2
  // The Taylor series to r^11, whose next term is below 2^-47. Even and odd powers are added up
  // separately, so that the two sums are computed at the same time.
  const double s = r * r;
  const double even =
      1 + s * (1. / 2 + s * (1. / 24 + s * (1. / 720 + s * (1. / 40320 + s * (1. / 3628800)))));
  const double odd =
      1 + s * (1. / 6 + s * (1. / 120 + s * (1. / 5040 + s * (1. / 362880 + s * (1. / 39916800)))));
  const std::uint64_t power = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  return (even + r * odd) * std::bit_cast<double>(power);
}

// Rounding to the gradient grid hides the error of approximate_exp unless the exact value, with its
// dither, is close to half a unit from an integer. The distance of a row's value from the nearest
// integer is its doubt. Rows with more doubt than this, about one in 500,000, are computed by
// definition. The margin is a thousand times the error, so the error need not be known precisely.
constexpr double largest_doubt = 0.5 - 0x1p-20;

constexpr std::size_t stretch = RecordScratch::stretch;
using Stretch = RecordScratch::Stretch;

GRAFTBOOST_ALSO_AVX2
void raise_stretch(const double* x, double* top) {
  for (std::size_t i = 0; i < stretch; ++i) top[i] = std::max(top[i], x[i]);
}

// e^(sign * score - top), which is also added to `sum`. Beyond the range, probabilities differ from
// 0 or 1 by less than any rounding.
GRAFTBOOST_ALSO_AVX2
void exp_stretch(const double* score, double sign, const double* top, double* out, double* sum) {
  for (std::size_t i = 0; i < stretch; ++i) {
    const double x = sign * score[i] - top[i];
    out[i] = approximate_exp(std::min(std::max(x, -approximate_range), approximate_range));
    sum[i] += out[i];
  }
}

GRAFTBOOST_ALSO_AVX2
void invert_stretch(double* x) {
  for (std::size_t i = 0; i < stretch; ++i) x[i] = 1 / x[i];
}

GRAFTBOOST_ALSO_AVX2
void key_stretch(const RowId* ids, dither::Key* keys) {
  for (std::size_t i = 0; i < stretch; ++i) keys[i] = dither::of_row(ids[i]);
}

GRAFTBOOST_ALSO_AVX2
void gradient_stretch(const double* part, const double* inverse, const std::int32_t* target,
                      std::int32_t label, const dither::Key* row_key, dither::Key tree_key,
                      NarrowGradient* out, double* doubt) {
  for (std::size_t i = 0; i < stretch; ++i) {
    const double slope = part[i] * inverse[i] - (target[i] == label ? 1.0 : 0.0);
    const double g = slope * probability_one + dither::of(tree_key, row_key[i]);
    const double rounded = round_to_even(g);
    doubt[i] = std::max(doubt[i], std::abs(g - rounded));
    // |g| is at most 2^15: clamped as an integer, of which a register holds more.
    constexpr Gradient most = (1 << Loss::probability_bits) - 1;
    out[i] = static_cast<NarrowGradient>(
        std::min(std::max(static_cast<Gradient>(rounded), -most), most));
  }
}

GRAFTBOOST_ALSO_AVX2
std::int64_t n_doubtful(const double* doubt) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < stretch; ++i) n += doubt[i] < largest_doubt ? 0 : 1;
  return n;
}

Gradient squared_gradient(std::int32_t target, double score) {
  constexpr double most = 1 << Loss::squared_gradient_bits;
  return static_cast<Gradient>(
      std::clamp(round_to_even(score / Loss::target_grid) - target, -most, most));
}

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
void Loss::set_weight_scale(std::span<const std::span<const double>> weights) {
  constexpr int precision = 40;  // bits of a weight below the largest
  const int most_bits = kind == LossKind::squared ? 20 : 24;
  const auto each = [&](auto&& use) {
    for (const std::span<const double> part : weights)
      for (const double weight : part) use(weight);
  };
  double largest = 0;
  each([&](double weight) { largest = std::max(largest, weight); });
  const double top = power_of_two_below(largest);
  unsigned __int128 sum = 0;
  std::size_t n = 0;
  each([&](double weight) {
    sum += static_cast<std::uint64_t>(std::nearbyint(std::ldexp(weight / top, precision)));
    n += weight != 0;
  });
  // The finest unit for which the sums do not overflow, as a fraction of `top`.
  const int room = std::bit_width(static_cast<std::uint64_t>(most_weight() / 2)) - 1;
  const int bits = std::clamp(room + precision - bit_width(sum - 1), 0, most_bits);

  WipedVector<Weight> units;
  units.reserve(n);
  each([&](double weight) {
    if (weight == 0) return;
    const double in_units = std::nearbyint(std::ldexp(weight / top, bits));
    units.push_back(static_cast<Weight>(std::max(1.0, in_units)));
  });
  const auto median = units.begin() + static_cast<std::ptrdiff_t>((n - 1) / 2);
  std::nth_element(units.begin(), median, units.end());
  const double typical = *median;
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

Gradient Loss::rounded(double slope, double dither) const {
  if (kind == LossKind::squared) return static_cast<Gradient>(slope / target_grid);
  const double g = round_to_even(slope * probability_one + dither);
  return static_cast<Gradient>(std::clamp(g, -largest_probability, largest_probability));
}

// Works on stretches of rows, class by class, so that every loop vectorises. Softmax subtracts the
// largest score; logistic is the softmax of 0 and -score, where e^0 = 1 is not computed.
void Loss::record(const RecordingRows& rows, const std::vector<const double*>& scores,
                  const std::vector<GradientPointer>& gradients, std::size_t begin, std::size_t end,
                  RecordScratch& scratch) const {
  if (kind == LossKind::squared) {
    for (std::size_t r = begin; r < end; ++r)
      gradients[0].wide[r] = squared_gradient(rows.targets[r], scores[0][r]);
    return;
  }
  const std::size_t n_scores = scores.size();
  const bool softmax = kind == LossKind::softmax;
  auto& parts = scratch.parts;
  auto& row_scores = scratch.row_scores;
  for (std::size_t k = 0; k < n_scores; ++k)
    scratch.tree_keys[k] = dither::of_tree(rows.seed, rows.first_tree + k);
  for (std::size_t from = begin; from < end; from += stretch) {
    const std::size_t n = std::min(stretch, end - from);
    // Of a stretch that the rows do not fill, copies are worked on.
    const bool full = n == stretch;
    std::array<std::int32_t, stretch> last_targets;
    Stretch last_scores;
    std::array<RowId, stretch> last_ids;
    std::array<NarrowGradient, stretch> last_gradients;
    std::array<dither::Key, stretch> row_keys;
    const std::int32_t* target = rows.targets.data() + from;
    const RowId* ids = rows.ids.data() + from;
    if (!full) {
      last_targets.fill(0);
      last_ids.fill(0);
      last_scores.fill(0);
      target = std::copy_n(target, n, last_targets.begin()) - n;
      ids = std::copy_n(ids, n, last_ids.begin()) - n;
    }
    const auto score_of = [&](std::size_t k) {
      const double* score = scores[k] + from;
      return full ? score : std::copy_n(score, n, last_scores.begin()) - n;
    };
    Stretch top, sum, doubt;
    top.fill(softmax ? -std::numeric_limits<double>::infinity() : 0.0);
    sum.fill(softmax ? 0.0 : 1.0);
    doubt.fill(0.0);
    for (std::size_t k = 0; softmax && k < n_scores; ++k) raise_stretch(score_of(k), top.data());
    for (std::size_t k = 0; k < n_scores; ++k) {
      exp_stretch(score_of(k), softmax ? 1.0 : -1.0, top.data(), parts[k].data(), sum.data());
    }
    if (!softmax) parts[0].fill(1.0);
    invert_stretch(sum.data());
    key_stretch(ids, row_keys.data());
    for (std::size_t k = 0; k < n_scores; ++k) {
      const auto label = static_cast<std::int32_t>(softmax ? k : 1);
      NarrowGradient* to = gradients[k].narrow + from;
      gradient_stretch(parts[k].data(), sum.data(), target, label, row_keys.data(),
                       scratch.tree_keys[k], full ? to : last_gradients.data(), doubt.data());
      if (!full) std::copy_n(last_gradients.begin(), n, to);
    }
    if (n_doubtful(doubt.data()) == 0) continue;
    for (std::size_t i = 0; i < n; ++i) {
      if (doubt[i] < largest_doubt) continue;
      for (std::size_t k = 0; k < n_scores; ++k) row_scores[k] = scores[k][from + i];
      slopes(target[i], {row_scores.data(), n_scores}, scratch.row_slopes.data());
      for (std::size_t k = 0; k < n_scores; ++k) {
        const double shift = dither::of(scratch.tree_keys[k], row_keys[i]);
        gradients[k].narrow[from + i] =
            static_cast<NarrowGradient>(rounded(scratch.row_slopes[k], shift));
      }
    }
  }
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
