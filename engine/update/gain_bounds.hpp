// Upper bounds on the gains of a node's candidates after rows changed, without evaluating them.
//
// A child with sums G and H is worth (G - cH)^2 / (H + l2), for a fixed centre c. With c = G / H of
// the node (which needs l2 = 0; otherwise c = 0) the worths of two children add up to the gain of
// the split plus the worth of the node. Rows that are added and removed change G - cH by at most
// the sum d of |g - ch| over them, and reduce H by at most the sum e of their h. Two children that
// were worth r^2 together, neither with less hessian than m, are therefore worth at most
//
//     (r + d / sqrt(m))^2  *  m / (m - e)
//
// from then on (the first factor is Minkowski's inequality). Bounds of single features are tighter,
// because they distinguish the signs and the codes of the rows: see feature_bounds.hpp. This holds
// for candidates that were valid. An invalid one, whose child had too few rows or too little
// hessian, can only become valid when enough rows are added to that child, so these are counted
// down. Candidates below a bound need no evaluation: most updates touch many nodes and change few
// of them.
#pragma once

#include <cstdint>
#include <limits>

#include "core/array.hpp"
#include "core/sums.hpp"
#include "data/code_layout.hpp"
#include "train/gain.hpp"
#include "train/split_survey.hpp"
#include "update/feature_bounds.hpp"
#include "update/histogram_drift.hpp"

namespace graftboost {

// The bounds of one node. They are not part of the model: whatever they are, updates give the same
// result.
//
// Bounds are kept in one of two representations, which the layout determines:
//   per feature   one bound and one guard for each feature
//   grouped       for tables of many bundled and sparse features: one bound for each group of
//                 candidates of these (see GroupSurvey); the few other features have none and are
//                 evaluated each time
// A unit is a set of features that share a bound and are evaluated together: one feature, or all
// grouped ones.
class GainBounds {
  struct Ceiling;

 public:
  static bool are_grouped(const CodeLayout& layout);
  static std::size_t n_units(const CodeLayout& layout) {
    return are_grouped(layout) ? 1 : layout.size();
  }
  // Whether there are bounds for all features: not if too many are bounded one by one.
  static bool are_kept(const CodeLayout& layout) {
    return are_grouped(layout) || layout.size() <= most_features;
  }

  bool known() const { return !features_.empty() || !ceilings_.empty(); }
  void forget() {
    features_.forget();
    ceilings_.resize(0);
    pending_ = false;
  }
  // Begins to bound a node with these sums; all features have yet to be evaluated.
  void start(const GainParams& params, const Totals& node, const CodeLayout& layout);

  // --- results of evaluations -------------------------------------------------------------------

  // Per feature: the best gain of a feature, and the survey of its candidates.
  void evaluated(const GainParams& params, const Totals& node, std::uint32_t number, double gain,
                 const FeatureSurvey& survey);
  // Grouped: all grouped features were evaluated. The candidates of the feature that the node is
  // split by are bounded apart, because they can be evaluated by themselves.
  void evaluated_all(const GainParams& params, const Totals& node, const GroupSurvey& survey,
                     std::uint32_t own_feature, std::size_t n_features);
  // Grouped: the features of all rows that were added or removed were evaluated again.
  void evaluated_changed(const GainParams& params, const Totals& node, const GroupSurvey& survey,
                         std::size_t n_features);
  void set_margin(const Margin& margin) { margin_ = margin; }

  // --- rows that change -------------------------------------------------------------------------

  // A row of the node, which is split by the feature with this number, was added or removed.
  // `may_be_missing` tells whether it may lack a value of a feature that most rows lack. Per
  // feature, `codes` has the row's codes by the number of the feature; grouped bounds ask
  // code_of(number) only.
  template <class CodeOf>
  void row_changed(const GainParams& params, const Totals& row, bool enters, bool may_be_missing,
                   std::uint32_t number, std::span<const Code> codes, CodeOf&& code_of);
  // So many rows of the node were removed, which moved the sums of children by so much, by the
  // number of the feature. Not for grouped bounds.
  void rows_removed(std::span<const FeatureDrift> drift, std::int64_t n);
  // Rows of the node recorded other gradients, which moved the sums of children by so much, by the
  // number of the feature. Grouped bounds are forgotten.
  void sums_changed(std::span<const FeatureDrift> drift);
  // Grouped: whether rows changed whose features were not evaluated since. Until they are, there is
  // no bound. Features from n_evaluated() on, which are new in the layout, never were.
  bool is_pending() const { return pending_; }
  std::size_t n_evaluated() const { return n_evaluated_; }
  bool is_grouped() const { return features_.empty(); }

  // --- bounds -----------------------------------------------------------------------------------

  // The bounds for a node with these sums.
  class Limits {
   public:
    // No gain of a candidate of the unit exceeds this, those of `evaluated_feature` possibly
    // excepted.
    double of_unit(std::size_t unit, std::uint32_t evaluated_feature) const;
    // Per feature: no gain of a candidate exceeds this, those of the feature with this number
    // possibly excepted.
    double of_others(std::uint32_t own_number) const;
    // No gain of any bounded candidate exceeds this.
    double of_all() const;

   private:
    friend GainBounds;
    Limits(const GainBounds& bounds, const GainParams& params, const Totals& node);
    double of(const Ceiling& ceiling) const { return gain(bounds_.worth_at_most(ceiling)); }
    double gain(double worth) const;
    double of_groups() const;

    const GainBounds& bounds_;
    double worth_, score_;  // of the node
  };
  Limits limits(const GainParams& params, const Totals& node) const {
    return Limits(*this, params, node);
  }
  // Another split by the same feature moves at least so many rows.
  std::int64_t rows_to_move() const { return margin_.rows > 1 ? margin_.rows : 1; }

 private:
  // Grouped: a bound on some candidates, as of their last evaluation. Rounded so that it stays a
  // bound.
  struct Ceiling {
    float root = FeatureBounds::unknown;  // r; below 0 if no candidate was valid
    float reach = 0;                      // 1 / sqrt(m)
    float drift = 0, lost = 0;            // the node's d and e at the time
  };

  static constexpr std::size_t most_features = 256;  // bounded one by one
  static constexpr double slack = FeatureBounds::slack;
  static float above(double x) { return FeatureBounds::above(x); }
  static float below(double x) { return FeatureBounds::below(x); }

  static Ceiling nothing() { return {-1, 0, 0, 0}; }
  void raise(Ceiling& ceiling, const Ceiling& other) const;
  Ceiling ceiling(const GainParams& params, const Totals& node, double gain,
                  double least_hessian) const;
  double worth_of_node(const GainParams& params, const Totals& node) const;
  double worth_at_most(const Ceiling& ceiling) const;

  double centre_ = 0;
  NodeDrift drift_;  // since start()
  Margin margin_;
  FeatureBounds features_;  // per feature; empty if grouped
  // The rest is for grouped bounds.
  Array<Ceiling> ceilings_;  // per group
  Ceiling own_;              // of own_feature_
  std::uint32_t own_feature_ = ColumnIndex::none;
  std::int64_t n_added_ = 0;     // rows since all were evaluated
  std::size_t n_evaluated_ = 0;  // features that have been
  bool pending_ = false;
};

template <class CodeOf>
void GainBounds::row_changed(const GainParams& params, const Totals& row, bool enters,
                             bool may_be_missing, std::uint32_t number, std::span<const Code> codes,
                             CodeOf&& code_of) {
  if (!known()) return;
  if (!enters || number == ColumnIndex::none) {
    margin_.rows -= 1;
  } else if (const Code code = code_of(number);
             code == missing_code || (code > margin_.below && code < margin_.above)) {
    margin_.rows = 1;
  }
  const double h = static_cast<double>(row.h) * params.hessian_unit;
  const double of_row = static_cast<double>(row.g) * params.gradient_unit - centre_ * h;
  const double shift = enters ? of_row : -of_row;
  (shift < 0 ? drift_.down : drift_.up) += shift < 0 ? -shift : shift;
  if (!enters) drift_.lost += h;
  if (!is_grouped()) return features_.row_changed(codes, shift, h, enters);
  pending_ = true;
  // The first missing row adds candidates, and need not be listed as having the feature.
  if (enters && (++n_added_ > GroupSurvey::rows_ahead || may_be_missing)) ceilings_.fill(Ceiling{});
}

inline GainBounds::Limits::Limits(const GainBounds& bounds, const GainParams& params,
                                  const Totals& node)
    : bounds_(bounds), worth_(bounds.worth_of_node(params, node)) {
  const double g = static_cast<double>(node.g) * params.gradient_unit;
  const double h = static_cast<double>(node.h) * params.hessian_unit + params.l2;
  score_ = h > 0 ? g * g / h : 0;
}

inline double GainBounds::Limits::gain(double worth) const {
  // A gain is a difference of scores and has their rounding error, which may be all of a small
  // gain. This is many times the relative error of a score.
  constexpr double rounding = 1e-13;
  return worth - worth_ + rounding * (worth + score_);
}

inline double GainBounds::Limits::of_unit(std::size_t unit, std::uint32_t evaluated_feature) const {
  if (!bounds_.is_grouped()) {
    const auto number = static_cast<std::uint32_t>(unit);
    return gain(bounds_.features_.worth_at_most(number, bounds_.drift_));
  }
  return evaluated_feature == bounds_.own_feature_ ? of_groups() : of_all();
}

inline double GainBounds::worth_of_node(const GainParams& params, const Totals& node) const {
  const double h = static_cast<double>(node.h) * params.hessian_unit;
  const double g = static_cast<double>(node.g) * params.gradient_unit - centre_ * h;
  return h + params.l2 > 0 ? g * g / (h + params.l2) : 0;
}

inline double GainBounds::worth_at_most(const Ceiling& ceiling) const {
  if (ceiling.root < 0) return no_gain;
  const double reach = ceiling.reach, drift = drift_.up + drift_.down;
  const double root = ceiling.root + (drift - ceiling.drift) * reach;
  const double left = 1 - (drift_.lost - ceiling.lost) * reach * reach;
  return left > 0 ? root * root / left * (1 + slack) : std::numeric_limits<double>::infinity();
}

}  // namespace graftboost
