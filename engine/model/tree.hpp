// The nodes of one tree.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sums.hpp"
#include "core/types.hpp"

namespace graftboost {

// What rows leave at a node if an update changes them and defers regrowing: no more than sums of
// absolute gradients. They are zero where nothing is deferred. A node that has any follows one that
// has.
struct DeferredSums {
  // Rows may be deferred for years: rather than overflow, sums stop growing.
  static constexpr std::int64_t most = std::int64_t{1} << 60;

  std::int64_t n = 0;         // rows
  std::int64_t recorded = 0;  // what they recorded in the tree, times their weights
  std::int64_t last = 0;      // their gradients by the scores of the whole model

  bool empty() const { return n == 0; }
  void add(std::int64_t recorded_gradient, std::int64_t last_gradient);
  bool operator==(const DeferredSums&) const = default;
};

// `split` and `gain` of a split node are those of its split. A leaf has those of its best
// candidate, which tell when best-first growth would have split it (never, if the gain is below
// least_gain).
struct Node {
  NodeIndex left = no_node, right = no_node, parent = no_node;
  std::int32_t leaf = -1;  // leaf id, or -1
  Split split;
  double gain = 0;
  double value = 0;  // added to the score of a row that ends here
  Totals sums;       // of the rows that reach the node
  DeferredSums deferred;

  bool is_leaf() const { return left == no_node; }
};

// A parent precedes its children; the root is node 0. In a tree as grown, split s (counted from 0)
// made nodes 2s + 1 and 2s + 2; the left child kept the leaf id of the parent and the right child
// got a new one. Grafting renumbers nodes, but leaf ids stay with their rows, so some may be
// unused.
struct Tree {
  std::vector<Node> nodes;
  std::vector<NodeIndex> leaves;  // by leaf id; no_node where an id is unused

  Node& operator[](NodeIndex i) { return nodes[static_cast<std::size_t>(i)]; }
  const Node& operator[](NodeIndex i) const { return nodes[static_cast<std::size_t>(i)]; }

  std::int32_t n_leaves() const { return static_cast<std::int32_t>(nodes.size() + 1) / 2; }
  NodeIndex sibling(NodeIndex i) const {
    const Node& above = (*this)[(*this)[i].parent];
    return above.left == i ? above.right : above.left;
  }
  // By leaf id; 0 where an id is unused.
  std::vector<double> leaf_values() const;
  std::int32_t n_leaves_under(NodeIndex top) const;
  // The leaf ids below a node, ascending.
  std::vector<std::int32_t> leaf_ids_under(NodeIndex top) const;
  // Fills `leaves`; to be called when the nodes are complete.
  void index_leaves();

  // The leaf that a row reaches from a node; code_of(feature) gives the row's codes.
  template <class CodeOf>
  NodeIndex route(CodeOf&& code_of, NodeIndex from = 0) const {
    NodeIndex at = from;
    while (!(*this)[at].is_leaf()) {
      const Node& node = (*this)[at];
      at = node.split.goes_left(code_of(node.split.feature)) ? node.left : node.right;
    }
    return at;
  }
};

}  // namespace graftboost
