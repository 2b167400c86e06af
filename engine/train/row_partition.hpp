// The rows of one shard that a tree is grown from, arranged by node.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/array.hpp"
#include "core/types.hpp"
#include "data/row_table.hpp"
#include "train/active_cells.hpp"

namespace graftboost {

// Owns a list of slots in which the rows of each node lie together. Used for one tree after the
// other, by one thread at a time.
class RowPartition {
 public:
  RowPartition(const RowTable& rows, const ActiveEntries& entries, int n_threads)
      : rows_(rows), entries_(entries), n_threads_(n_threads) {}

  // Begins a tree. The caller writes the rows of the root, node 0, to the memory returned; if they
  // turn out to be fewer, a second call with their number keeps them.
  Slot* start(std::size_t n_rows);
  // Sends the rows of a node to its children, which keep the rows in order.
  void split(NodeIndex parent, const Split& split, NodeIndex left, NodeIndex right);
  // Slots can be read for `slots_read_ahead` elements past the end.
  std::span<const Slot> rows_of(NodeIndex node) const {
    const auto [begin, end] = ranges_[static_cast<std::size_t>(node)];
    return {slots_.data() + begin, end - begin};
  }

 private:
  std::size_t partition(std::size_t begin, std::size_t end, const Split& split);
  std::size_t partition_slots(std::size_t begin, std::size_t end, const Split& split);
  std::size_t partition_block(const Split& split, std::size_t begin, std::size_t end, Slot* lefts,
                              Slot* rights) const;

  const RowTable& rows_;
  const ActiveEntries& entries_;
  int n_threads_;
  Array<Slot> slots_, left_scratch_, right_scratch_;
  std::vector<std::pair<std::size_t, std::size_t>> ranges_;  // of slots_, per node
  // Codes of the feature that rows are being split by, plus one, where `entries_` lists the row;
  // else 0.
  Array<Code> listed_codes_;
  bool any_listed_ = false;
};

}  // namespace graftboost
