// The check of one tree: what it asks of the rows, and what it found.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "model/node_histogram.hpp"
#include "model/row_shard.hpp"
#include "update/booking.hpp"
#include "update/flip.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// A split that is replaced by another one of the same feature: rows between the two thresholds
// move.
struct Shift {
  NodeIndex node = no_node;
  Split before;
};

// Rows of a shard that a shift moved, and the table they are in.
struct MovedRows {
  const RowTable* rows = nullptr;
  WipedVector<MovedRow> moved;
  std::shared_ptr<const RowTable> own;  // of rows of other processes
};

// The check of one tree: how far it is, what it asks of the rows, and what it found. A check goes
// on in rounds. It stops below nodes whose histogram has to be counted and below shifted splits,
// and goes on there when the row side has answered `to_count` and `shifts`.
//
// A survey comes before a check if the tolerance is not known yet: it visits all touched nodes and
// replaces no split.
template <class Sums>
struct TreeCheck {
  std::size_t t = 0;
  bool is_survey = false;
  TouchedNodes touched;
  std::vector<bool> counted_nodes;  // those that are in `counts`
  std::vector<bool> has_moved;      // nodes that rows entered or left because a threshold moved
  // If actions were selected: the flip of each node that has one to be settled. A void split may
  // stay for now, if the work for it is not there.
  static constexpr std::int32_t not_selected = -1, stays = -2;
  const TreeFlips* selected = nullptr;
  std::vector<std::int32_t> selected_at;
  UpdateCounts counts;
  double largest_change = 0;  // of a gain
  double change_in_survey = 0;

  // What the row side is asked for.
  std::vector<NodeIndex> to_count;
  std::vector<Shift> shifts;
  // Where to go on: at these nodes, and below the shifted ones.
  std::vector<NodeIndex> waiting;
  // Answers. Most checks have none, and an empty list takes no memory.
  std::list<std::pair<NodeIndex, Histogram<Sums>>> counted;
  std::vector<std::vector<MovedRows>> moved;  // per shift and shard
  std::list<WipedVector<std::uint32_t>> moved_features;

  // What was found: by a survey, all flips; by a check, the topmost nodes whose split does not
  // pass, and whether the growth order changed.
  std::vector<Flip> flips;
  std::vector<NodeIndex> failed;
  bool order_changed = false;
  bool has_shifted = false;

  bool is_waiting() const { return !waiting.empty() || !shifts.empty(); }
  void reset(std::size_t tree, std::size_t n_nodes, bool grouped);
  // What the rows answered may take much memory.
  void drop_answers() {
    counted.clear();
    moved.clear();
  }
};

}  // namespace graftboost
