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

#include <span>

#include "data/bin_chooser.hpp"
#include "data/bins.hpp"
#include "data/shard_binning.hpp"

namespace graftboost {

// Combine what shards contribute to rounds 2 and 3.
void merge_all(std::vector<Distribution>& to, const std::vector<Distribution>& more);
void take_least(ColumnValues& to, const ColumnValues& more);

// What the rows of all shards contribute together, wherever they are.
class RowsToBin {
 public:
  virtual std::size_t n_rows() const = 0;
  virtual std::size_t n_columns() const = 0;
  virtual bool is_sparse() const = 0;
  // To be called first.
  virtual void draw(const RowSample& sample) = 0;
  virtual NonzeroCounts nonzero_counts() = 0;
  virtual void select(const std::vector<std::uint32_t>& columns) = 0;
  // May be called from several threads.
  virtual std::vector<Distribution> distributions(std::size_t begin, std::size_t end) = 0;
  virtual ColumnValues least_above(const ColumnValues& lower, int n_threads) = 0;
  virtual BundleConflicts conflicts(const BinChooser& chooser,
                                    const BundleCandidates& candidates) = 0;

 protected:
  ~RowsToBin() = default;
};

BinMap find_bins(RowsToBin& rows, const GivenColumns& given, const BinningParams& params,
                 int n_threads);

// The bins of the rows of all shards: bit for bit those of one table that holds all of them. Ids
// must be distinct over all shards. There is at least one shard, all have the same number of
// columns, and some may be empty.
template <class Table>
BinMap find_bins(std::span<const TableShard<Table>> shards, const GivenColumns& given,
                 const BinningParams& params, int n_threads);

}  // namespace graftboost
