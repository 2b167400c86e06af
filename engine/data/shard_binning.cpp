#include "data/shard_binning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

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

std::size_t columns_per_task(std::size_t n_columns, int n_threads) {
  constexpr std::size_t most = 16;
  return std::clamp<std::size_t>(n_columns / static_cast<std::size_t>(std::max(n_threads, 1)), 1,
                                 most);
}

template <class Table>
ShardBinning<Table>::ShardBinning(const TableShard<Table>& shard, const RowSample& sample)
    : shard_(shard), sample_has_all_(sample.has_all()), n_sampled_(shard.table.rows) {
  if (!sample_has_all_) {
    for (std::size_t r = 0; r < shard.table.rows; ++r)
      if (sample.has(shard.id(r))) sampled_rows_.push_back(r);
    n_sampled_ = sampled_rows_.size();
  }
  if constexpr (is_sparse_table<Table>) {
    counts_ = {n_sampled_, std::vector<std::uint32_t>(shard.table.columns)};
    for (std::size_t i = 0; i < n_sampled_; ++i) {
      shard.table.for_each(sampled_row(i), [&](std::uint32_t c, Value) { ++counts_.by_column[c]; });
    }
  }
}

template <class Table>
void ShardBinning<Table>::select(const std::vector<std::uint32_t>& columns) {
  columns_ = SelectedColumns(columns, shard_.table.columns);
  if constexpr (is_sparse_table<Table>) transpose();
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
  if constexpr (is_sparse_table<Table>) {
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
  const auto n_shares =
      is_sparse_table<Table> ? static_cast<std::size_t>(std::max(n_threads, 1)) : 1;
  const std::size_t block_size =
      is_sparse_table<Table> ? std::max<std::size_t>(n, 1) : columns_per_task(n, n_threads);
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

template class ShardBinning<DenseTable<float>>;
template class ShardBinning<DenseTable<double>>;
template class ShardBinning<SparseTable<float>>;
template class ShardBinning<SparseTable<double>>;

}  // namespace graftboost
