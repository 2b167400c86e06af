#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/array.hpp"
#include "core/parallel.hpp"
#include "data/bins.hpp"
#include "data/bundling.hpp"

namespace graftboost {
namespace {

// Above this many rows the cuts are placed on a sample of about half as many, drawn by hash of the
// row id. A thousand quantiles of 131,072 rows are as good as of all of them.
constexpr std::size_t most_rows_unsampled = std::size_t{1} << 18;

// Columns read together: a row-major table is walked once per group, not once per column.
constexpr std::size_t columns_together = 16;
void parallel_columns(int n_threads, std::size_t n,
                      const std::function<void(std::size_t, std::size_t)>& columns) {
  const std::size_t share = n / static_cast<std::size_t>(std::max(n_threads, 1));
  parallel_blocks(n_threads, n, std::clamp<std::size_t>(share, 1, columns_together), columns);
}

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

// Radix sort, eleven bits a pass; passes in which all keys agree are skipped. Few keys are sorted before
// its counters are cleared.
template <class Key>
void sort_keys(Array<Key>& keys, Array<Key>& scratch) {
  constexpr std::size_t few = 1024;
  if (keys.size() <= few) {
    std::sort(keys.begin(), keys.end());
    return;
  }
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

// What the rows looked at have in a column. Distinct values in ascending order; first[i] is how many of
// the sorted values lie before value i.
struct Distribution {
  WipedVector<double> values;
  std::vector<std::size_t> first;
  std::size_t size = 0;
  std::size_t n_zeros = 0, n_missing = 0;

  // `zeros` are not among the keys.
  template <class Key>
  Distribution(const Array<Key>& sorted, std::size_t zeros, std::size_t missing)
      : n_missing(missing) {
    std::size_t i = 0;
    while (i < sorted.size() || zeros != 0) {
      if (zeros != 0 && (i == sorted.size() || value_of(sorted[i]) >= 0)) {
        add(0.0, std::exchange(zeros, 0));
        continue;
      }
      const std::size_t begin = i;
      while (i < sorted.size() && sorted[i] == sorted[begin]) ++i;
      add(value_of(sorted[begin]), i - begin);
    }
  }

  bool is_rare(std::size_t rare_below) const {
    const std::size_t n = size + n_missing, n_other = n - n_zeros;
    return n_other < rare_below && 8 * n_other < n;
  }

 private:
  void add(double value, std::size_t count) {
    if (value == 0) n_zeros = count;
    values.push_back(value);
    first.push_back(size);
    size += count;
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

// The rows that are looked at: all, or a sample.
struct LookedAt {
  bool all = true;
  std::vector<std::size_t> rows;  // if not all
  std::size_t n = 0;

  LookedAt(std::size_t n_rows, std::span<const RowId> ids, std::uint64_t seed)
      : all(n_rows <= most_rows_unsampled), n(n_rows) {
    if (all) return;
    const double share = static_cast<double>(most_rows_unsampled / 2) / static_cast<double>(n_rows);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const auto id = static_cast<std::uint64_t>(ids.empty() ? static_cast<RowId>(r) : ids[r]);
      if (as_fraction(hash(seed, 0x62696e73, id)) < share) rows.push_back(r);
    }
    n = rows.size();
  }
  std::size_t row(std::size_t i) const { return all ? i : rows[i]; }
};

// Column by column, the values that lie just below an edge.
template <class Value>
using Lows = std::vector<WipedVector<Value>>;

// Lowers the least value above each of `lows` to one that is seen; least[0] is below all of them.
template <class Value>
void see_value(const WipedVector<Value>& lows, Value value, WipedVector<Value>& least) {
  Value& known = least[edges_below(lows.data(), lows.size(), value)];
  if (value < known) known = value;  // a NaN is below nothing and changes nothing
}

// The columns of a table that need be looked at, by their place among these.
template <class Table>
class ColumnReader;

template <class Number>
class ColumnReader<DenseTable<Number>> {
 public:
  using Value = Number;
  using Key = decltype(ordered(Value{}));

  ColumnReader(const DenseTable<Value>& x, const LookedAt& looked_at, const GivenColumns&,
               const BinningParams&)
      : x_(x), looked_at_(looked_at) {}

  std::size_t size() const { return x_.columns; }
  std::uint32_t column(std::size_t i) const { return static_cast<std::uint32_t>(i); }

  // A row-major table is walked once for all of them.
  std::vector<Distribution> read(std::size_t begin, std::size_t n_columns) const {
    const std::size_t n = looked_at_.n;
    std::vector<Array<Key>> columns(n_columns);
    for (auto& column : columns) column.resize(n);
    std::vector<std::size_t> used(n_columns);
    for (std::size_t i = 0; i < n; ++i) {
      const Value* row = x_.row(looked_at_.row(i));
      for (std::size_t c = 0; c < n_columns; ++c) {
        const Value value = cell(row, begin + c);
        columns[c][used[c]] = ordered(value);
        used[c] += !std::isnan(value);
      }
    }
    std::vector<Distribution> seen;
    Array<Key> scratch;
    for (std::size_t c = 0; c < n_columns; ++c) {
      columns[c].resize(used[c]);
      sort_keys(columns[c], scratch);
      seen.emplace_back(columns[c], 0, n - used[c]);
    }
    return seen;
  }

  // Lowers the `least` values above `lows` to those of all rows, sampled or not.
  void see_all(const Lows<Value>& lows, Lows<Value>& least, int n_threads) const {
    parallel_columns(n_threads, size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = 0; r < x_.rows; ++r) {
        const Value* row = x_.row(r);
        for (std::size_t c = begin; c < end; ++c) see_value(lows[c], cell(row, c), least[c]);
      }
    });
  }

 private:
  Value cell(const Value* row, std::size_t column) const {
    return row[static_cast<std::ptrdiff_t>(column) * x_.column_stride];
  }

  const DenseTable<Value>& x_;
  const LookedAt& looked_at_;
};

// Turns the rows looked at on their side, but for the columns that are rare.
template <class Number>
class ColumnReader<SparseTable<Number>> {
 public:
  using Value = Number;
  using Key = decltype(ordered(Value{}));

  ColumnReader(const SparseTable<Value>& x, const LookedAt& looked_at, const GivenColumns& given,
               const BinningParams& params)
      : x_(x), looked_at_(looked_at), place_(x.columns, ColumnIndex::none), begin_(1) {
    std::vector<std::uint32_t> counts(x.columns);
    for (std::size_t i = 0; i < looked_at.n; ++i)
      x.for_each(looked_at.row(i), [&](std::uint32_t c, Value) { ++counts[c]; });
    for (std::uint32_t c = 0; c < x.columns; ++c) {
      const bool rare = counts[c] < params.rare_below && 8 * std::size_t{counts[c]} < looked_at.n;
      if (rare && !given.n_categories.contains(c) && !given.edges.contains(c)) continue;
      place_[c] = static_cast<std::uint32_t>(columns_.size());
      columns_.push_back(c);
      begin_.push_back(begin_.back() + counts[c]);
    }
    values_.resize(begin_.back());
    std::vector<std::size_t> to(begin_.begin(), begin_.end() - 1);
    for (std::size_t i = 0; i < looked_at.n; ++i) {
      x.for_each(looked_at.row(i), [&](std::uint32_t c, Value value) {
        if (place_[c] != ColumnIndex::none) values_[to[place_[c]]++] = value;
      });
    }
  }

  std::size_t size() const { return columns_.size(); }
  std::uint32_t column(std::size_t i) const { return columns_[i]; }

  std::vector<Distribution> read(std::size_t begin, std::size_t n_columns) const {
    std::vector<Distribution> seen;
    Array<Key> keys, scratch;
    for (std::size_t c = begin; c < begin + n_columns; ++c) {
      std::size_t n_missing = 0, n_keys = 0;
      keys.resize(begin_[c + 1] - begin_[c]);
      for (std::size_t i = begin_[c]; i < begin_[c + 1]; ++i) {
        keys[n_keys] = ordered(values_[i]);
        std::isnan(values_[i]) ? ++n_missing : ++n_keys;
      }
      keys.resize(n_keys);
      sort_keys(keys, scratch);
      seen.emplace_back(keys, looked_at_.n - n_keys - n_missing, n_missing);
    }
    return seen;
  }

  // Each thread walks some of the rows and sees values of its own.
  void see_all(const Lows<Value>& lows, Lows<Value>& least, int n_threads) const {
    struct Share {
      Lows<Value> least;
      std::vector<std::size_t> n_cells;
    };
    const auto n_shares = static_cast<std::size_t>(std::max(n_threads, 1));
    std::vector<Share> shares(n_shares, Share{least, std::vector<std::size_t>(size())});
    parallel(n_threads, n_shares, [&](std::size_t s) {
      Share& share = shares[s];
      const std::size_t end = x_.rows * (s + 1) / n_shares;
      for (std::size_t r = x_.rows * s / n_shares; r < end; ++r) {
        x_.for_each(r, [&](std::uint32_t column, Value value) {
          const std::uint32_t c = place_[column];
          if (c == ColumnIndex::none) return;
          ++share.n_cells[c];
          see_value(lows[c], value, share.least[c]);
        });
      }
    });
    for (std::size_t c = 0; c < size(); ++c) {
      std::size_t n_cells = 0;
      for (const Share& share : shares) {
        n_cells += share.n_cells[c];
        for (std::size_t k = 0; k < least[c].size(); ++k)
          least[c][k] = std::min(least[c][k], share.least[c][k]);
      }
      if (n_cells < x_.rows) see_value(lows[c], Value{0}, least[c]);
    }
  }

 private:
  const SparseTable<Value>& x_;
  const LookedAt& looked_at_;
  std::vector<std::uint32_t> columns_;
  std::vector<std::uint32_t> place_;  // of a column of the table in columns_
  std::vector<std::size_t> begin_;    // of each column's cells in values_
  Array<Value> values_;
};

// Fits the features of one model.
template <class Table>
class Fitter {
 public:
  using Value = typename Table::Value;

  Fitter(const Table& x, std::span<const RowId> ids, const GivenColumns& given,
         const BinningParams& params)
      : given_(given),
        params_(params),
        looked_at_(x.rows, ids, params.seed),
        columns_(x, looked_at_, given, params),
        features_(columns_.size()),
        is_rare_(columns_.size()),
        lows_(columns_.size()) {}

  void fit(int n_threads) {
    parallel_columns(n_threads, columns_.size(),
                     [&](std::size_t begin, std::size_t end) { fit_columns(begin, end); });
    if (!looked_at_.all) look_at_all(n_threads);
    for (Feature& feature : features_) feature.edges_single = single_edges(feature.edges);
  }

  // The columns that are not rare, and their features.
  void take(std::vector<std::uint32_t>& columns, std::vector<Feature>& features) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (is_rare_[i]) continue;
      columns.push_back(columns_.column(i));
      features.push_back(std::move(features_[i]));
    }
  }

 private:
  void fit_columns(std::size_t begin, std::size_t end) {
    const std::vector<Distribution> seen = columns_.read(begin, end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const Distribution& distribution = seen[i - begin];
      const std::uint32_t f = columns_.column(i);
      Feature& feature = features_[i];
      if (const auto found = given_.n_categories.find(f); found != given_.n_categories.end()) {
        feature.n_categories = found->second;
      } else if (const auto edges = given_.edges.find(f); edges != given_.edges.end()) {
        feature.edges = edges->second;
      } else if (distribution.is_rare(params_.rare_below)) {
        is_rare_[i] = 1;
      } else {
        for (const std::size_t b : candidates(f, distribution)) {
          const double low = distribution.values[b];
          feature.edges.push_back(edge_between(low, distribution.values[b + 1]));
          lows_[i].push_back(static_cast<Value>(low));
        }
      }
      find_common_code(feature, distribution);
    }
  }

  Boundaries candidates(std::size_t f, const Distribution& seen) const {
    if (seen.values.empty()) return {};
    const auto max_bins = static_cast<std::size_t>(params_.max_bins);
    const auto limit = static_cast<std::size_t>(std::ceil(params_.split_sample * params_.max_bins));
    const Boundaries all =
        params_.width ? width_boundaries(seen, max_bins) : quantile_boundaries(seen, max_bins);
    return draw_candidates(all, limit, params_.seed, f);
  }

  // With a sample, the neighbour in the sample need not be the neighbour in the data, and an edge must
  // not fall on a row's own value. To the sampled rows an edge between the neighbours in the data is the
  // same.
  void look_at_all(int n_threads) {
    Lows<Value> least(lows_.size());
    for (std::size_t i = 0; i < lows_.size(); ++i)
      least[i].assign(lows_[i].size() + 1, std::numeric_limits<Value>::infinity());
    columns_.see_all(lows_, least, n_threads);
    for (std::size_t i = 0; i < lows_.size(); ++i) {
      for (std::size_t k = 0; k < lows_[i].size(); ++k)
        features_[i].edges[k] = edge_between(lows_[i][k], least[i][k + 1]);
    }
  }

  static void find_common_code(Feature& feature, const Distribution& seen) {
    std::vector<std::size_t> counts(feature.n_codes());
    counts[missing_code] = seen.n_missing;
    feature.has_missing = seen.n_missing != 0;
    for (std::size_t i = 0; i < seen.values.size(); ++i) {
      const std::size_t next = i + 1 < seen.values.size() ? seen.first[i + 1] : seen.size;
      counts[feature.code(seen.values[i])] += next - seen.first[i];
    }
    const auto most = std::max_element(counts.begin(), counts.end());
    const std::size_t total = seen.size + seen.n_missing;
    feature.common_code = static_cast<Code>(most - counts.begin());
    feature.common_share =
        total == 0 ? 1.0 : static_cast<double>(*most) / static_cast<double>(total);
  }

  const GivenColumns& given_;
  const BinningParams& params_;
  LookedAt looked_at_;
  ColumnReader<Table> columns_;
  std::vector<Feature> features_;  // of columns_
  std::vector<std::uint8_t> is_rare_;
  Lows<Value> lows_;
};

}  // namespace

BinMap::BinMap(std::size_t n_features, std::vector<std::uint32_t> columns,
               std::vector<Feature> features)
    : n_features_(n_features), cut_(std::move(columns)), features_(std::move(features)) {}

const Feature& BinMap::rare() {
  static const Feature feature = [] {
    Feature made;
    made.edges = {-std::numeric_limits<double>::denorm_min(), 0.0};
    made.edges_single = {-std::numeric_limits<float>::denorm_min(), 0.0f};
    made.common_code = rare_code(0);
    made.common_share = 1;
    return made;
  }();
  return feature;
}

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

template <class Table>
BinMap BinMap::fit(const Table& x, std::span<const RowId> ids, const GivenColumns& given,
                   const BinningParams& params, int n_threads) {
  Fitter<Table> fitter(x, ids, given, params);
  fitter.fit(n_threads);
  std::vector<std::uint32_t> columns;
  std::vector<Feature> features;
  fitter.take(columns, features);
  bundle_features(x, ids, params.seed, columns, features);
  return BinMap(x.columns, std::move(columns), std::move(features));
}

#define GRAFTBOOST_FOR_TABLE(Table)                                                      \
  template BinMap BinMap::fit(const Table&, std::span<const RowId>, const GivenColumns&, \
                              const BinningParams&, int);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
