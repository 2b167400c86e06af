// Choosing bins from what all shards contribute (see bin_finder.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "data/bins.hpp"
#include "data/bundling.hpp"
#include "data/distribution.hpp"
#include "data/shard_binning.hpp"

namespace graftboost {

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

  // Makes room for the features of columns(). Only now, because a sparse table may have millions of
  // rare columns.
  void begin_features();
  // Round 2: the bins of columns()[i]. May be called for different columns from several threads.
  void choose_edges(std::size_t i, const Distribution& distribution);

  // Round 3, unless the sample has all rows: the sampled values just below each edge, and the least
  // values of all rows above them, as ShardBinning::least_above() returns them.
  const ColumnValues& below_edges() const { return below_edges_; }
  void move_edges(const ColumnValues& least_above);

  // Completes the features and drops the columns that are rare.
  void finish_features();

  // Round 4, if there are candidates worth bundling.
  const std::vector<Feature>& features() const { return features_; }
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

}  // namespace graftboost
