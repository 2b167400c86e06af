#include "data/bin_edges.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/hashing.hpp"

namespace graftboost {
namespace {

using Boundaries = std::vector<std::size_t>;

// How quantile bins share the rows of a column with more values than bins. A value with at least as
// many rows as its share of the bins has a bin of its own, and the other rows share the other bins
// evenly. Otherwise a frequent value would take the rows of several bins and leave these unused.
struct BinShares {
  std::size_t n_rows;  // of values without a bin of their own
  std::size_t n_bins;  // for them
  std::size_t least_frequent = std::numeric_limits<std::size_t>::max();  // with a bin of its own

  BinShares(const Distribution& distribution, std::size_t max_bins)
      : n_rows(distribution.size), n_bins(max_bins) {
    std::vector<std::size_t> counts(distribution.values.size());
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = distribution.count(i);
    std::make_heap(counts.begin(), counts.end());
    // There are more values than bins, so one bin is always left.
    for (auto end = counts.end(); counts.front() * n_bins >= n_rows; --end) {
      least_frequent = counts.front();
      n_rows -= least_frequent;
      --n_bins;
      std::pop_heap(counts.begin(), end);
    }
  }
  // The bins that a value with so many rows fills, times n_rows.
  std::size_t filled_by(std::size_t count) const {
    return count >= least_frequent ? n_rows : count * n_bins;
  }
};

// For every k, the boundary that is nearest to having k bins on its left, and the lower one of two.
Boundaries quantile_boundaries(const Distribution& distribution, std::size_t max_bins) {
  Boundaries chosen;
  const std::size_t n_values = distribution.values.size();
  if (n_values <= max_bins) {
    for (std::size_t b = 0; b + 1 < n_values; ++b) chosen.push_back(b);
    return chosen;
  }
  const BinShares shares(distribution, max_bins);
  std::size_t b = 0, filled = shares.filled_by(distribution.count(0)), before = 0;
  for (std::size_t k = 1; k < max_bins; ++k) {
    const std::size_t wanted = k * shares.n_rows;
    while (filled < wanted && b + 2 < n_values) {
      before = filled;
      filled += shares.filled_by(distribution.count(++b));
    }
    const bool lower = b > 0 && filled >= wanted && wanted - before <= filled - wanted;
    const std::size_t nearest = lower ? b - 1 : b;
    if (chosen.empty() || chosen.back() < nearest) chosen.push_back(nearest);
  }
  return chosen;
}

// Algorithm 4 of the paper: a bin ends where the next value lies more than the width above the
// first value of the bin. The width doubles until the bins are few enough.
Boundaries width_boundaries(const Distribution& distribution, std::size_t max_bins) {
  const auto& values = distribution.values;
  for (double width = 1e-10;; width *= 2) {
    Boundaries chosen;
    for (auto bin_start = values.begin();;) {
      const auto next = std::upper_bound(bin_start, values.end(), *bin_start + width);
      if (next == values.end()) return chosen;
      if (chosen.size() + 1 == max_bins) break;
      chosen.push_back(static_cast<std::size_t>(next - values.begin()) - 1);
      bin_start = next;
    }
  }
}

// Keeps at most `limit` of the boundaries, evenly spaced. A hash decides where the first one lies.
Boundaries draw_candidates(const Boundaries& all, std::size_t limit, std::uint64_t seed,
                           std::size_t feature) {
  if (all.size() <= limit) return all;
  Boundaries drawn;
  const double spacing = static_cast<double>(all.size()) / static_cast<double>(limit);
  const double first = as_fraction(hash(seed, feature, 0)) * spacing;
  for (std::size_t k = 0; k < limit; ++k) {
    const double at = first + static_cast<double>(k) * spacing;
    drawn.push_back(all[std::min(static_cast<std::size_t>(at), all.size() - 1)]);
  }
  return drawn;
}

}  // namespace

std::vector<std::size_t> choose_boundaries(const Distribution& distribution,
                                           const BinningParams& params, std::size_t feature) {
  if (distribution.values.empty()) return {};
  const auto max_bins = static_cast<std::size_t>(params.max_bins);
  const auto limit = static_cast<std::size_t>(std::ceil(params.split_sample * params.max_bins));
  return draw_candidates(params.width ? width_boundaries(distribution, max_bins)
                                      : quantile_boundaries(distribution, max_bins),
                         limit, params.seed, feature);
}

double edge_between(double low, double high) {
  // Both are halved first, because the sum or the difference of two large values may overflow.
  const double middle = low / 2 + high / 2, quarter = high / 4 - low / 4;
  const double from = low + quarter, to = high - quarter;
  if (!(low < middle && middle < high)) return low;
  std::array<char, 32> text;
  for (int digits = 1; digits <= 17; ++digits) {
    const auto written = std::to_chars(text.data(), text.data() + text.size(), middle,
                                       std::chars_format::scientific, digits - 1);
    double edge = middle;
    std::from_chars(text.data(), written.ptr, edge);
    if (from <= edge && edge <= to) return edge;
  }
  return middle;
}

}  // namespace graftboost
