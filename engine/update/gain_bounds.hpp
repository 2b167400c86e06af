// What a node's candidates can at most be worth, without judging them again.
//
// A side of a split with sums G and H is worth (G - cH)^2 / (H + l2), for a fixed centre c. With c = G/H
// of the node (which needs l2 = 0; otherwise c = 0) the worths of two sides add up to the gain of the
// split and what the node itself is worth. RowTable that come and go move G - cH by at most the sum d of
// |g - ch| over them, and lower H by at most the sum e of their h. So two sides that were worth r^2
// together, neither with less hessian than m, are worth at most
//
//     (r + d / sqrt(m))^2  *  m / (m - e)
//
// from then on (the first factor is Minkowski's inequality). This holds for the candidates that counted;
// one that did not, because a side had too few rows or too little hessian, can only come to count when
// enough of them come to that side, so these are counted down. What a bound rules out need not be
// looked at: most updates touch many nodes and change few of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/array.hpp"
#include "train/split_evaluation.hpp"
#include "core/types.hpp"
#include "core/sums.hpp"

namespace graftboost {

// A bound on one feature's candidates, as of when they were judged. Rounded so that it stays one.
struct Ceiling {
  static constexpr float none = std::numeric_limits<float>::infinity();

  float root = none;          // r; `none` if nothing is known, below 0 if no candidate counted
  float reach = 0;            // 1 / sqrt(m)
  float drift = 0, lost = 0;  // the node's d and e at the time
};

// What rows may still come before a candidate of the feature counts that does not: any with a code from
// `first` to `last`, of others so many and with so much hessian. Apart from the rest, because every row
// that comes is held against all of them.
struct Guard {
  Code first = 0xffff, last = 0;
  std::int32_t rows_short = 0;
  float hessian_short = 0;
};

// Features are watched one by one up to this many. Many bundled and sparse ones are watched in groups
// (see Standings) if they are most of all; the few others are then judged each time. Too many others
// leave a node to be judged anew.
inline constexpr std::size_t most_watched_features = 256;
inline bool watches_groups(const CodeLayout& layout) {
  constexpr std::size_t many = 64, most = 4;
  const std::size_t n_differing = layout.n_differing();
  return n_differing > many && n_differing > most * (layout.size() - n_differing);
}

// The bounds of one node: none after it was made, or forgot. They are no part of the model: whatever they are, updates come out the same.
class Watch {
 public:
  bool knows() const { return !ceilings_.empty(); }
  void forget() {
    ceilings_.resize(0);
    pending_ = false;
  }

  // From here on, for a node with these sums; every feature is to be judged.
  void start(const GainParams& params, const Totals& node, const CodeLayout& layout) {
    const bool groups = watches_groups(layout);
    if (!groups && layout.size() > most_watched_features) return;
    ceilings_.resize(groups ? 2 * Standings::n_groups : layout.size());
    ceilings_.fill(Ceiling{});
    guards_.resize(groups ? 0 : layout.size());
    guards_.fill(Guard{});
    n_came_ = 0;
    pending_ = false;
    n_places_ = layout.size();
    own_ = Ceiling{};
    const double h = static_cast<double>(node.h) * params.hessian_unit;
    centre_ = params.l2 == 0 && h > 0 ? static_cast<double>(node.g) * params.gradient_unit / h : 0;
    drift_ = lost_ = 0;
    highest_ = Ceiling{};
    margin_ = Margin{};
  }

  // A feature has been judged: its best gain, and what the judging saw.
  void judged(const GainParams& params, const Totals& node, std::uint32_t feature, double gain,
              const Standing& standing) {
    constexpr std::int64_t many = std::numeric_limits<std::int32_t>::max();
    guards_[feature] = {standing.first, standing.last,
                        static_cast<std::int32_t>(std::min(standing.rows_short, many)),
                        below(standing.hessian_short)};
    ceilings_[feature] = ceiling(params, node, gain, standing.least_hessian);
  }

  // All features have been judged together. What the node's own feature leads in is kept apart: it can
  // be judged by itself.
  void judged_all(const GainParams& params, const Totals& node, const Standings& standings,
                  std::uint32_t own_feature, std::size_t n_places) {
    own_ = nothing();
    ceilings_.fill(nothing());
    add_judged(params, node, standings, own_feature);
    n_came_ = 0;
    all_seen(n_places);
  }
  // Some features have been judged again, because rows came or went that have them; all_seen() tells that
  // these were the last.
  void add_judged(const GainParams& params, const Totals& node, const Standings& standings,
                  std::uint32_t own_feature) {
    const auto add = [&](const Standings::Group& group, Ceiling& to) {
      const bool own = group.feature == own_feature;
      if (own) raise(own_, ceiling(params, node, group.gain, group.least_hessian));
      raise(to, ceiling(params, node, own ? group.next_gain : group.gain, group.least_hessian));
    };
    for (std::size_t i = 0; i < Standings::n_groups; ++i) {
      add(standings.counting[i], ceilings_[i]);
      add(standings.waiting[i], ceilings_[Standings::n_groups + i]);
    }
  }
  void all_seen(std::size_t n_places) {
    pending_ = false;
    n_places_ = n_places;
  }
  // Of the places that there are now, those from here on have never been judged.
  std::size_t size() const { return n_places_; }
  bool is_in_groups() const { return guards_.empty(); }
  bool is_pending() const { return pending_; }

  // The rows next to the node's split.
  void set_margin(const Margin& margin) { margin_ = margin; }
  // RowTable that another split of the same feature moves, at least.
  std::int64_t rows_to_move() const { return std::max<std::int64_t>(margin_.rows, 1); }

  // A row of the node, which is split by the feature with this number, came or went. It may miss a value
  // of a feature that most rows miss.
  template <class CodeOf>
  void row_changed(const GainParams& params, const Totals& row, bool in, bool may_be_missing,
                   std::uint32_t feature, CodeOf&& code_of) {
    if (!knows()) return;
    if (!in || feature == ColumnIndex::none) {
      margin_.rows -= 1;
    } else if (const Code code = code_of(feature);
               code == missing_code || (code > margin_.below && code < margin_.above)) {
      margin_.rows = 1;
    }
    const double h = static_cast<double>(row.h) * params.hessian_unit;
    drift_ += std::abs(static_cast<double>(row.g) * params.gradient_unit - centre_ * h);
    if (!in) lost_ += h;
    pending_ = guards_.empty();
    if (!in) return;
    if (guards_.empty()) {
      // A first missing row brings candidates of its own, and may not be seen to have the feature.
      if (++n_came_ > Standings::rows_ahead || may_be_missing) ceilings_.fill(Ceiling{});
      return;
    }
    const float gained = above(h);
    for (std::uint32_t f = 0; f < guards_.size(); ++f) {
      Guard& guard = guards_[f];
      const Code code = code_of(f);
      if (code >= guard.first && code <= guard.last) continue;
      guard.rows_short -= 1;
      guard.hessian_short -= gained;
      // A first missing row brings candidates of its own.
      if (guard.rows_short > 0 && guard.hessian_short > 0 && code != missing_code) continue;
      ceilings_[f].root = highest_.root = Ceiling::none;
    }
  }

  // No gain of a feature's candidates exceeds this.
  double bound(const GainParams& params, const Totals& node, std::uint32_t feature) const {
    return bound(params, node, ceilings_[feature]);
  }
  // Watched in groups: nor does one of the node's own feature exceed this, or of all the others that.
  double bound_of_own(const GainParams& params, const Totals& node) const {
    return std::max(bound(params, node, own_), bound_of_others(params, node));
  }
  double bound_of_others(const GainParams& params, const Totals& node) const {
    if (pending_) return std::numeric_limits<double>::infinity();
    double highest = -std::numeric_limits<double>::infinity();
    const std::size_t n = n_came_ == 0 ? Standings::n_groups : ceilings_.size();
    for (std::size_t i = 0; i < n; ++i)
      highest = std::max(highest, bound(params, node, ceilings_[i]));
    return highest;
  }
  // No gain of any candidate exceeds this: one look instead of one per feature.
  double bound(const GainParams& params, const Totals& node) const {
    return guards_.empty() ? bound_of_own(params, node) : bound(params, node, highest_);
  }
  // To be called when the features' ceilings have been brought down: makes the one look tight.
  void sum_up() {
    if (guards_.empty()) return;
    double worth = 0;
    float reach = 0;
    for (const Ceiling& ceiling : ceilings_) {
      worth = std::max(worth, worth_at_most(ceiling));
      reach = std::max(reach, ceiling.reach);
    }
    highest_.root = above(std::sqrt(worth));
    highest_.reach = reach;
    highest_.drift = below(drift_);
    highest_.lost = below(lost_);
  }

 private:
  // Wide enough for the rounding to float and for that of all the arithmetic here.
  static constexpr double margin = 1e-6;
  // Of scores, many times over.
  static constexpr double rounding = 1e-13;
  static float above(double x) { return static_cast<float>(x * (1 + margin)); }
  static float below(double x) { return static_cast<float>(x * (1 - margin)); }

  static Ceiling nothing() { return {-1, 0, 0, 0}; }
  // A ceiling over both, as of now.
  void raise(Ceiling& ceiling, const Ceiling& other) const {
    if (other.root < 0) return;
    const double worth = worth_at_most(ceiling);
    const float root = worth < 0 ? -1.0f : above(std::sqrt(worth));
    ceiling = {std::max(root, other.root), std::max(ceiling.reach, other.reach), other.drift,
               other.lost};
  }
  // Of candidates with at most this gain and at least this hessian on either side.
  Ceiling ceiling(const GainParams& params, const Totals& node, double gain,
                  double least_hessian) const {
    Ceiling made;
    const bool any = gain > -std::numeric_limits<double>::infinity();
    made.root = any ? above(std::sqrt(std::max(gain + worth_of_node(params, node), 0.0))) : -1;
    made.reach = any ? above(1 / std::sqrt(least_hessian + params.l2)) : 0;
    made.drift = below(drift_);
    made.lost = below(lost_);
    return made;
  }

  double bound(const GainParams& params, const Totals& node, const Ceiling& ceiling) const {
    const double worth = worth_at_most(ceiling);
    // A gain is a difference of scores, and rounded like them: where it is next to nothing, that is all
    // it may be.
    const double g = static_cast<double>(node.g) * params.gradient_unit;
    const double h = static_cast<double>(node.h) * params.hessian_unit + params.l2;
    const double score = h > 0 ? g * g / h : 0;
    return worth - worth_of_node(params, node) + rounding * (worth + score);
  }
  double worth_of_node(const GainParams& params, const Totals& node) const {
    const double h = static_cast<double>(node.h) * params.hessian_unit;
    const double g = static_cast<double>(node.g) * params.gradient_unit - centre_ * h;
    return h + params.l2 > 0 ? g * g / (h + params.l2) : 0;
  }
  double worth_at_most(const Ceiling& ceiling) const {
    if (ceiling.root < 0) return -std::numeric_limits<double>::infinity();
    const double reach = ceiling.reach, root = ceiling.root + (drift_ - ceiling.drift) * reach;
    const double kept = 1 - (lost_ - ceiling.lost) * reach * reach;
    return kept > 0 ? root * root / kept * (1 + margin) : std::numeric_limits<double>::infinity();
  }

  double centre_ = 0;
  double drift_ = 0, lost_ = 0;  // d and e since start()
  Ceiling highest_;
  Margin margin_;
  Array<Ceiling> ceilings_;   // per feature or group, or empty
  Array<Guard> guards_;       // per feature, or empty
  Ceiling own_;               // watched in groups: of the node's own feature
  std::int64_t n_came_ = 0;   // likewise: rows since all were judged
  std::size_t n_places_ = 0;  // likewise: that have been judged
  bool pending_ = false;      // likewise: rows changed that have features not judged since
};

}  // namespace graftboost
