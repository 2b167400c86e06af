#include "update/histogram_drift.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace graftboost {
namespace {

// The sums of a difference, which may be negative. Counts are equal, so their bits are 0, or those of
// a sum of rows, and are cut off.
Totals signed_totals(const PackedSums& sums) {
  std::uint64_t lanes[2];
  sums.store(lanes);
  return {static_cast<std::int64_t>(lanes[0]),
          static_cast<std::int64_t>(lanes[1]) >> PackedSums::count_bits, 0};
}
Totals signed_totals(const WideSums& sums) { return sums; }

// The largest sizes of what children gain or lose.
struct Largest {
  std::int64_t g = 0, h = 0;

  void add(const Totals& child) {
    g = std::max(g, std::abs(child.g));
    h = std::max(h, std::abs(child.h));
  }
};

// change(cell) is what a cell gains.
template <class Sums, class Change>
std::vector<FeatureDrift> drift_by(const CodeLayout& layout, const GainParams& params,
                                   const Totals& difference, Change&& change) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<FeatureDrift> drift(layout.size());
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const FeatureLayout& feature = layout[f];
    if (feature.kind == FeatureLayout::Kind::sparse) {
      drift[f] = {infinity, infinity};
      continue;
    }
    const Sums none(Totals{});
    Sums common = none;  // the change of the common code, where it is not counted
    if (feature.counts_only_differing()) {
      common += Sums(difference);
      for (std::uint32_t c = 0; c < feature.n_codes; ++c)
        if (c != feature.common_code) common -= change(feature.offset + c);
    }
    const auto all = [&](std::uint32_t c) {
      return feature.counts_only_differing() && c == feature.common_code
                 ? common
                 : change(feature.offset + c);
    };
    Largest largest;
    Sums running = none;
    for (std::uint32_t c = 1; c < feature.n_codes; ++c) {
      running = feature.categorical ? none : running;
      running += all(c);
      largest.add(signed_totals(running));
    }
    // The missing rows may be on either side, and the other child has the rest.
    const Totals missing = signed_totals(all(missing_code));
    const std::int64_t g = largest.g + std::abs(missing.g) + std::abs(difference.g);
    const std::int64_t h = largest.h + std::abs(missing.h) + std::abs(difference.h);
    drift[f] = {static_cast<double>(g) * params.gradient_unit,
                static_cast<double>(h) * params.hessian_unit};
  }
  return drift;
}

}  // namespace

template <class Sums>
std::vector<FeatureDrift> drift_between(const CodeLayout& layout, const GainParams& params,
                                        const NodeHistogram<Sums>& before,
                                        const NodeHistogram<Sums>& after,
                                        const Totals& difference) {
  return drift_by<Sums>(layout, params, difference,
                        [&](std::uint32_t cell) { return after.plain[cell] - before.plain[cell]; });
}

template <class Sums>
std::vector<FeatureDrift> drift_of(const CodeLayout& layout, const GainParams& params,
                                   const NodeHistogram<Sums>& rows, const Totals& totals) {
  return drift_by<Sums>(layout, params, totals,
                        [&](std::uint32_t cell) { return rows.plain[cell]; });
}

#define GRAFTBOOST_FOR_SUMS(Sums)                                                              \
  template std::vector<FeatureDrift> drift_between(const CodeLayout&, const GainParams&,       \
                                                   const NodeHistogram<Sums>&,                 \
                                                   const NodeHistogram<Sums>&, const Totals&); \
  template std::vector<FeatureDrift> drift_of(const CodeLayout&, const GainParams&,            \
                                              const NodeHistogram<Sums>&, const Totals&);
GRAFTBOOST_FOR_SUMS(PackedSums)
GRAFTBOOST_FOR_SUMS(WideSums)

}  // namespace graftboost
