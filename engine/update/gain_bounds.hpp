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
// from then on (the first factor is Minkowski's inequality). This holds for candidates that were
// valid. An invalid one, whose child had too few rows or too little hessian, can only become valid
// when enough rows are added to that child, so these are counted down. Candidates below a bound
// need no evaluation: most updates touch many nodes and change few of them.
#pragma once

#include <cstdint>
#include <limits>

#include "core/array.hpp"
#include "core/sums.hpp"
#include "data/code_layout.hpp"
#include "train/gain.hpp"
#include "train/split_survey.hpp"

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

  bool known() const { return !ceilings_.empty(); }
  void forget() {
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
  // Per feature: to be called when bounds of features have become tighter, with the number of the
  // feature that the node is split by, whose candidates are evaluated each time.
  void tighten(std::uint32_t own_number);
  void set_margin(const Margin& margin) { margin_ = margin; }

  // --- rows that change -------------------------------------------------------------------------

  // A row of the node, which is split by the feature with this number, was added or removed.
  // `may_be_missing` tells whether it may lack a value of a feature that most rows lack.
  template <class CodeOf>
  void row_changed(const GainParams& params, const Totals& row, bool enters, bool may_be_missing,
                   std::uint32_t number, CodeOf&& code_of);
  // Grouped: whether rows changed whose features were not evaluated since. Until they are, there is
  // no bound. Features from n_evaluated() on, which are new in the layout, never were.
  bool is_pending() const { return pending_; }
  std::size_t n_evaluated() const { return n_evaluated_; }
  bool is_grouped() const { return guards_.empty(); }

  // --- bounds -----------------------------------------------------------------------------------

  // The bounds for a node with these sums.
  class Limits {
   public:
    // No gain of a candidate of the unit exceeds this, those of `evaluated_feature` possibly
    // excepted.
    double of_unit(std::size_t unit, std::uint32_t evaluated_feature) const;
    // Per feature: no gain of a candidate exceeds this, those of the feature with this number
    // possibly excepted. One comparison instead of one per feature.
    double of_others(std::uint32_t own_number) const;
    // No gain of any bounded candidate exceeds this.
    double of_all() const;

   private:
    friend GainBounds;
    Limits(const GainBounds& bounds, const GainParams& params, const Totals& node);
    double of(const Ceiling& ceiling) const;
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
  // A bound on some candidates, as of their last evaluation. Rounded so that it stays a bound.
  struct Ceiling {
    static constexpr float unknown = std::numeric_limits<float>::infinity();

    float root = unknown;       // r; below 0 if no candidate was valid
    float reach = 0;            // 1 / sqrt(m)
    float drift = 0, lost = 0;  // the node's d and e at the time
  };
  // The rows that may still be added before an invalid candidate of a feature becomes valid: any
  // with a code from `first` to `last`; of others so many, with so much hessian. Kept apart from
  // the ceilings, because every added row is compared with all guards.
  struct Guard {
    Code first = 0xffff, last = 0;
    std::int32_t rows_short = 0;
    float hessian_short = 0;
  };

  static constexpr std::size_t most_features = 256;  // bounded one by one
  // Wide enough for the rounding to float and of the arithmetic here.
  static constexpr double slack = 1e-6;
  static float above(double x) { return static_cast<float>(x * (1 + slack)); }
  static float below(double x) { return static_cast<float>(x * (1 - slack)); }

  static Ceiling nothing() { return {-1, 0, 0, 0}; }
  void raise(Ceiling& ceiling, const Ceiling& other) const;
  Ceiling ceiling(const GainParams& params, const Totals& node, double gain,
                  double least_hessian) const;
  double worth_of_node(const GainParams& params, const Totals& node) const;
  double worth_at_most(const Ceiling& ceiling) const;

  double centre_ = 0;
  double drift_ = 0, lost_ = 0;  // d and e since start()
  Ceiling highest_;              // per feature: above all ceilings but that of own_number_
  std::uint32_t own_number_ = ColumnIndex::none;
  Margin margin_;
  Array<Ceiling> ceilings_;  // per feature or group, or empty
  Array<Guard> guards_;      // per feature; empty if grouped
  Ceiling own_;              // grouped: of own_feature_
  std::uint32_t own_feature_ = ColumnIndex::none;
  std::int64_t n_added_ = 0;     // grouped: rows since all were evaluated
  std::size_t n_evaluated_ = 0;  // grouped: features that have been
  bool pending_ = false;
};

template <class CodeOf>
void GainBounds::row_changed(const GainParams& params, const Totals& row, bool enters,
                             bool may_be_missing, std::uint32_t number, CodeOf&& code_of) {
  if (!known()) return;
  if (!enters || number == ColumnIndex::none) {
    margin_.rows -= 1;
  } else if (const Code code = code_of(number);
             code == missing_code || (code > margin_.below && code < margin_.above)) {
    margin_.rows = 1;
  }
  const double h = static_cast<double>(row.h) * params.hessian_unit;
  const double shift = static_cast<double>(row.g) * params.gradient_unit - centre_ * h;
  drift_ += shift < 0 ? -shift : shift;
  if (!enters) lost_ += h;
  pending_ = guards_.empty();
  if (!enters) return;
  if (guards_.empty()) {
    // The first missing row adds candidates, and need not be listed as having the feature.
    if (++n_added_ > GroupSurvey::rows_ahead || may_be_missing) ceilings_.fill(Ceiling{});
    return;
  }
  const float gained = above(h);
  for (std::uint32_t f = 0; f < guards_.size(); ++f) {
    Guard& guard = guards_[f];
    const Code code = code_of(f);
    if (code >= guard.first && code <= guard.last) continue;
    guard.rows_short -= 1;
    guard.hessian_short -= gained;
    // The first missing row adds candidates.
    if (guard.rows_short > 0 && guard.hessian_short > 0 && code != missing_code) continue;
    ceilings_[f].root = Ceiling::unknown;
    if (f != own_number_) highest_.root = Ceiling::unknown;
  }
}

inline GainBounds::Limits::Limits(const GainBounds& bounds, const GainParams& params,
                                  const Totals& node)
    : bounds_(bounds), worth_(bounds.worth_of_node(params, node)) {
  const double g = static_cast<double>(node.g) * params.gradient_unit;
  const double h = static_cast<double>(node.h) * params.hessian_unit + params.l2;
  score_ = h > 0 ? g * g / h : 0;
}

inline double GainBounds::Limits::of(const Ceiling& ceiling) const {
  // A gain is a difference of scores and has their rounding error, which may be all of a small
  // gain. This is many times the relative error of a score.
  constexpr double rounding = 1e-13;
  const double worth = bounds_.worth_at_most(ceiling);
  return worth - worth_ + rounding * (worth + score_);
}

inline double GainBounds::Limits::of_unit(std::size_t unit, std::uint32_t evaluated_feature) const {
  if (!bounds_.guards_.empty()) return of(bounds_.ceilings_[unit]);
  return evaluated_feature == bounds_.own_feature_ ? of_groups() : of_all();
}

inline double GainBounds::worth_of_node(const GainParams& params, const Totals& node) const {
  const double h = static_cast<double>(node.h) * params.hessian_unit;
  const double g = static_cast<double>(node.g) * params.gradient_unit - centre_ * h;
  return h + params.l2 > 0 ? g * g / (h + params.l2) : 0;
}

inline double GainBounds::worth_at_most(const Ceiling& ceiling) const {
  if (ceiling.root < 0) return no_gain;
  const double reach = ceiling.reach, root = ceiling.root + (drift_ - ceiling.drift) * reach;
  const double left = 1 - (lost_ - ceiling.lost) * reach * reach;
  return left > 0 ? root * root / left * (1 + slack) : std::numeric_limits<double>::infinity();
}

}  // namespace graftboost
