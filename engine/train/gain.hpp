// The gain of a split: Eq. 5 of the paper, from integer sums.
#pragma once

#include <cstdint>
#include <limits>

#include "core/sums.hpp"
#include "core/types.hpp"

namespace graftboost {

// The gain of what cannot be split.
inline constexpr double no_gain = -std::numeric_limits<double>::infinity();

struct GainParams {
  double gradient_unit = 1;
  double hessian_unit = 1;
  double l2 = 0;
  double least_hessian = 0;  // that each child of a split needs
  double least_gain = 0;     // that a split must exceed
  std::int64_t min_samples_leaf = 1;
  std::int64_t largest_of_row = 1;  // no row adds more to a sum of g or of h

  bool may_split(const Totals& node) const { return node.n >= 2 * min_samples_leaf; }
};

// A node's own sums in real units.
struct NodeScale {
  double gradient_unit, hessian_unit, l2, least_hessian;
  double g, h;

  NodeScale(const GainParams& params, const Totals& node)
      : gradient_unit(params.gradient_unit),
        hessian_unit(params.hessian_unit),
        l2(params.l2),
        least_hessian(params.least_hessian),
        g(static_cast<double>(node.g) * params.gradient_unit),
        h(static_cast<double>(node.h) * params.hessian_unit) {}

  // G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2): what two children score together.
  [[gnu::always_inline]] double score(double left_g, double left_h) const {
    const double right_g = g - left_g, right_h = h - left_h;
    return left_g * left_g / (left_h + l2) + right_g * right_g / (right_h + l2);
  }
  double gain(double score) const { return score - g * g / (h + l2); }
};

// The gain of a split with these sums on its left; no_gain if a child has too few rows or too
// little hessian.
inline double gain_of(const GainParams& params, const Totals& node, const Totals& left) {
  if (left.n < params.min_samples_leaf || node.n - left.n < params.min_samples_leaf) return no_gain;
  const NodeScale scale(params, node);
  const double left_h = static_cast<double>(left.h) * params.hessian_unit;
  if (!(left_h >= params.least_hessian && scale.h - left_h >= params.least_hessian)) return no_gain;
  return scale.gain(scale.score(static_cast<double>(left.g) * params.gradient_unit, left_h));
}

// The best candidate of a node or of a feature. By default there is none.
struct BestSplit {
  double gain = no_gain;
  Split split;
  Totals left;  // sums of the rows that go left

  // Of equal gains the smaller feature wins, so features may be evaluated in any order.
  bool better_than(const BestSplit& other) const {
    return gain > other.gain || (gain == other.gain && split.feature < other.split.feature);
  }
};

}  // namespace graftboost
