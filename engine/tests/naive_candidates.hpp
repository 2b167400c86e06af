// The candidates of a feature and their gains, computed in the most direct way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/sums.hpp"
#include "data/code_layout.hpp"
#include "train/gain.hpp"

namespace graftboost::testing {

struct NaiveCandidate {
  std::uint32_t key = 0;        // of equal scores the smaller key wins
  std::vector<bool> goes_left;  // per code; of codes without rows it does not matter
  Totals left;
  double score = 0, gain = no_gain;

  bool is_valid() const { return gain != no_gain; }
};

// All candidates, valid or not, of a feature whose cells have these sums.
inline std::vector<NaiveCandidate> naive_candidates(const GainParams& params, const Totals& node,
                                                    const FeatureLayout& feature,
                                                    const std::vector<Totals>& cells) {
  std::vector<NaiveCandidate> all;
  const auto add = [&](std::uint32_t key, auto&& goes_left) {
    NaiveCandidate candidate;
    candidate.key = key;
    for (std::uint32_t c = 0; c < feature.n_codes; ++c) {
      candidate.goes_left.push_back(goes_left(c));
      if (goes_left(c)) candidate.left += cells[c];
    }
    const Totals& left = candidate.left;
    const Totals right = node - left;
    const auto real_g = [&](const Totals& t) {
      return static_cast<double>(t.g) * params.gradient_unit;
    };
    const auto real_h = [&](const Totals& t) {
      return static_cast<double>(t.h) * params.hessian_unit;
    };
    const auto score_of = [&](const Totals& t) {
      return real_g(t) * real_g(t) / (real_h(t) + params.l2);
    };
    const bool valid = left.n >= params.min_samples_leaf && right.n >= params.min_samples_leaf &&
                       real_h(left) >= params.least_hessian &&
                       real_h(right) >= params.least_hessian;
    candidate.score = valid ? score_of(left) + score_of(right) : no_gain;
    candidate.gain = valid ? candidate.score - score_of(node) : no_gain;
    all.push_back(std::move(candidate));
  };
  const bool any_missing = cells[missing_code].n != 0;
  if (feature.categorical) {
    for (std::uint32_t code = 0; code < feature.n_codes; ++code)
      add(code, [&](std::uint32_t c) { return c == code; });
    return all;
  }
  for (std::uint32_t last = 1; last + 1 < feature.n_codes; ++last) {
    add(2 * last, [&](std::uint32_t c) { return c != missing_code && c <= last; });
    if (any_missing) add(2 * last + 1, [&](std::uint32_t c) { return c <= last; });
  }
  if (any_missing)
    add(2 * (feature.n_codes - 1), [&](std::uint32_t c) { return c != missing_code; });
  return all;
}

// The best of them; none if no candidate is valid.
inline std::optional<NaiveCandidate> naive_best(const std::vector<NaiveCandidate>& candidates) {
  std::optional<NaiveCandidate> best;
  for (const NaiveCandidate& candidate : candidates) {
    if (!candidate.is_valid()) continue;
    if (!best || candidate.score > best->score ||
        (candidate.score == best->score && candidate.key < best->key))
      best = candidate;
  }
  return best;
}

}  // namespace graftboost::testing
