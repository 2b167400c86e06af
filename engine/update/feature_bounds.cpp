#include "update/feature_bounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/vectorise.hpp"
#include "train/gain.hpp"

namespace graftboost {
namespace {

// Worth of two children after rows changed: what was worth root^2 can have become
//
//     (root + a r + b w)^2 / (1 - lost)
//
// where one child, with a hessian of at least 1 / r^2, drifted by at most a, and the larger one,
// with at least 1 / w^2, by at most b. Infinite if more hessian was lost than may have been there.
[[gnu::always_inline]] inline double worth_after(double root, double moved, double lost) {
  const double left = 1 - lost, to = root + moved;
  const double worth = to * to / left * (1 + FeatureBounds::slack);
  const double any = left > 0 ? worth : std::numeric_limits<double>::infinity();
  return root < 0 ? no_gain : any;
}

// Each child of a central candidate drifts by at most the larger of the two sums, and if one does,
// the other drifts by the smaller. The larger child of an outer candidate drifts by what the node
// does and by what the small child does.
template <class Numbers>
[[gnu::always_inline]] inline double worth_of(const Numbers& of, const NodeDrift& drift,
                                              std::size_t f) {
  const double up = drift.up - of.up[f], down = drift.down - of.down[f];
  const double lost = drift.lost - of.lost[f], wide = of.wide_reach;
  const double more = std::max(up, down), less = std::min(up, down);
  // The rounding of `up` and `down` may hide some of their difference.
  const double net = more - less + 2 * FeatureBounds::slack * (drift.up + drift.down);
  const double reach = std::max<double>(of.reach[f], wide), outer_reach = of.outer_reach[f];
  const double central = worth_after(of.root[f], more * reach + less * wide, lost * reach * reach);
  const double outer = of.outer_drift[f];
  const double outer_lost = of.outer_lost[f] * outer_reach * outer_reach;
  const double wide_lost = lost * wide * wide;
  const double outermost = worth_after(of.outer_root[f], outer * outer_reach + (net + outer) * wide,
                                       std::max(outer_lost, wide_lost));
  return std::max(central, outermost);
}

// Every addition is rounded up: a sum of many rows must not fall behind.
GRAFTBOOST_ALSO_AVX2
void add_outer(const Code* codes, const Code* first, const Code* last, std::size_t n, float drift,
               float lost, float* outer_drift, float* outer_lost) {
  constexpr auto up = static_cast<float>(1 + FeatureBounds::slack);
  for (std::size_t f = 0; f < n; ++f) {
    const bool is_outer = (codes[f] < first[f]) | (codes[f] > last[f]);
    outer_drift[f] = (outer_drift[f] + (is_outer ? drift : 0.0f)) * up;
    outer_lost[f] = (outer_lost[f] + (is_outer ? lost : 0.0f)) * up;
  }
}

// The larger child has at least half of a node's hessian.
float larger_reach(double hessian, double l2) {
  const double least = hessian / 2 + l2;
  return least > 0 ? FeatureBounds::above(1 / std::sqrt(least)) : 0;
}

}  // namespace

void FeatureBounds::start(std::size_t n_features, double hessian, double l2) {
  guards_.resize(n_features);
  guards_.fill(Guard{});
  const std::size_t n_padded = padded(n_features);
  numbers_.resize(n_numbers * n_padded);
  numbers_.fill(0);
  std::fill_n(of(root), n_features, unknown);
  std::fill(of(root) + n_features, of(root) + n_padded, -1.0f);
  std::fill(of(outer_root) + n_features, of(outer_root) + n_padded, -1.0f);
  codes_.resize(2 * n_features);
  codes_.fill(0);
  wide_reach_ = larger_reach(hessian, l2);
}

void FeatureBounds::evaluated(std::uint32_t number, const NodeDrift& drift, double hessian,
                              double l2, double worth, double outer_worth,
                              const FeatureSurvey& survey) {
  constexpr std::int64_t many = std::numeric_limits<std::int32_t>::max();
  guards_[number] = {survey.first, survey.last,
                     static_cast<std::int32_t>(std::min(survey.rows_short, many)),
                     below(survey.hessian_short)};
  const auto root_of = [](double of) { return of < 0 ? -1.0f : above(std::sqrt(of)); };
  const auto reach_of = [&](double of) { return above(1 / std::sqrt(of + l2)); };
  constexpr double none = std::numeric_limits<double>::infinity();
  const bool any_central = survey.least_hessian < none, any_outer = survey.outer_hessian < none;
  of(root)[number] = any_central ? root_of(worth) : -1;
  of(reach)[number] = any_central ? reach_of(survey.least_hessian) : 0;
  of(outer_root)[number] = any_outer ? root_of(outer_worth) : -1;
  of(outer_reach)[number] = any_outer ? reach_of(survey.outer_hessian) : 0;
  of(up)[number] = below(drift.up);
  of(down)[number] = below(drift.down);
  of(lost)[number] = below(drift.lost);
  of(outer_drift)[number] = of(outer_lost)[number] = 0;
  first_central()[number] = survey.first_central;
  last_central()[number] = survey.last_central;
  if (const float wider = larger_reach(hessian, l2); wider > wide_reach_) wide_reach_ = wider;
}

void FeatureBounds::row_changed(std::span<const Code> codes, double shift, double h, bool enters) {
  const float hessian = above(h);
  add_outer(codes.data(), first_central(), last_central(), size(), above(std::abs(shift)),
            enters ? 0 : hessian, of(outer_drift), of(outer_lost));
  for (std::size_t f = 0; enters && f < size(); ++f) {
    Guard& guard = guards_[f];
    if (codes[f] >= guard.first && codes[f] <= guard.last) continue;
    guard.rows_short -= 1;
    guard.hessian_short -= hessian;
    // The first missing row adds candidates.
    if (guard.rows_short > 0 && guard.hessian_short > 0 && codes[f] != missing_code) continue;
    of(root)[f] = unknown;
  }
}

void FeatureBounds::sums_changed(std::uint32_t number, double drift, double hessian) {
  guards_[number].hessian_short -= above(hessian);
  if (!(drift < unknown) || !(guards_[number].hessian_short > 0)) {
    of(root)[number] = unknown;
    return;
  }
  rows_removed(number, drift, hessian);
}

void FeatureBounds::rows_removed(std::uint32_t number, double drift, double hessian) {
  const auto lower = [&](Number of_feature, double by) {
    float& base = of(of_feature)[number];
    base = static_cast<float>(base - by - slack * (std::abs(base) + by));
  };
  lower(up, drift);
  lower(down, drift);
  lower(lost, hessian);
  of(outer_drift)[number] = above(of(outer_drift)[number] + drift);
  of(outer_lost)[number] = above(of(outer_lost)[number] + hessian);
}

// In lanes, which do not depend on each other, so that the loop vectorises.
GRAFTBOOST_ALSO_AVX2
double FeatureBounds::highest_of(const Numbers& of, const NodeDrift& drift, std::size_t n_padded,
                                 std::size_t but) {
  const Numbers all = of;
  const NodeDrift now = drift;
  std::array<double, lanes> top, worth;
  top.fill(no_gain);
  for (std::size_t f = 0; f < n_padded; f += lanes) {
    for (std::size_t j = 0; j < lanes; ++j) worth[j] = worth_of(all, now, f + j);
    if (but - f < lanes) worth[but - f] = no_gain;
    for (std::size_t j = 0; j < lanes; ++j) top[j] = worth[j] > top[j] ? worth[j] : top[j];
  }
  return *std::max_element(top.begin(), top.end());
}

FeatureBounds::Numbers FeatureBounds::numbers() const {
  return {of(root), of(reach), of(outer_root),  of(outer_reach), of(up),
          of(down), of(lost),  of(outer_drift), of(outer_lost),  wide_reach_};
}

double FeatureBounds::worth_at_most(std::uint32_t number, const NodeDrift& drift) const {
  return worth_of(numbers(), drift, number);
}

double FeatureBounds::highest_worth(const NodeDrift& drift, std::uint32_t but) const {
  return highest_of(numbers(), drift, padded(size()), but);
}

}  // namespace graftboost
