#include "data/bin_finder.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "core/parallel.hpp"
#include "data/bin_edges.hpp"

namespace graftboost {
namespace {

template <class Table>
inline constexpr bool is_sparse = std::is_same_v<Table, SparseTable<typename Table::Value>>;

// With more rows than this, edges are found from a sample of about half this number. A thousand
// quantiles of 131,072 rows are about as good as those of all rows.
constexpr std::size_t most_rows_unsampled = std::size_t{1} << 18;
constexpr double n_rows_for_bundling = 1 << 14;

// The purposes of samples.
constexpr std::uint64_t for_edges = 0x62696e73, for_bundling = 0x62756e64;

// Columns of a dense table that are read together, so that its rows are walked once per group of
// columns and not once per column.
constexpr std::size_t columns_together = 16;
std::size_t columns_per_task(std::size_t n_columns, int n_threads) {
  const std::size_t share = n_columns / static_cast<std::size_t>(std::max(n_threads, 1));
  return std::clamp<std::size_t>(share, 1, columns_together);
}

// Some of the selected columns, numbered from 0.
struct ColumnBlock {
  const SelectedColumns& all;
  std::size_t begin, end;

  std::size_t size() const { return end - begin; }
  std::uint32_t operator[](std::size_t i) const { return all[begin + i]; }
  std::uint32_t find(std::uint32_t column) const {
    const std::uint32_t number = all.find(column);
    return number >= begin && number < end ? static_cast<std::uint32_t>(number - begin)
                                           : ColumnIndex::none;
  }
};

// The least values of a block of columns above each of the `lower` values, over some of the rows.
// Owns the least values.
template <class Value>
class LeastValues {
 public:
  LeastValues() = default;
  // Refers to the values of lower[begin] to lower[end - 1].
  LeastValues(const std::vector<WipedVector<Value>>& lower, std::size_t begin, std::size_t end) {
    std::size_t n = 0;
    for (std::size_t c = begin; c < end; ++c) n += lower[c].size() + 1;
    least_.assign(n, std::numeric_limits<Value>::infinity());
    Value* least = least_.data();
    for (std::size_t c = begin; c < end; ++c) {
      columns_.push_back({lower[c].data(), lower[c].size(), least, 0});
      least += lower[c].size() + 1;
    }
  }

  void add_nonzero(std::size_t i, Value value) {
    ++columns_[i].n_nonzero;
    columns_[i].add(value);
  }
  // The values of all parts, which together have read `n_rows` rows.
  static WipedVector<double> merged(std::span<LeastValues* const> parts, std::size_t i,
                                    std::size_t n_rows) {
    std::size_t n_nonzero = 0;
    for (const LeastValues* part : parts) n_nonzero += part->columns_[i].n_nonzero;
    if (n_nonzero < n_rows) parts[0]->columns_[i].add(Value{0});
    const std::size_t n = parts[0]->columns_[i].n_lower + 1;
    WipedVector<double> result(n, std::numeric_limits<double>::infinity());
    for (const LeastValues* part : parts) {
      for (std::size_t k = 0; k < n; ++k)
        result[k] = std::min<double>(result[k], part->columns_[i].least[k]);
    }
    return result;
  }

 private:
  struct Column {
    const Value* lower;
    std::size_t n_lower;
    Value* least;  // n_lower + 1 values
    std::size_t n_nonzero;

    void add(Value value) {
      Value& known = least[n_below(lower, n_lower, value)];
      if (value < known) known = value;  // false for a missing value
    }
  };
  std::vector<Column> columns_;
  WipedVector<Value> least_;
};

// The most frequent code of a feature.
void find_common_code(Feature& feature, const Distribution& distribution) {
  std::vector<std::size_t> counts(feature.n_codes());
  counts[missing_code] = distribution.n_missing;
  feature.has_missing = distribution.n_missing != 0;
  for (std::size_t i = 0; i < distribution.values.size(); ++i)
    counts[feature.code(distribution.values[i])] += distribution.count(i);
  const auto most = std::max_element(counts.begin(), counts.end());
  const std::size_t n_rows = distribution.n_rows();
  feature.common_code = static_cast<Code>(most - counts.begin());
  feature.common_share =
      n_rows == 0 ? 1.0 : static_cast<double>(*most) / static_cast<double>(n_rows);
}

bool is_rare(std::size_t n_nonzero, std::size_t n_rows, std::size_t rare_below) {
  return n_nonzero < rare_below && 8 * n_nonzero < n_rows;
}

}  // namespace

NonzeroCounts& NonzeroCounts::operator+=(const NonzeroCounts& other) {
  n_rows += other.n_rows;
  for (std::size_t c = 0; c < by_column.size(); ++c) by_column[c] += other.by_column[c];
  return *this;
}

SelectedColumns::SelectedColumns(std::vector<std::uint32_t> columns, std::size_t n_columns)
    : columns_(std::move(columns)), numbers_(n_columns, ColumnIndex::none) {
  for (std::uint32_t i = 0; i < columns_.size(); ++i) numbers_[columns_[i]] = i;
}

// --- what a shard contributes --------------------------------------------------------------------

template <class Table>
ShardBinning<Table>::ShardBinning(const TableShard<Table>& shard, const RowSample& sample)
    : shard_(shard), sample_has_all_(sample.has_all()), n_sampled_(shard.table.rows) {
  if (!sample_has_all_) {
    for (std::size_t r = 0; r < shard.table.rows; ++r)
      if (sample.has(shard.id(r))) sampled_rows_.push_back(r);
    n_sampled_ = sampled_rows_.size();
  }
  if constexpr (is_sparse<Table>) {
    counts_ = {n_sampled_, std::vector<std::uint32_t>(shard.table.columns)};
    for (std::size_t i = 0; i < n_sampled_; ++i) {
      shard.table.for_each(sampled_row(i), [&](std::uint32_t c, Value) { ++counts_.by_column[c]; });
    }
  }
}

template <class Table>
void ShardBinning<Table>::select(const std::vector<std::uint32_t>& columns) {
  columns_ = SelectedColumns(columns, shard_.table.columns);
  if constexpr (is_sparse<Table>) transpose();
}

template <class Table>
void ShardBinning<Table>::transpose() {
  begin_.assign(1, 0);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    begin_.push_back(begin_.back() + counts_.by_column[columns_[c]]);
  values_.resize(begin_.back());
  std::vector<std::size_t> end(begin_.begin(), begin_.end() - 1);
  for (std::size_t i = 0; i < n_sampled_; ++i) {
    shard_.table.for_each_nonzero(sampled_row(i), columns_,
                                  [&](std::uint32_t c, Value value) { values_[end[c]++] = value; });
  }
}

// There are two versions: the columns of a dense table are read in groups, without a copy of the
// whole sample; those of a sparse table can only be read after it was transposed.
template <class Table>
std::vector<Distribution> ShardBinning<Table>::distributions(std::size_t begin,
                                                             std::size_t end) const {
  using Key = decltype(ordered_key(Value{}));
  std::vector<Distribution> result;
  result.reserve(end - begin);
  if constexpr (is_sparse<Table>) {
    Array<Key> keys, scratch;
    for (std::size_t c = begin; c < end; ++c) {
      std::size_t n_missing = 0, n_keys = 0;
      keys.resize(begin_[c + 1] - begin_[c]);
      for (std::size_t i = begin_[c]; i < begin_[c + 1]; ++i) {
        keys[n_keys] = ordered_key(values_[i]);
        std::isnan(values_[i]) ? ++n_missing : ++n_keys;
      }
      keys.resize(n_keys);
      const std::size_t n_zeros = n_sampled_ - n_keys - n_missing;
      result.push_back(distribution_of(keys, n_zeros, n_missing, scratch));
    }
  } else {
    const Table x = shard_.table;  // a copy, because the keys that are written cannot alias it
    const std::size_t n = end - begin;
    std::vector<Array<Key>> keys(n);
    for (auto& column : keys) column.resize(n_sampled_);
    std::vector<std::size_t> n_keys(n);
    Array<Key> scratch;
    for (std::size_t i = 0; i < n_sampled_; ++i) {
      const std::size_t row = sampled_row(i);
      for (std::size_t c = 0; c < n; ++c) {
        const Value value = x.at(row, columns_[begin + c]);
        keys[c][n_keys[c]] = ordered_key(value);
        n_keys[c] += !std::isnan(value);
      }
    }
    for (std::size_t c = 0; c < n; ++c) {
      keys[c].resize(n_keys[c]);
      result.push_back(distribution_of(keys[c], 0, n_sampled_ - n_keys[c], scratch));
      keys[c] = {};  // its memory serves the distribution of the next column
    }
  }
  return result;
}

// Threads share the columns of a dense table, so that the values of few columns stay in cache. They
// share the rows of a sparse table, whose cells can only be read row by row.
template <class Table>
ColumnValues ShardBinning<Table>::least_above(const ColumnValues& lower, int n_threads) const {
  const Table& x = shard_.table;
  const std::size_t n = columns_.size();
  const auto n_shares = is_sparse<Table> ? static_cast<std::size_t>(std::max(n_threads, 1)) : 1;
  const std::size_t block_size =
      is_sparse<Table> ? std::max<std::size_t>(n, 1) : columns_per_task(n, n_threads);
  const std::size_t n_blocks = (n + block_size - 1) / block_size;

  std::vector<WipedVector<Value>> lower_values(n);
  for (std::size_t c = 0; c < n; ++c) lower_values[c].assign(lower[c].begin(), lower[c].end());
  std::vector<LeastValues<Value>> found(n_shares * n_blocks);
  parallel(n_threads, found.size(), [&](std::size_t task) {
    const std::size_t share = task / n_blocks, begin = task % n_blocks * block_size;
    const ColumnBlock block{columns_, begin, std::min(n, begin + block_size)};
    LeastValues<Value> values(lower_values, block.begin, block.end);
    const Table table = x;  // a copy, because the counters that are written cannot alias it
    const std::size_t end = x.rows * (share + 1) / n_shares;
    for (std::size_t r = x.rows * share / n_shares; r < end; ++r) {
      table.for_each_nonzero(r, block,
                             [&](std::uint32_t i, Value value) { values.add_nonzero(i, value); });
    }
    found[task] = std::move(values);
  });

  ColumnValues result(n);
  std::vector<LeastValues<Value>*> shares(n_shares);
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t share = 0; share < n_shares; ++share)
      shares[share] = &found[share * n_blocks + c / block_size];
    result[c] = LeastValues<Value>::merged(shares, c % block_size, x.rows);
  }
  return result;
}

template <class Table>
BundleConflicts ShardBinning<Table>::conflicts(const BundleCandidates& candidates,
                                               const RowSample& sample) const {
  BundleConflicts conflicts(candidates.size());
  std::vector<std::size_t> differing;
  for (std::size_t r = 0; r < shard_.table.rows; ++r) {
    if (!sample.has(shard_.id(r))) continue;
    differing.clear();
    candidates.for_each_differing(shard_.table, r, [&](std::size_t i) { differing.push_back(i); });
    conflicts.add(differing);
  }
  return conflicts;
}

// --- what is chosen from the contributions -------------------------------------------------------

BinChooser::BinChooser(std::size_t n_columns, std::size_t n_rows, const GivenColumns& given,
                       const BinningParams& params)
    : n_columns_(n_columns), n_rows_(n_rows), given_(given), params_(params) {
  sample_ = {params.seed, for_edges, 1};
  if (n_rows > most_rows_unsampled) {
    sample_.share = static_cast<double>(most_rows_unsampled / 2) / static_cast<double>(n_rows);
  }
  columns_.resize(n_columns);
  std::iota(columns_.begin(), columns_.end(), 0u);
  features_.resize(n_columns);
  is_rare_.resize(n_columns);
  below_edges_.resize(n_columns);
}

bool BinChooser::is_given(std::uint32_t column) const {
  return given_.n_categories.contains(column) || given_.edges.contains(column);
}

void BinChooser::skip_rare(const NonzeroCounts& counts) {
  std::erase_if(columns_, [&](std::uint32_t column) {
    return is_rare(counts.by_column[column], counts.n_rows, params_.rare_below) &&
           !is_given(column);
  });
  features_.resize(columns_.size());
  is_rare_.resize(columns_.size());
  below_edges_.resize(columns_.size());
}

void BinChooser::choose_edges(std::size_t i, const Distribution& distribution) {
  const std::uint32_t column = columns_[i];
  Feature& feature = features_[i];
  if (const auto found = given_.n_categories.find(column); found != given_.n_categories.end()) {
    feature.n_categories = found->second;
  } else if (const auto edges = given_.edges.find(column); edges != given_.edges.end()) {
    feature.edges = edges->second;
  } else if (is_rare(distribution.n_rows() - distribution.n_zeros, distribution.n_rows(),
                     params_.rare_below)) {
    is_rare_[i] = 1;
    return;
  } else {
    for (const std::size_t b : choose_boundaries(distribution, params_, column)) {
      const double below = distribution.values[b];
      feature.edges.push_back(edge_between(below, distribution.values[b + 1]));
      below_edges_[i].push_back(below);
    }
  }
  find_common_code(feature, distribution);
}

// In a sample, the next sampled value above an edge need not be the next value of all rows, and an
// edge must not lie on the value of any row. Moving the edge between the neighbours in all rows
// changes the code of no sampled row.
void BinChooser::move_edges(const ColumnValues& least_above) {
  for (std::size_t i = 0; i < below_edges_.size(); ++i) {
    for (std::size_t k = 0; k < below_edges_[i].size(); ++k)
      features_[i].edges[k] = edge_between(below_edges_[i][k], least_above[i][k + 1]);
  }
}

void BinChooser::finish_features() {
  std::size_t n = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (is_rare_[i]) continue;
    features_[i].edges_single = single_edges(features_[i].edges);
    columns_[n] = columns_[i];
    if (n != i) features_[n] = std::move(features_[i]);
    ++n;
  }
  columns_.resize(n);
  features_.resize(n);
}

RowSample BinChooser::bundle_sample() const {
  return {params_.seed, for_bundling, n_rows_for_bundling / static_cast<double>(n_rows_)};
}

// --- one process ---------------------------------------------------------------------------------

template <class Table>
BinMap find_bins(std::span<const TableShard<Table>> shards, const GivenColumns& given,
                 const BinningParams& params, int n_threads) {
  if (shards.empty()) throw std::invalid_argument("bins are found from at least one shard");
  const std::size_t n_columns = shards[0].table.columns;
  std::size_t n_rows = 0;
  for (const auto& shard : shards) {
    if (shard.table.columns != n_columns)
      throw std::invalid_argument("all shards must have the same number of columns");
    n_rows += shard.table.rows;
  }
  BinChooser chooser(n_columns, n_rows, given, params);
  std::vector<ShardBinning<Table>> parts;
  parts.reserve(shards.size());
  for (const auto& shard : shards) parts.emplace_back(shard, chooser.sample());

  if constexpr (is_sparse<Table>) {
    NonzeroCounts counts = parts[0].nonzero_counts();
    for (std::size_t s = 1; s < parts.size(); ++s) counts += parts[s].nonzero_counts();
    chooser.skip_rare(counts);
  }
  for (auto& part : parts) part.select(chooser.columns());
  const std::size_t n = chooser.columns().size();
  parallel_blocks(n_threads, n, columns_per_task(n, n_threads),
                  [&](std::size_t begin, std::size_t end) {
                    std::vector<Distribution> merged = parts[0].distributions(begin, end);
                    for (std::size_t s = 1; s < parts.size(); ++s) {
                      const auto more = parts[s].distributions(begin, end);
                      for (std::size_t i = 0; i < more.size(); ++i)
                        merged[i] = merge(merged[i], more[i]);
                    }
                    for (std::size_t i = begin; i < end; ++i)
                      chooser.choose_edges(i, merged[i - begin]);
                  });

  if (!chooser.sample().has_all()) {
    ColumnValues least = parts[0].least_above(chooser.below_edges(), n_threads);
    for (std::size_t s = 1; s < parts.size(); ++s) {
      const ColumnValues more = parts[s].least_above(chooser.below_edges(), n_threads);
      for (std::size_t c = 0; c < least.size(); ++c) {
        for (std::size_t k = 0; k < least[c].size(); ++k)
          least[c][k] = std::min(least[c][k], more[c][k]);
      }
    }
    chooser.move_edges(least);
  }
  chooser.finish_features();

  const BundleCandidates candidates = chooser.bundle_candidates();
  if (candidates.worth_bundling(n_rows)) {
    BundleConflicts conflicts = parts[0].conflicts(candidates, chooser.bundle_sample());
    for (std::size_t s = 1; s < parts.size(); ++s)
      conflicts |= parts[s].conflicts(candidates, chooser.bundle_sample());
    chooser.bundle(candidates, conflicts);
  }
  return chooser.take();
}

template <class Table>
BinMap BinMap::fit(const Table& x, std::span<const RowId> ids, const GivenColumns& given,
                   const BinningParams& params, int n_threads) {
  const TableShard<Table> shard{x, ids, 0};
  return find_bins(std::span(&shard, 1), given, params, n_threads);
}

#define GRAFTBOOST_FOR_TABLE(Table)                                                      \
  template class ShardBinning<Table>;                                                    \
  template BinMap find_bins(std::span<const TableShard<Table>>, const GivenColumns&,     \
                            const BinningParams&, int);                                  \
  template BinMap BinMap::fit(const Table&, std::span<const RowId>, const GivenColumns&, \
                              const BinningParams&, int);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
