// Finding bins from rows that other processes hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/bin_finder.hpp"
#include "remote/message.hpp"
#include "remote/rounds.hpp"

namespace graftboost {

// The rounds of bin_finder.hpp as messages.
class RemoteRowsToBin final : public RowsToBin {
 public:
  // Asks the shards how many rows and columns they have.
  explicit RemoteRowsToBin(Exchange exchange);

  std::size_t n_rows() const override { return n_rows_; }
  std::size_t n_columns() const override { return n_columns_; }
  bool is_sparse() const override { return is_sparse_; }
  void draw(const RowSample& sample) override;
  NonzeroCounts nonzero_counts() override;
  void select(const std::vector<std::uint32_t>& columns) override;
  std::vector<Distribution> distributions(std::size_t begin, std::size_t end) override;
  ColumnValues least_above(const ColumnValues& lower, int n_threads) override;
  BundleConflicts conflicts(const BinChooser& chooser, const BundleCandidates& candidates) override;

 private:
  Rounds rounds_;
  std::size_t n_rows_ = 0, n_columns_ = 0;
  bool is_sparse_ = false;
};

// A shard's answers. Borrows the table and the ids.
class BinningServer {
 public:
  virtual ~BinningServer() = default;
  virtual void execute(std::span<const std::uint8_t> message, Reply& reply) = 0;

  template <class Table>
  static std::unique_ptr<BinningServer> of(const TableShard<Table>& shard, int n_threads);
};

}  // namespace graftboost
