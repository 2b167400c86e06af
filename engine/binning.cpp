#include "binning.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "array.hpp"
#include "bundling.hpp"
#include "parallel.hpp"

namespace graftboost {
namespace {

// Above this many rows the cuts are placed on a sample of about half as many, drawn by hash of the
// row id. A thousand quantiles of 131,072 rows are as good as of all of them.
constexpr std::size_t most_rows_unsampled = std::size_t{1} << 18;

// Columns read together: a row-major table is walked once per group, not once per column.
constexpr std::size_t columns_together = 16;

// Number of edges below the value, without a branch on the data.
template <class Value>
std::size_t edges_below(const Value* edges, std::size_t n, Value value) {
  if (n == 0) return 0;
  const Value* base = edges;
  while (n > 1) {
    const std::size_t half = n / 2;
    base += half * static_cast<std::size_t>(base[half - 1] < value);
    n -= half;
  }
  return static_cast<std::size_t>(base - edges) + (*base < value ? 1 : 0);
}

template <class Value>
Code category_code(std::uint32_t n_categories, Value value) {
  const bool known = value >= 0 && value < static_cast<Value>(n_categories);
  return static_cast<Code>(known ? static_cast<std::uint32_t>(value) + 1 : n_categories + 1);
}

// Unsigned keys in the order of the floating-point values, and back.
inline std::uint32_t ordered(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v + 0.0f);  // + 0: -0 and 0 are one value
  return bits ^ ((bits >> 31) ? 0xffffffffu : 0x80000000u);
}
inline std::uint64_t ordered(double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v + 0.0);
  return bits ^ ((bits >> 63) ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}
inline double value_of(std::uint32_t key) {
  return std::bit_cast<float>(key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu));
}
inline double value_of(std::uint64_t key) {
  return std::bit_cast<double>(key ^ ((key >> 63) ? std::uint64_t{1} << 63 : ~std::uint64_t{0}));
}

// Radix sort, eleven bits a pass; passes in which all keys agree are skipped.
template <class Key>
void sort_keys(Array<Key>& keys, Array<Key>& scratch) {
  constexpr int digit_bits = 11;
  constexpr int n_digits = (8 * sizeof(Key) + digit_bits - 1) / digit_bits;
  constexpr std::size_t radix = std::size_t{1} << digit_bits;
  std::vector<std::array<std::uint32_t, radix>> counts(n_digits);
  for (auto& c : counts) c.fill(0);
  for (const Key key : keys) {
    for (int d = 0; d < n_digits; ++d) ++counts[d][(key >> (d * digit_bits)) & (radix - 1)];
  }
  scratch.resize(keys.size());
  for (int d = 0; d < n_digits; ++d) {
    auto& count = counts[d];
    const auto digit = [d](Key key) { return (key >> (d * digit_bits)) & (radix - 1); };
    if (keys.empty() || count[digit(keys[0])] == keys.size()) continue;
    std::uint32_t start = 0;
    for (auto& c : count) start += std::exchange(c, start);
    for (const Key key : keys) scratch[count[digit(key)]++] = key;
    keys.swap(scratch);
  }
}

// Distinct values in ascending order; first[i] is how many sorted values lie before value i.
struct Distribution {
  std::vector<double> values;
  std::vector<std::size_t> first;
  std::size_t size = 0;

  template <class Key>
  explicit Distribution(const Array<Key>& sorted) : size(sorted.size()) {
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (i == 0 || sorted[i] != sorted[i - 1]) {
        values.push_back(value_of(sorted[i]));
        first.push_back(i);
      }
    }
  }
};

// A boundary b lies between values[b] and values[b + 1].
using Boundaries = std::vector<std::size_t>;

Boundaries quantile_boundaries(const Distribution& seen, std::size_t max_bins) {
  Boundaries chosen;
  const std::size_t n_values = seen.values.size();
  if (n_values <= max_bins) {
    for (std::size_t b = 0; b + 1 < n_values; ++b) chosen.push_back(b);
    return chosen;
  }
  std::size_t b = 0;
  for (std::size_t k = 1; k < max_bins; ++k) {
    const std::size_t rank = k * seen.size / max_bins;
    while (b + 1 < n_values && seen.first[b + 1] < rank) ++b;
    if (b + 1 >= n_values) break;
    if (chosen.empty() || chosen.back() != b) chosen.push_back(b);
  }
  return chosen;
}

// Algorithm 4 of the paper: a bin ends where a value lies more than the width above its first one;
// the width doubles until the bins are few enough.
Boundaries width_boundaries(const Distribution& seen, std::size_t max_bins) {
  const auto& values = seen.values;
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

// Keeps at most `limit`, evenly spaced among all; where the first lies is a matter of hash.
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

std::vector<std::size_t> sampled_rows(std::size_t n_rows, std::span<const RowId> ids,
                                      std::uint64_t seed) {
  std::vector<std::size_t> rows;
  const double share = static_cast<double>(most_rows_unsampled / 2) / static_cast<double>(n_rows);
  for (std::size_t r = 0; r < n_rows; ++r) {
    const auto id = static_cast<std::uint64_t>(ids.empty() ? static_cast<RowId>(r) : ids[r]);
    if (as_fraction(hash(seed, 0x62696e73, id)) < share) rows.push_back(r);
  }
  return rows;
}

// Fits the features of one model. Group by group: the columns of a group are read in one walk.
template <class Value>
class Fitter {
 public:
  Fitter(const Matrix<Value>& x, std::span<const RowId> ids, const BinningParams& params)
      : x_(x), params_(params), sampled_(x.rows > most_rows_unsampled) {
    if (sampled_) rows_ = sampled_rows(x.rows, ids, params.seed);
  }

  void fit_group(std::size_t begin, std::span<Feature> group, const GivenEdges& given) const {
    auto columns = read_columns(begin, group.size());
    std::vector<Distribution> seen;
    std::vector<std::vector<Value>> lows(group.size()), highs(group.size());
    Array<Key> scratch;
    for (std::size_t i = 0; i < group.size(); ++i) {
      sort_keys(columns[i], scratch);
      seen.emplace_back(columns[i]);
      if (group[i].categorical() || given[begin + i]) continue;
      for (const std::size_t b : candidates(begin + i, seen[i])) {
        lows[i].push_back(static_cast<Value>(seen[i].values[b]));
        highs[i].push_back(static_cast<Value>(seen[i].values[b + 1]));
      }
    }
    if (sampled_) highs = next_values(begin, lows);
    const std::size_t n = sampled_ ? rows_.size() : x_.rows;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (given[begin + i]) group[i].edges = *given[begin + i];
      for (std::size_t k = 0; k < lows[i].size(); ++k) {
        group[i].edges.push_back(edge_between(lows[i][k], highs[i][k]));
      }
      group[i].edges_single = single_edges(group[i].edges);
      find_common_code(group[i], seen[i], n - seen[i].size);
    }
  }

 private:
  using Key = decltype(ordered(Value{}));

  Value cell(const Value* row, std::size_t column) const {
    return row[static_cast<std::ptrdiff_t>(column) * x_.column_stride];
  }

  // The values that are there, as keys, for the rows that are looked at.
  std::vector<Array<Key>> read_columns(std::size_t begin, std::size_t n_columns) const {
    const std::size_t n = sampled_ ? rows_.size() : x_.rows;
    std::vector<Array<Key>> columns(n_columns);
    for (auto& column : columns) column.resize(n);
    std::vector<std::size_t> used(n_columns);
    for (std::size_t i = 0; i < n; ++i) {
      const Value* row = x_.row(sampled_ ? rows_[i] : i);
      for (std::size_t c = 0; c < n_columns; ++c) {
        const Value value = cell(row, begin + c);
        columns[c][used[c]] = ordered(value);
        used[c] += !std::isnan(value);
      }
    }
    for (std::size_t c = 0; c < n_columns; ++c) columns[c].resize(used[c]);
    return columns;
  }

  Boundaries candidates(std::size_t f, const Distribution& seen) const {
    if (seen.values.empty()) return {};
    const auto max_bins = static_cast<std::size_t>(params_.max_bins);
    const auto limit = static_cast<std::size_t>(std::ceil(params_.split_sample * params_.max_bins));
    const Boundaries all =
        params_.width ? width_boundaries(seen, max_bins) : quantile_boundaries(seen, max_bins);
    return draw_candidates(all, limit, params_.seed, f);
  }

  // The least value above each of `lows` among all rows: with a sample, the neighbour in the sample
  // need not be the neighbour in the data, and an edge must not fall on a row's own value.
  std::vector<std::vector<Value>> next_values(std::size_t begin,
                                              const std::vector<std::vector<Value>>& lows) const {
    std::vector<std::vector<Value>> least(lows.size());
    for (std::size_t c = 0; c < lows.size(); ++c) {
      least[c].assign(lows[c].size() + 1, std::numeric_limits<Value>::infinity());
    }
    for (std::size_t r = 0; r < x_.rows; ++r) {
      const Value* row = x_.row(r);
      for (std::size_t c = 0; c < lows.size(); ++c) {
        const Value value = cell(row, begin + c);  // a NaN is below nothing and changes nothing
        Value& known = least[c][edges_below(lows[c].data(), lows[c].size(), value)];
        if (value < known) known = value;
      }
    }
    for (auto& column : least) column.erase(column.begin());
    return least;
  }

  static void find_common_code(Feature& feature, const Distribution& seen, std::size_t n_missing) {
    std::vector<std::size_t> counts(feature.n_codes());
    counts[missing_code] = n_missing;
    for (std::size_t i = 0; i < seen.values.size(); ++i) {
      const std::size_t next = i + 1 < seen.values.size() ? seen.first[i + 1] : seen.size;
      counts[feature.code(seen.values[i])] += next - seen.first[i];
    }
    const auto most = std::max_element(counts.begin(), counts.end());
    const std::size_t total = seen.size + n_missing;
    feature.common_code = static_cast<Code>(most - counts.begin());
    feature.common_share =
        total == 0 ? 1.0 : static_cast<double>(*most) / static_cast<double>(total);
  }

  const Matrix<Value>& x_;
  const BinningParams& params_;
  bool sampled_;
  std::vector<std::size_t> rows_;
};

}  // namespace

std::vector<float> single_edges(const std::vector<double>& edges) {
  std::vector<float> singles;
  for (const double edge : edges) {
    auto single = static_cast<float>(edge);
    if (static_cast<double>(single) > edge) {
      single = std::nextafter(single, -std::numeric_limits<float>::infinity());
    }
    singles.push_back(single);
  }
  return singles;
}

Code Feature::code(double value) const {
  if (std::isnan(value)) return missing_code;
  if (categorical()) return category_code(n_categories, value);
  return static_cast<Code>(1 + edges_below(edges.data(), edges.size(), value));
}

Code Feature::code(float value) const {
  if (std::isnan(value)) return missing_code;
  if (categorical()) return category_code(n_categories, value);
  return static_cast<Code>(1 + edges_below(edges_single.data(), edges_single.size(), value));
}

double edge_between(double low, double high) {
  // Halves first: the sum, or the difference, of two large values may not be representable.
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

template <class Value>
BinMap BinMap::fit(const Matrix<Value>& x, std::span<const RowId> ids,
                   const std::vector<std::uint32_t>& n_categories, const GivenEdges& given,
                   const BinningParams& params, int n_threads) {
  std::vector<Feature> features(x.columns);
  for (std::size_t f = 0; f < x.columns; ++f) features[f].n_categories = n_categories[f];
  const Fitter<Value> fitter(x, ids, params);
  const std::size_t share = x.columns / static_cast<std::size_t>(std::max(n_threads, 1));
  parallel_blocks(n_threads, x.columns, std::clamp<std::size_t>(share, 1, columns_together),
                  [&](std::size_t begin, std::size_t end) {
                    fitter.fit_group(begin, std::span(features).subspan(begin, end - begin), given);
                  });
  bundle_features(x, ids, params.seed, features);
  return BinMap(std::move(features));
}

template BinMap BinMap::fit(const Matrix<float>&, std::span<const RowId>,
                            const std::vector<std::uint32_t>&, const GivenEdges&,
                            const BinningParams&, int);
template BinMap BinMap::fit(const Matrix<double>&, std::span<const RowId>,
                            const std::vector<std::uint32_t>&, const GivenEdges&,
                            const BinningParams&, int);

}  // namespace graftboost
