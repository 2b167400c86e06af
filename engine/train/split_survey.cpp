#include "train/split_survey.hpp"

#include <algorithm>
#include <bit>

namespace graftboost {
namespace {

std::size_t group_of(double hessian) {
  constexpr std::int64_t bias = 1023, lowest = -4;  // the first group is 2^lowest and less
  const auto exponent =
      static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(hessian) >> 52) - bias;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(exponent - lowest, 0, GroupSurvey::n_groups - 1));
}

}  // namespace

void GroupSurvey::note(std::array<Group, n_groups>& groups, std::uint32_t feature,
                       const NodeScale& scale, double score, double hessian) {
  const bool any = hessian > 0;
  Group& group = groups[any ? group_of(hessian) : 0];
  const double gain = any ? scale.gain(score) : std::numeric_limits<double>::infinity();
  group.least_hessian = std::min(group.least_hessian, std::max(hessian, 0.0));
  if (group.feature == feature && group.gain != no_gain) {
    group.gain = std::max(group.gain, gain);
  } else if (gain > group.gain) {
    group.next_gain = group.gain;
    group.gain = gain;
    group.feature = feature;
  } else {
    group.next_gain = std::max(group.next_gain, gain);
  }
}

void GroupSurvey::add(const GroupSurvey& other) {
  const auto merge = [](Group& to, const Group& from) {
    to.least_hessian = std::min(to.least_hessian, from.least_hessian);
    if (from.gain > to.gain) {
      to.next_gain = std::max(to.gain, from.next_gain);
      to.gain = from.gain;
      to.feature = from.feature;
    } else {
      to.next_gain = std::max(to.next_gain, from.gain);
    }
  };
  for (std::size_t i = 0; i < n_groups; ++i) {
    merge(valid[i], other.valid[i]);
    merge(waiting[i], other.waiting[i]);
  }
}

}  // namespace graftboost
