#include "update/gain_bounds.hpp"

#include <algorithm>
#include <cmath>

namespace graftboost {
bool GainBounds::are_grouped(const CodeLayout& layout) {
  constexpr std::size_t many = 64, most = 4;
  const std::size_t n_differing = layout.n_differing();
  return n_differing > many && n_differing > most * (layout.size() - n_differing);
}

void GainBounds::start(const GainParams& params, const Totals& node, const CodeLayout& layout) {
  if (!are_kept(layout)) return;
  const bool grouped = are_grouped(layout);
  ceilings_.resize(grouped ? 2 * GroupSurvey::n_groups : layout.size());
  ceilings_.fill(Ceiling{});
  guards_.resize(grouped ? 0 : layout.size());
  guards_.fill(Guard{});
  n_added_ = 0;
  pending_ = false;
  n_evaluated_ = layout.size();
  own_ = Ceiling{};
  own_feature_ = ColumnIndex::none;
  const double h = static_cast<double>(node.h) * params.hessian_unit;
  centre_ = params.l2 == 0 && h > 0 ? static_cast<double>(node.g) * params.gradient_unit / h : 0;
  drift_ = lost_ = 0;
  highest_ = Ceiling{};
  own_number_ = ColumnIndex::none;
  margin_ = Margin{};
}

// --- results of evaluations ----------------------------------------------------------------------

void GainBounds::evaluated(const GainParams& params, const Totals& node, std::uint32_t number,
                           double gain, const FeatureSurvey& survey) {
  constexpr std::int64_t many = std::numeric_limits<std::int32_t>::max();
  guards_[number] = {survey.first, survey.last,
                     static_cast<std::int32_t>(std::min(survey.rows_short, many)),
                     below(survey.hessian_short)};
  ceilings_[number] = ceiling(params, node, gain, survey.least_hessian);
}

void GainBounds::evaluated_all(const GainParams& params, const Totals& node,
                               const GroupSurvey& survey, std::uint32_t own_feature,
                               std::size_t n_features) {
  own_ = nothing();
  ceilings_.fill(nothing());
  own_feature_ = own_feature;
  n_added_ = 0;
  evaluated_changed(params, node, survey, n_features);
}

void GainBounds::evaluated_changed(const GainParams& params, const Totals& node,
                                   const GroupSurvey& survey, std::size_t n_features) {
  const auto add = [&](const GroupSurvey::Group& group, Ceiling& to) {
    const bool own = group.feature == own_feature_;
    if (own) raise(own_, ceiling(params, node, group.gain, group.least_hessian));
    raise(to, ceiling(params, node, own ? group.next_gain : group.gain, group.least_hessian));
  };
  for (std::size_t i = 0; i < GroupSurvey::n_groups; ++i) {
    add(survey.valid[i], ceilings_[i]);
    add(survey.waiting[i], ceilings_[GroupSurvey::n_groups + i]);
  }
  pending_ = false;
  n_evaluated_ = n_features;
}

void GainBounds::tighten(std::uint32_t own_number) {
  if (guards_.empty()) return;
  own_number_ = own_number;
  double worth = no_gain;
  float reach = 0;
  for (std::size_t f = 0; f < ceilings_.size(); ++f) {
    if (f == own_number) continue;
    worth = std::max(worth, worth_at_most(ceilings_[f]));
    reach = std::max(reach, ceilings_[f].reach);
  }
  highest_.root = worth < 0 ? -1.0f : above(std::sqrt(worth));
  highest_.reach = reach;
  highest_.drift = below(drift_);
  highest_.lost = below(lost_);
}

// A ceiling above both, as of now.
void GainBounds::raise(Ceiling& ceiling, const Ceiling& other) const {
  if (other.root < 0) return;
  const double worth = worth_at_most(ceiling);
  const float root = worth < 0 ? -1.0f : above(std::sqrt(worth));
  ceiling = {std::max(root, other.root), std::max(ceiling.reach, other.reach), other.drift,
             other.lost};
}

// Over candidates with at most this gain and at least this hessian in either child.
GainBounds::Ceiling GainBounds::ceiling(const GainParams& params, const Totals& node, double gain,
                                        double least_hessian) const {
  Ceiling made;
  const bool any = gain > no_gain;
  made.root = any ? above(std::sqrt(std::max(gain + worth_of_node(params, node), 0.0))) : -1;
  made.reach = any ? above(1 / std::sqrt(least_hessian + params.l2)) : 0;
  made.drift = below(drift_);
  made.lost = below(lost_);
  return made;
}

// --- bounds --------------------------------------------------------------------------------------

double GainBounds::Limits::of_others(std::uint32_t own_number) const {
  if (bounds_.guards_.empty() || own_number != bounds_.own_number_)
    return std::numeric_limits<double>::infinity();
  return of(bounds_.highest_);
}

double GainBounds::Limits::of_all() const {
  if (bounds_.guards_.empty()) return std::max(of(bounds_.own_), of_groups());
  const std::uint32_t own = bounds_.own_number_;
  const double others = of(bounds_.highest_);
  return own < bounds_.ceilings_.size() ? std::max(others, of(bounds_.ceilings_[own])) : others;
}

double GainBounds::Limits::of_groups() const {
  if (bounds_.pending_) return std::numeric_limits<double>::infinity();
  double highest = no_gain;
  // Waiting candidates become valid only when rows are added.
  const std::size_t n = bounds_.n_added_ == 0 ? GroupSurvey::n_groups : bounds_.ceilings_.size();
  for (std::size_t i = 0; i < n; ++i) highest = std::max(highest, of(bounds_.ceilings_[i]));
  return highest;
}

}  // namespace graftboost
