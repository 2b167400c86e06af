// The row side of a tree that grows: the rows of all shards, arranged by node.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/node_histogram.hpp"
#include "model/row_shard.hpp"
#include "remote/remote_rows.hpp"
#include "train/active_cells.hpp"
#include "train/histogram.hpp"
#include "train/row_partition.hpp"

namespace graftboost {

// What growing needs of the rows besides their recorded gradients: one numbering of cells for all
// shards, and the entries of each shard. Shared by the trees that grow side by side.
class GrowingCells {
 public:
  // All cells of the layout, for regrowing.
  static GrowingCells of_layout(const Shards& shards);
  // Only the cells that some row falls into, for training all trees. `n_rows_in` is empty if no row
  // has entries of sparse features.
  static GrowingCells of_rows(const Shards& shards, const WipedVector<std::uint32_t>& n_rows_in);
  static GrowingCells of_rows(const Shards& shards) { return of_rows(shards, count_rows(shards)); }
  // The number of rows in each cell, over these shards; empty if no row has such entries.
  static WipedVector<std::uint32_t> count_rows(const Shards& shards);

  const ActiveCells& active() const { return *active_; }
  const ActiveEntries& entries(std::size_t shard) const { return entries_[shard]; }

 private:
  GrowingCells(const Shards& shards, std::unique_ptr<const ActiveCells> active);

  std::unique_ptr<const ActiveCells> active_;  // entries_ refer to it
  std::vector<ActiveEntries> entries_;
};

// Answers the two requests of growing: the histogram of a node, and the routing of its rows to the
// children of a split. These are the only places where rows become sums. Sums are integers, so
// neither the shards, here or elsewhere, nor the threads that count a share of the rows make a
// difference. Used for one tree after the other, by one thread at a time.
template <class Sums>
class GrowingRows {
 public:
  // `elsewhere` are the rows of other processes; null if there are none.
  GrowingRows(const Shards& shards, const GrowingCells& cells, int n_threads,
              RemoteRows* elsewhere = nullptr);

  // Begins tree t. The caller writes the root's rows of each shard (see RowPartition::start): those
  // that are counted, and those outside the tree's subsample, which are only routed.
  void begin(std::size_t t, LossKind kind);
  Slot* start(std::size_t shard, std::size_t n_rows) { return parts_[shard].start(n_rows); }
  Slot* start_outside(std::size_t shard, std::size_t n_rows) {
    has_outside_ = true;
    return outside_[shard].start(n_rows);
  }

  // The number of this growth, by which shards elsewhere know it.
  std::uint32_t growth() const { return growth_; }
  // Whether questions cost a round of messages, so that it is better to ask for several nodes at
  // once, even if some may not be needed.
  bool asks_elsewhere() const { return elsewhere_ != nullptr; }

  // Counts the root, or another node, into a histogram of all active cells. `meanwhile` is work for
  // a thread that has no rows to count. If there are rows elsewhere, `before` gets what those of the
  // root recorded before the growth.
  void count_root(Histogram<Sums>& histogram, Histogram<Sums>* before = nullptr);
  void count(NodeIndex node, Histogram<Sums>& histogram,
             const std::function<void()>& meanwhile = {});
  void count_all(std::span<const NodeIndex> nodes, std::span<Histogram<Sums>* const> histograms);
  // The sums of the root's rows. Call count_root() first.
  Totals total() const;
  // The rows elsewhere of the root: see RemoteRows::Root.
  const RemoteRows::Root& root_elsewhere() const { return root_; }
  void split(NodeIndex parent, const Split& split, NodeIndex left, NodeIndex right) {
    if (elsewhere_ != nullptr) elsewhere_->split(growth_, {parent, left, right, split});
    for (RowPartition& part : parts_) part.split(parent, split, left, right);
    if (!has_outside_) return;
    for (RowPartition& part : outside_) part.split(parent, split, left, right);
  }

  std::size_t n_shards() const { return parts_.size(); }
  std::span<const Slot> rows_of(std::size_t shard, NodeIndex node) const {
    return parts_[shard].rows_of(node);
  }
  std::span<const Slot> outside_of(std::size_t shard, NodeIndex node) const {
    return has_outside_ ? outside_[shard].rows_of(node) : std::span<const Slot>();
  }

 private:
  void add_rows(std::size_t shard, NodeIndex node, Histogram<Sums>& histogram, bool clear,
                const std::function<void()>& meanwhile);
  void add_root(std::size_t shard, Histogram<Sums>& histogram, bool clear);
  bool counts_by_cell() const;

  const Shards& shards_;
  const GrowingCells& cells_;
  int n_threads_;
  RemoteRows* elsewhere_;
  std::uint32_t growth_ = 0;
  RemoteRows::Root root_;
  double cells_per_row_;
  std::vector<RowPartition> parts_;    // one per shard
  std::vector<RowPartition> outside_;  // likewise
  bool has_outside_ = false;
  std::vector<RecordedGradients> recorded_;
  std::vector<Histogram<Sums>> partial_;  // counts of single threads
  Array<Sums> of_rows_;                   // what each row of a shard adds to the tree
};

}  // namespace graftboost
