// One tree, and what it remembers of the rows it was grown from.
#pragma once

#include <cstdint>
#include <vector>

#include "core/array.hpp"
#include "model/node_histogram.hpp"
#include "data/row_table.hpp"
#include "core/types.hpp"
#include "core/sums.hpp"
#include "update/gain_bounds.hpp"

namespace graftboost {

// A split node's `split` and `gain` are those of its split; a leaf's are those of its best candidate,
// which says when the leaf would have been split (gain below least_gain: never).
struct Node {
  NodeIndex left = no_node, right = no_node, parent = no_node;
  std::int32_t leaf = -1;  // leaf id, or -1
  Split split;
  double gain = 0;
  double value = 0;  // what a row that ends here adds to its score
  Totals sums;       // of the rows that reach the node

  bool is_leaf() const { return left == no_node; }
};

// A parent comes before its children; the root is node 0. As grown, split s (from 0) made nodes
// 2s + 1 and 2s + 2, and of the two the left kept the leaf id of the parent while the right got a new
// one. Grafts number the nodes anew, but leaf ids stay with their rows: some may go out of use.
struct Tree {
  std::vector<Node> nodes;
  std::vector<NodeIndex> leaves;  // by leaf id; no_node where an id is not in use

  std::int32_t n_leaves() const { return static_cast<std::int32_t>(nodes.size() + 1) / 2; }
  // By leaf id; 0 where an id is not in use.
  std::vector<double> leaf_values() const;
  // To be called when the nodes are complete.
  void index_leaves();

  // The leaf that a row with these codes reaches from a node; code_of(feature) gives them.
  template <class CodeOf>
  NodeIndex route(CodeOf&& code_of, NodeIndex from = 0) const {
    NodeIndex at = from;
    while (!nodes[at].is_leaf()) {
      const Node& node = nodes[at];
      at = node.split.goes_left(code_of(node.split.feature)) ? node.left : node.right;
    }
    return at;
  }
};

// One leaf id per slot, in one byte while the leaves are at most 256, in two beyond; the array that
// is not in use is empty.
struct LeafIds {
  Array<std::uint8_t> narrow;
  Array<std::uint16_t> wide;

  LeafIds() = default;
  LeafIds(std::size_t n_rows, int max_leaf_nodes) {
    max_leaf_nodes <= 256 ? narrow.reserve(n_rows + room_to_grow(n_rows))
                          : wide.reserve(n_rows + room_to_grow(n_rows));
    max_leaf_nodes <= 256 ? narrow.resize(n_rows) : wide.resize(n_rows);
  }
  void resize(std::size_t n_rows) { wide.empty() ? narrow.resize(n_rows) : wide.resize(n_rows); }
  // Calls with the array itself, so that loops over rows do not ask again and again.
  template <class Use>
  decltype(auto) visit(Use&& use) {
    return wide.empty() ? use(narrow.data()) : use(wide.data());
  }
  template <class Use>
  decltype(auto) visit(Use&& use) const {
    return wide.empty() ? use(narrow.data()) : use(wide.data());
  }
};

// What makes a tree updatable. Slot i is the same row as in RowTable.
//
// Of two siblings only the one that was smaller when they were grown has its sums kept (as has the
// root): the other's are its parent's less its sibling's, so that a walk from the root has every
// histogram at the price of one subtraction a level. Two siblings that were both too small to be split
// have none: counting so few rows again is cheap. Nor has any node beyond the memory that sums may take.
struct TreeState {
  LeafIds leaf_ids;
  Array<Gradient> recorded;    // 0 where the row is outside the tree's subsample
  AnyKeptSums sums;            // per node
  std::vector<Watch> watches;  // per node
  // By how much splits that may be undone come before leaves that may be split: the least there was when
  // the order of growth was last looked at, less what gains can have done since. While there is some
  // there is nothing to look at.
  double order_slack = 0;
  // False after a refresh: `sums` are to be counted again, and with them the gains of all nodes.
  bool counted = true;
  // During an update: they have just been, and have all cells.
  bool counted_anew = false;

  void drop_sums() noexcept {
    std::visit(
        [](auto& kept) {
          for (auto& sums : kept) sums = {};
        },
        sums);
    for (Watch& watch : watches) watch.forget();
    counted = false;
    order_slack = 0;
  }
};

}  // namespace graftboost
