#include "data/bundling.hpp"

#include <algorithm>

namespace graftboost {
namespace {

constexpr std::size_t most_candidates = 1024;  // every pair of candidates takes a bit
// The one-hot columns of three equally frequent categories may be bundled. Columns in which more
// rows differ hardly ever have nothing but the common code in all of them.
constexpr double least_common_share = 0.6;

}  // namespace

BundleCandidates::BundleCandidates(const std::vector<std::uint32_t>& columns,
                                   const std::vector<Feature>& features) {
  for (std::uint32_t f = 0; f < features.size(); ++f) {
    const bool fits = BundledCodes(features[f]).n <= most_bundled_codes / 2;
    if (features[f].common_share <= least_common_share || !fits) continue;
    if (features[f].code(0.0) != features[f].common_code) zero_differs_.push_back(size());
    numbers_.push_back(f);
    columns_.add(columns[f]);
    features_.push_back(&features[f]);
  }
}

bool BundleCandidates::worth_bundling(std::size_t n_rows) const {
  std::size_t n_codes = 0;
  for (const Feature* feature : features_) n_codes += feature->n_codes();
  return size() >= 2 && size() <= most_candidates && n_codes <= n_rows;
}

// Each feature joins a bundle that has room for it and in which it conflicts with no other feature.
// The bundle of the preceding feature is tried first, because neighbouring columns often encode one
// category.
void choose_bundles(const BundleCandidates& candidates, const BundleConflicts& conflicts,
                    std::vector<Feature>& features) {
  std::vector<std::vector<std::size_t>> bundles;
  std::vector<std::uint32_t> n_codes;
  std::size_t b = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::uint32_t wanted = BundledCodes(features[candidates[i]]).n;
    const auto can_join = [&](std::size_t bundle) {
      return bundle < bundles.size() && n_codes[bundle] + wanted <= most_bundled_codes &&
             std::ranges::none_of(
                 bundles[bundle], [&](std::size_t j) { return conflicts.has(i, j); });
    };
    if (!can_join(b)) {
      b = 0;
      while (b < bundles.size() && !can_join(b)) ++b;
    }
    if (b == bundles.size()) {
      bundles.emplace_back();
      n_codes.push_back(0);
    }
    bundles[b].push_back(i);
    n_codes[b] += wanted;
  }
  std::int32_t number = 0;
  for (const auto& bundle : bundles) {
    if (bundle.size() < 2) continue;
    for (const std::size_t i : bundle) features[candidates[i]].bundle = number;
    ++number;
  }
}

}  // namespace graftboost
