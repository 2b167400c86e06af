// The row half of a model: rows, and what they recorded in the trees. No gains.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "core/types.hpp"
#include "data/row_index.hpp"
#include "data/row_table.hpp"
#include "data/sample.hpp"
#include "model/gradient_array.hpp"
#include "model/leaf_ids.hpp"
#include "model/loss.hpp"
#include "model/params.hpp"
#include "model/row_undo.hpp"
#include "model/tree.hpp"
#include "train/histogram.hpp"

namespace graftboost {

// What the rows of a shard recorded in one tree. Slot i is the same row as in the RowTable.
struct TreeRows {
  LeafIds leaf_ids;
  GradientArray recorded;  // 0 where the row is outside the tree's subsample
};

// Rows of a node: those in the tree's subsample, which count, and the others, which are only
// routed.
struct ReachingRows {
  std::span<const Slot> inside, outside;
};

// A row that a shifted split sends to another leaf.
struct MovedRow {
  Slot row;
  std::uint16_t from, to;  // leaf ids
  Totals totals;           // what it recorded
};

// Owns some of a model's rows together with their recorded state. It knows leaf ids, but neither
// gains nor the sums of nodes. The operations of an update are all or nothing: between
// begin_update() and commit() everything that changes is saved, and undo() restores it without
// allocating.
class RowShard {
 public:
  RowShard() = default;
  RowShard(RowShard&&) = default;
  RowShard& operator=(RowShard&&) = default;
  // Copies are made between updates only.
  RowShard(const RowShard& other) : rows(other.rows), index(other.index), trees(other.trees) {}

  RowTable rows;
  RowIndex index;               // of the row ids; built when it is first needed
  std::vector<TreeRows> trees;  // empty if the model is not updatable

  std::size_t size() const { return rows.size(); }
  RecordedGradients recorded_in(std::size_t t, LossKind kind) const {
    return {trees[t].recorded.data(), rows.weight.empty() ? nullptr : rows.weight.data(), kind};
  }
  __int128 squares_in(std::size_t t, LossKind kind) const {
    return sum_of_squares(recorded_in(t, kind), 0, size());
  }
  std::int64_t weight_of(Slot row) const { return rows.weight.empty() ? 1 : rows.weight[row]; }
  std::optional<Slot> find(RowId id) {
    if (!index.built()) index.build(rows.ids);
    return index.find(rows.ids, id);
  }

  // Appends rows: their codes, ids, targets and weights as they are given. They record nothing yet.
  template <class Table>
  void append(const BinMap& bins, const Sample<Table>& sample, LossKind kind, int n_threads);
  // Puts targets and weights of the rows from `first` on onto the loss's grids.
  void put_on_grids(const Loss& loss, std::size_t first);

  // --- an update ---------------------------------------------------------------------------------

  // The rows in `removed` (ascending) count for nothing from here on.
  void begin_update(std::vector<Slot> removed);
  // Makes room for what appended rows record, and indexes their ids.
  void extend_trees();
  const std::vector<Slot>& removed() const { return removed_; }
  // The number of rows without those that an update under way has appended.
  std::size_t n_before() const { return undo_ ? undo_->n_rows() : rows.size(); }
  // Where an appended row is in a tree, and what it records there.
  void place(std::size_t t, Slot row, std::uint16_t leaf, Gradient recorded);
  // Exchanges the layout for one in which more columns are laid out, and rewrites these cells.
  void lay_out_columns(CodeLayout layout, std::span<const std::uint32_t> columns,
                       std::span<const RowTable::NewCell> cells);

  // The rows in these leaves, removed ones left out. Valid until `slots` changes; slots can be read
  // for `slots_read_ahead` elements past `inside`.
  ReachingRows rows_in(std::size_t t, const std::vector<std::int32_t>& leaves,
                       const TrainingParams& params, Array<Slot>& slots) const;
  // Routes the rows below `top` again, whose split was `before`. Writes their new leaf ids, and
  // returns the rows of the subsample that moved.
  WipedVector<MovedRow> shift(std::size_t t, const Tree& tree, NodeIndex top, const Split& before,
                              const TrainingParams& params, LossKind kind, Array<Slot>& slots);
  // Moves all rows of one leaf to another. `slots` is memory to work in.
  void merge_leaves(std::size_t t, std::int32_t from, std::int32_t to, Array<Slot>& slots);
  // To be called before the leaf ids or recorded gradients of these rows change. Returns a copy of
  // the slots that is valid until the update ends, readable like rows_in().
  std::span<const Slot> save_rows(std::size_t t, std::span<const Slot> slots);

  // The moves by which commit() fills the slots of removed rows.
  std::vector<RowTable::Move> moves_to_commit() const { return rows.moves_to_vacate(removed_); }
  void commit(const std::vector<RowTable::Move>& moves) noexcept;
  void undo() noexcept;

 private:
  std::vector<Slot> removed_;
  std::unique_ptr<RowUndo> undo_;  // while an update is under way
};

// Owns all rows of a model, in one shard or more: rows are dealt out by a hash of their id. All
// shards have the same layout. A model does not depend on how many shards there are.
class Shards {
 public:
  explicit Shards(std::size_t n_shards = 1) : shards_(n_shards) {}

  std::size_t size() const { return shards_.size(); }
  RowShard& operator[](std::size_t i) { return shards_[i]; }
  const RowShard& operator[](std::size_t i) const { return shards_[i]; }
  auto begin() { return shards_.begin(); }
  auto end() { return shards_.end(); }
  auto begin() const { return shards_.begin(); }
  auto end() const { return shards_.end(); }

  const CodeLayout& layout() const { return shards_[0].rows.layout; }
  std::size_t n_rows() const;
  // The mean number of histogram cells that a row of these shards falls into.
  double cells_per_row() const;

  struct Location {
    std::size_t shard;
    Slot slot;
  };
  std::size_t shard_of(RowId id) const {
    return shards_.size() == 1 ? 0 : mix(static_cast<std::uint64_t>(id)) % shards_.size();
  }
  std::optional<Location> find(RowId id);

  // Deals rows out to the shards and appends them.
  template <class Table>
  void append(const BinMap& bins, const Sample<Table>& sample, LossKind kind, int n_threads);

 private:
  std::vector<RowShard> shards_;
};

}  // namespace graftboost
