// Finding bins from rows that are spread over shards.
//
// A shard contributes plain values (ShardBinning) and never sees the rows of another. The bins are
// chosen from the merged contributions (BinChooser) without access to rows. There are up to four
// rounds, each of which is a broadcast to the shards and a reduction of their answers:
//
//     round             broadcast                       contribution          reduction
//     1 (sparse only)   sample of rows                  non-zero counts       +
//     2                 columns to read                 distributions         merge
//     3 (if sampled)    values just below the edges     least values above    min
//     4                 candidates, sample of rows      conflicts             |
//
// Every reduction is exact and independent of the order of shards and rows, so that the bins are
// the same, bit for bit, for any distribution of the rows over shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "core/hashing.hpp"
#include "core/types.hpp"
#include "core/wiping.hpp"
#include "data/bins.hpp"
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

// Chooses bins from the merged contributions of all shards. Borrows its arguments. Owns the
// features in the making and values of rows next to their edges, which are wiped when it is
// destroyed.
class BinChooser {
 public:
  BinChooser(std::size_t n_columns, std::size_t n_rows, const GivenColumns& given,
             const BinningParams& params);

  // The sample from which edges are found.
  const RowSample& sample() const { return sample_; }

  // Round 1, for tables in which most columns may be rare: these columns are not read at all.
  void skip_rare(const NonzeroCounts& counts);
  // The columns to read.
  const std::vector<std::uint32_t>& columns() const { return columns_; }

  // Round 2: the bins of columns()[i]. May be called for different columns from several threads.
  void choose_edges(std::size_t i, const Distribution& distribution);

  // Round 3, unless the sample has all rows: the sampled values just below each edge, and the least
  // values of all rows above them, as ShardBinning::least_above() returns them.
  const ColumnValues& below_edges() const { return below_edges_; }
  void move_edges(const ColumnValues& least_above);

  // Completes the features and drops the columns that are rare.
  void finish_features();

  // Round 4, if there are candidates worth bundling.
  BundleCandidates bundle_candidates() const { return {columns_, features_}; }
  RowSample bundle_sample() const;
  void bundle(const BundleCandidates& candidates, const BundleConflicts& conflicts) {
    choose_bundles(candidates, conflicts, features_);
  }

  BinMap take() { return BinMap(n_columns_, std::move(columns_), std::move(features_)); }

 private:
  bool is_given(std::uint32_t column) const;

  std::size_t n_columns_, n_rows_;
  const GivenColumns& given_;
  const BinningParams& params_;
  RowSample sample_;
  std::vector<std::uint32_t> columns_;
  std::vector<Feature> features_;      // of columns_
  std::vector<std::uint8_t> is_rare_;  // of columns_
  ColumnValues below_edges_;           // of columns_
};

// The bins of the rows of all shards: bit for bit those of one table that holds all of them. Ids
// must be distinct over all shards. There is at least one shard, all have the same number of
// columns, and some may be empty.
template <class Table>
BinMap find_bins(std::span<const TableShard<Table>> shards, const GivenColumns& given,
                 const BinningParams& params, int n_threads);

}  // namespace graftboost
