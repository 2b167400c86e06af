#include "bundling.hpp"

#include <algorithm>
#include <numeric>

namespace graftboost {
namespace {

constexpr double rows_looked_at = 1 << 14;
constexpr std::size_t most_candidates = 1024;  // conflicts are counted pair by pair
constexpr std::uint32_t most_codes = 255;      // of a bundle, in one byte beside "none differs"

}  // namespace

template <class Value>
void bundle_features(const Matrix<Value>& x, std::span<const RowId> ids, std::uint64_t seed,
                     std::vector<Feature>& features) {
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t f = 0; f < features.size(); ++f) {
    if (sparse_saving(features[f]) > 0 && features[f].n_codes() <= most_codes / 2)
      candidates.push_back(f);
  }
  const std::size_t n = candidates.size();
  if (n < 2 || n > most_candidates || x.rows == 0) return;

  std::vector<bool> conflict(n * n);
  std::vector<std::size_t> differing;
  const double share = rows_looked_at / static_cast<double>(x.rows);
  for (std::size_t r = 0; r < x.rows; ++r) {
    const auto id = static_cast<std::uint64_t>(ids.empty() ? static_cast<RowId>(r) : ids[r]);
    if (share < 1 && as_fraction(hash(seed, 0x62756e64, id)) >= share) continue;
    differing.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const Feature& feature = features[candidates[i]];
      if (feature.code(x.at(r, candidates[i])) != feature.common_code) differing.push_back(i);
    }
    for (const std::size_t i : differing) {
      for (const std::size_t j : differing) conflict[i * n + j] = true;
    }
  }

  // Each feature joins the first bundle in which it conflicts with nobody and still has room.
  std::vector<std::vector<std::size_t>> bundles;
  std::vector<std::uint32_t> n_codes;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t wanted = features[candidates[i]].n_codes();
    std::size_t b = 0;
    for (; b < bundles.size(); ++b) {
      const auto in_conflict = [&](std::size_t j) { return conflict[i * n + j]; };
      if (n_codes[b] + wanted <= most_codes && std::ranges::none_of(bundles[b], in_conflict)) break;
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

template void bundle_features(const Matrix<float>&, std::span<const RowId>, std::uint64_t,
                              std::vector<Feature>&);
template void bundle_features(const Matrix<double>&, std::span<const RowId>, std::uint64_t,
                              std::vector<Feature>&);

}  // namespace graftboost
