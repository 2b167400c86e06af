// What a shard of rows contributes to finding bins (see bin_finder.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "core/hashing.hpp"
#include "core/types.hpp"
#include "core/wiping.hpp"
#include "data/bundling.hpp"
#include "data/distribution.hpp"
#include "data/table.hpp"

namespace graftboost {

// A sample of rows, drawn by a hash of the row id.
struct RowSample {
  std::uint64_t seed = 0;
  std::uint64_t purpose = 0;  // samples for different purposes are independent
  double share = 1;           // 1 or more: all rows

  bool has_all() const { return share >= 1; }
  bool has(RowId id) const {
    return has_all() || as_fraction(hash(seed, purpose, static_cast<std::uint64_t>(id))) < share;
  }
};

// The rows of one shard. If `ids` is empty, the rows are numbered on from `first_id`.
template <class Table>
struct TableShard {
  Table table;
  std::span<const RowId> ids;
  RowId first_id = 0;

  RowId id(std::size_t row) const {
    return ids.empty() ? first_id + static_cast<RowId>(row) : ids[row];
  }
};

// How many sampled rows there are, and how many have a value other than 0 in each column.
struct NonzeroCounts {
  std::size_t n_rows = 0;
  std::vector<std::uint32_t> by_column;

  NonzeroCounts& operator+=(const NonzeroCounts& other);
};

// A list of values for each column that is read.
using ColumnValues = std::vector<WipedVector<double>>;

// The columns that are read, ascending, with a table to find their numbers. The table has an
// element for every column: it is consulted for each cell, which is too often for a ColumnIndex.
class SelectedColumns {
 public:
  SelectedColumns() = default;
  SelectedColumns(std::vector<std::uint32_t> columns, std::size_t n_columns);

  std::size_t size() const { return columns_.size(); }
  std::uint32_t operator[](std::size_t number) const { return columns_[number]; }
  std::uint32_t find(std::uint32_t column) const { return numbers_[column]; }

 private:
  std::vector<std::uint32_t> columns_;
  std::vector<std::uint32_t> numbers_;  // ColumnIndex::none if the column is not read
};

// What one shard contributes. Borrows the table and the ids. Owns the values of sampled rows while
// columns are read; they are wiped when it is destroyed.
template <class Table>
class ShardBinning {
 public:
  using Value = typename Table::Value;

  ShardBinning(const TableShard<Table>& shard, const RowSample& sample);

  // Of a sparse table; empty for a dense one.
  const NonzeroCounts& nonzero_counts() const { return counts_; }

  // Selects the columns that all following calls number from 0.
  void select(const std::vector<std::uint32_t>& columns);
  // The distributions of the sampled rows in the selected columns begin to end - 1. May be called
  // from several threads.
  std::vector<Distribution> distributions(std::size_t begin, std::size_t end) const;
  // For every selected column c, the least values of all rows, sampled or not, between given
  // values: element k of the result lies above lower[c][k - 1] and is at most lower[c][k]. Infinity
  // if there is no such value.
  ColumnValues least_above(const ColumnValues& lower, int n_threads) const;

  BundleConflicts conflicts(const BundleCandidates& candidates, const RowSample& sample) const;

 private:
  std::size_t sampled_row(std::size_t i) const { return sample_has_all_ ? i : sampled_rows_[i]; }
  void transpose();

  TableShard<Table> shard_;
  bool sample_has_all_;
  std::vector<std::size_t> sampled_rows_;  // empty if the sample has all rows
  std::size_t n_sampled_;
  NonzeroCounts counts_;
  SelectedColumns columns_;
  // Sparse tables only: the non-zero values of the sampled rows, column by column. The values of
  // selected column c begin at begin_[c].
  std::vector<std::size_t> begin_;
  Array<Value> values_;
};

// The number of columns of a dense table that one thread reads together: several, so that the rows
// are walked once per group of columns, but not so many that threads have nothing to do.
std::size_t columns_per_task(std::size_t n_columns, int n_threads);

}  // namespace graftboost
