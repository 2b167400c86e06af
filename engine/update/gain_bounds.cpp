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
  ceilings_.resize(grouped ? 2 * GroupSurvey::n_groups : 0);
  ceilings_.fill(Ceiling{});
  n_added_ = 0;
  pending_ = false;
  n_evaluated_ = layout.size();
  own_ = Ceiling{};
  own_feature_ = ColumnIndex::none;
  const double h = static_cast<double>(node.h) * params.hessian_unit;
  centre_ = params.l2 == 0 && h > 0 ? static_cast<double>(node.g) * params.gradient_unit / h : 0;
  drift_ = {};
  features_.start(grouped ? 0 : layout.size(), h, params.l2);
  margin_ = Margin{};
}

// --- results of evaluations ----------------------------------------------------------------------

void GainBounds::evaluated(const GainParams& params, const Totals& node, std::uint32_t number,
                           double gain, const FeatureSurvey& survey) {
  const double h = static_cast<double>(node.h) * params.hessian_unit;
  const double of_node = worth_of_node(params, node);
  const auto worth = [&](double of) {
    return of > no_gain ? std::max(of + of_node, 0.0) : no_gain;
  };
  const double outer_gain =
      survey.outer_score > no_gain ? NodeScale(params, node).gain(survey.outer_score) : no_gain;
  features_.evaluated(number, drift_, h, params.l2, worth(gain), worth(outer_gain), survey);
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

void GainBounds::rows_removed(std::span<const FeatureDrift> drift, std::int64_t n) {
  if (!known()) return;
  margin_.rows -= n;
  for (std::uint32_t f = 0; f < drift.size(); ++f)
    features_.rows_removed(f, drift[f].g + std::abs(centre_) * drift[f].h, drift[f].h);
}

void GainBounds::sums_changed(std::span<const FeatureDrift> drift) {
  if (is_grouped()) return forget();
  for (std::uint32_t f = 0; f < drift.size(); ++f)
    features_.sums_changed(f, drift[f].g + std::abs(centre_) * drift[f].h, drift[f].h);
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
  made.drift = below(drift_.up + drift_.down);
  made.lost = below(drift_.lost);
  return made;
}

// --- bounds --------------------------------------------------------------------------------------

double GainBounds::Limits::of_others(std::uint32_t own_number) const {
  if (bounds_.is_grouped()) return std::numeric_limits<double>::infinity();
  return gain(bounds_.features_.highest_worth(bounds_.drift_, own_number));
}

double GainBounds::Limits::of_all() const {
  if (bounds_.is_grouped()) return std::max(of(bounds_.own_), of_groups());
  return of_others(ColumnIndex::none);
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
