#include "data/bin_finder.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/parallel.hpp"

namespace graftboost {

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

  if constexpr (is_sparse_table<Table>) {
    NonzeroCounts counts = parts[0].nonzero_counts();
    for (std::size_t s = 1; s < parts.size(); ++s) counts += parts[s].nonzero_counts();
    chooser.skip_rare(counts);
  }
  chooser.begin_features();
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
  template BinMap find_bins(std::span<const TableShard<Table>>, const GivenColumns&,     \
                            const BinningParams&, int);                                  \
  template BinMap BinMap::fit(const Table&, std::span<const RowId>, const GivenColumns&, \
                              const BinningParams&, int);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
