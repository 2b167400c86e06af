// The losses: gradients that rows record, values of leaves, base scores.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "core/rounding.hpp"
#include "core/sums.hpp"
#include "core/types.hpp"
#include "model/dither.hpp"
#include "model/gradient_array.hpp"
#include "model/weights.hpp"

namespace graftboost {

enum class LossKind : std::uint8_t { logistic, softmax, squared };

// The (weighted) targets of the rows held, from which the base scores follow. Integers, like all
// sums.
struct TargetSums {
  std::vector<std::int64_t> classes;  // weight per class; empty for squared error
  __int128 sum = 0;                   // squared error: of weight * target
  std::int64_t weight = 0;

  TargetSums() = default;
  explicit TargetSums(int n_classes)
      : classes(n_classes > 1 ? static_cast<std::size_t>(n_classes) : 0) {}
  void add(std::int32_t target, std::int64_t signed_weight) {
    weight += signed_weight;
    if (classes.empty()) {
      sum += static_cast<__int128>(target) * signed_weight;
    } else {
      classes[static_cast<std::size_t>(target)] += signed_weight;
    }
  }
  friend bool operator==(const TargetSums&, const TargetSums&) = default;
};

// Sums up to this size can be added to each other, and to the gradient of a row, without overflow.
inline constexpr std::int64_t largest_sum = std::int64_t{1} << 61;

// The largest power of two that is not above x > 0, and the smallest that is not below.
double power_of_two_below(double x);
double power_of_two_above(double x);

// Fixed for the life of a model. Gradients of logistic and softmax lie in [-1, 1] and are rounded,
// with a dither, to a grid of 2^-15, so that they take two bytes; squared error works on targets
// that were centred and scaled once, at fit, on a grid of 2^-24. A row's hessian follows from its
// gradient, so only the gradient is recorded.
struct Loss {
  LossKind kind = LossKind::squared;
  int n_classes = 1;  // 1 for squared error, 2 for logistic
  double centre = 0;  // squared error: target = centre + scale * (number on the grid)
  double scale = 1;   //   a power of two
  // Weight = weight_scale * weight_unit * (integer weight), the first two powers of two. All that
  // is computed from weights is in units of weight_scale, so that it neither overflows nor
  // vanishes.
  bool weighted = false;
  double weight_scale = 1;
  double weight_unit = 1;
  // The median of the positive weights at fit, in units of weight_scale, so from 1 to 2. What a
  // gain or a hessian is compared with is meant for rows of this weight, so that a model does not
  // depend on the unit in which weights are given. A mean would depend on a single large weight.
  double typical_weight = 1;

  static constexpr int probability_bits = 15;
  static constexpr int probability_hessian_bits = 20;  // h <= 1/4, as large as PackedSums allows
  static constexpr int target_bits = 24;
  static constexpr int squared_hessian_bits = 18;  // h = 1, as large as PackedSums allows
  static constexpr int squared_gradient_bits = 30;
  // Weighted gradients of squared error lose so many bits: sums of them would not fit otherwise.
  static constexpr int weighted_gradient_shift = 4;
  static constexpr double target_grid = 0x1p-24;
  // Targets at fit lie within 4 scales of the centre; what is added later may lie 15 times further.
  static constexpr double widest_target_at_fit = 4;
  static constexpr double widest_target = 60;
  static constexpr double largest_weight = 0x1p30;  // integer weight of a row

  // For targets between these. False, and nothing changes, if they are too close to be told apart.
  bool set_scale(double least_target, double most_target);

  int trees_per_iteration() const { return kind == LossKind::softmax ? n_classes : 1; }

  // Whether gradients take four bytes, not two.
  static bool records_wide(LossKind kind) { return kind == LossKind::squared; }
  bool records_wide() const { return records_wide(kind); }

  std::int64_t hessian(Gradient g) const {
    return kind == LossKind::squared ? squared_hessian() : probability_hessian(g);
  }
  static std::int64_t squared_hessian() { return std::int64_t{1} << squared_hessian_bits; }
  // |g| (1 - |g|), on a finer grid than g: p (1 - p), whichever class the row is of. Any two bytes
  // that a corrupted file has give a number from 0 to 1/4.
  static std::int32_t probability_hessian(Gradient g) {
    const std::int32_t one = 1 << probability_bits, a = g < 0 ? -g : g;
    return (a * (one - a)) >> (2 * probability_bits - probability_hessian_bits);
  }

  // What a row with this gradient and weight adds to a sum of g.
  static std::int64_t weighted_gradient(LossKind kind, Gradient g, std::int64_t weight) {
    if (kind != LossKind::squared) return g * weight;
    constexpr std::int64_t half = std::int64_t{1} << (weighted_gradient_shift - 1);
    return (g * weight + half) >> weighted_gradient_shift;
  }

  // What a row with this gradient and weight adds to a sum of squared gradients.
  static __int128 weighted_square(Gradient g, std::int64_t weight) {
    return static_cast<__int128>(std::int64_t{g} * g) * weight;
  }

  // No row records a larger gradient, nor a smaller one than its negation.
  Gradient largest_gradient() const {
    return kind == LossKind::squared ? Gradient{1} << squared_gradient_bits
                                     : (Gradient{1} << probability_bits) - 1;
  }
  // Neither the gradient nor the hessian of a row is larger.
  std::int64_t largest_of_row() const {
    return std::int64_t{1} << (kind == LossKind::squared ? squared_gradient_bits
                                                         : probability_hessian_bits - 2);
  }
  // Integer weights of all rows may add up to this: no sum then exceeds largest_sum. At fit they
  // are given half of it.
  std::int64_t most_weight() const {
    const int shift = kind == LossKind::squared ? weighted_gradient_shift : 0;
    return (largest_sum / largest_of_row()) << shift;
  }
  // Sets the scale and the unit of weights and the typical weight, for rows with these weights.
  void set_weight_scale(const WeightStatistics& weights);

  // What one unit of a gradient that a row records is worth, without its weight.
  double gradient_grid() const { return kind == LossKind::squared ? target_grid : 0x1p-15; }
  // Slopes of losses lie on this grid where they are added up as integers. It is finer than that of
  // recorded gradients, because they are not dithered.
  double slope_grid() const { return kind == LossKind::squared ? target_grid : 0x1p-20; }
  // What one unit of a sum of g, of h, or of squared gradients is worth.
  double gradient_unit() const {
    const double squared = weighted ? target_grid * (1 << weighted_gradient_shift) : target_grid;
    return weight_unit * (kind == LossKind::squared ? squared : 0x1p-15);
  }
  double hessian_unit() const {
    return weight_unit * (kind == LossKind::squared ? 0x1p-18 : 0x1p-20);
  }

  double square_unit() const {
    return weight_unit * (kind == LossKind::squared ? 0x1p-48 : 0x1p-30);
  }

  // What each child of a split needs for this parameter: at least one unit, because the gain of a
  // child without hessian is not defined.
  double least_hessian(double min_hessian) const {
    return std::max(min_hessian * typical_weight, hessian_unit());
  }
  // What a split must gain. Less is due to rounding, which is coarser for two bytes.
  double least_gain() const { return (kind == LossKind::squared ? 1e-9 : 1e-6) * typical_weight; }

  // The paper's (K - 1) / K for softmax; one tree for two classes takes the whole step.
  double class_factor() const {
    return kind == LossKind::softmax ? (n_classes - 1.0) / n_classes : 1.0;
  }
  // A Newton step is longest where it is least sure: rows of a rare class that were given no chance
  // have a large gradient and next to no hessian. LogitBoost has always capped it; without the cap
  // a few such leaves undo hundreds of trees.
  double largest_step() const {
    return kind == LossKind::squared ? std::numeric_limits<double>::infinity() : 4;
  }
  // `l2` is in units of weight_scale, as sums are.
  double leaf_value(const Totals& sums, double learning_rate, double l2) const;

  // What is stored of a row's target and weight. Throws std::invalid_argument for one that the
  // grid, set once at fit, cannot hold.
  std::int32_t target_on_grid(double y) const;
  Weight weight_on_grid(double weight) const;

  // Scores before the first tree, one per tree of an iteration.
  std::vector<double> base_scores(const TargetSums& sums) const;

  // The derivatives of a row's loss by its scores, one per tree of an iteration: its gradients
  // before they are rounded.
  void slopes(std::int32_t target, std::span<const double> scores, double* slopes) const;

  // What a row with this slope records.
  Gradient rounded(double slope, double dither) const;

  // The gradient of squared error.
  static Gradient squared_gradient(std::int32_t target, double score);

  // Loss of one row, for early stopping; `scores` holds one number per tree of an iteration.
  double of_row(std::int32_t target, std::span<const double> scores) const;
};

// The nearest multiple of the leaf grid, within the largest leaf value.
inline double on_leaf_grid(double value) {
  value = std::clamp(value, -largest_leaf_value, largest_leaf_value);
  return std::nearbyint(value / leaf_value_grid) * leaf_value_grid;
}

}  // namespace graftboost
