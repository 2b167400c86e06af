#include "data/bin_finder.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/parallel.hpp"

namespace graftboost {

namespace {

// Rows in tables of this process.
template <class Table>
class TablesToBin final : public RowsToBin {
 public:
  explicit TablesToBin(std::span<const TableShard<Table>> shards) : shards_(shards) {
    if (shards.empty()) throw std::invalid_argument("bins are found from at least one shard");
    for (const auto& shard : shards) {
      if (shard.table.columns != n_columns())
        throw std::invalid_argument("all shards must have the same number of columns");
      n_rows_ += shard.table.rows;
    }
  }

  std::size_t n_rows() const override { return n_rows_; }
  std::size_t n_columns() const override { return shards_[0].table.columns; }
  bool is_sparse() const override { return is_sparse_table<Table>; }

  void draw(const RowSample& sample) override {
    parts_.reserve(shards_.size());
    for (const auto& shard : shards_) parts_.emplace_back(shard, sample);
  }
  NonzeroCounts nonzero_counts() override {
    NonzeroCounts counts = parts_[0].nonzero_counts();
    for (std::size_t s = 1; s < parts_.size(); ++s) counts += parts_[s].nonzero_counts();
    return counts;
  }
  void select(const std::vector<std::uint32_t>& columns) override {
    for (auto& part : parts_) part.select(columns);
  }
  std::vector<Distribution> distributions(std::size_t begin, std::size_t end) override {
    std::vector<Distribution> merged = parts_[0].distributions(begin, end);
    for (std::size_t s = 1; s < parts_.size(); ++s)
      merge_all(merged, parts_[s].distributions(begin, end));
    return merged;
  }
  ColumnValues least_above(const ColumnValues& lower, int n_threads) override {
    ColumnValues least = parts_[0].least_above(lower, n_threads);
    for (std::size_t s = 1; s < parts_.size(); ++s)
      take_least(least, parts_[s].least_above(lower, n_threads));
    return least;
  }
  BundleConflicts conflicts(const BinChooser& chooser,
                            const BundleCandidates& candidates) override {
    BundleConflicts conflicts = parts_[0].conflicts(candidates, chooser.bundle_sample());
    for (std::size_t s = 1; s < parts_.size(); ++s)
      conflicts |= parts_[s].conflicts(candidates, chooser.bundle_sample());
    return conflicts;
  }

 private:
  std::span<const TableShard<Table>> shards_;
  std::size_t n_rows_ = 0;
  std::vector<ShardBinning<Table>> parts_;
};

}  // namespace

void merge_all(std::vector<Distribution>& to, const std::vector<Distribution>& more) {
  for (std::size_t i = 0; i < more.size(); ++i) to[i] = merge(to[i], more[i]);
}

void take_least(ColumnValues& to, const ColumnValues& more) {
  for (std::size_t c = 0; c < to.size(); ++c) {
    for (std::size_t k = 0; k < to[c].size(); ++k) to[c][k] = std::min(to[c][k], more[c][k]);
  }
}

BinMap find_bins(RowsToBin& rows, const GivenColumns& given, const BinningParams& params,
                 int n_threads) {
  BinChooser chooser(rows.n_columns(), rows.n_rows(), given, params);
  rows.draw(chooser.sample());
  if (rows.is_sparse()) chooser.skip_rare(rows.nonzero_counts());
  chooser.begin_features();
  rows.select(chooser.columns());
  const std::size_t n = chooser.columns().size();
  parallel_blocks(n_threads, n, columns_per_task(n, n_threads),
                  [&](std::size_t begin, std::size_t end) {
                    const std::vector<Distribution> merged = rows.distributions(begin, end);
                    for (std::size_t i = begin; i < end; ++i)
                      chooser.choose_edges(i, merged[i - begin]);
                  });
  if (!chooser.sample().has_all())
    chooser.move_edges(rows.least_above(chooser.below_edges(), n_threads));
  chooser.finish_features();
  const BundleCandidates candidates = chooser.bundle_candidates();
  if (candidates.worth_bundling(rows.n_rows()))
    chooser.bundle(candidates, rows.conflicts(chooser, candidates));
  return chooser.take();
}

template <class Table>
BinMap find_bins(std::span<const TableShard<Table>> shards, const GivenColumns& given,
                 const BinningParams& params, int n_threads) {
  TablesToBin<Table> rows(shards);
  return find_bins(rows, given, params, n_threads);
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
