// The node half of a model: the trees, and what is known about their nodes. No single rows.
#pragma once

#include <cstddef>
#include <vector>

#include "model/node_histogram.hpp"
#include "model/tree.hpp"
#include "update/gain_bounds.hpp"

namespace graftboost {

// The nodes of one tree, with the state that updates need.
//
// Of two siblings only the one that was smaller when they were grown has its histogram cached, as
// has the root: the other's is the parent's less its sibling's, so a walk from the root obtains
// every histogram with one subtraction per level. Siblings that were both too small to be split
// have none, because counting so few rows again is cheap; nor have nodes beyond the memory budget.
struct TreeNodes {
  Tree tree;
  AnyTreeHistograms histograms;    // per node
  std::vector<GainBounds> bounds;  // per node
  // A lower bound on the gap between the keys of splits that could be undone and of leaves that
  // could be split (see growth_order.hpp). While it is positive the growth order cannot have
  // changed.
  double order_slack = 0;
  // Of the gradients that the rows of the subsample recorded, squared and weighted: the scale of
  // the tree's gains follows from it (see ModelState::variance_in).
  __int128 squares = 0;
  // False after a refresh: the histograms and the gains of all nodes have to be recomputed before
  // anyone looks at them. Updates that keep the structure do not.
  bool counted = true;

  void drop_histograms() noexcept {
    std::visit(
        [](auto& all) {
          for (auto& histogram : all) histogram = {};
        },
        histograms);
    for (GainBounds& bound : bounds) bound.forget();
    counted = false;
    order_slack = 0;
  }
};

// Owns the trees: tree = iteration * trees_per_iteration + class. What always holds: every sum and
// every cached histogram is the integer sum of what the rows of the node recorded, `squares` is
// that of a tree's rows, and the value of a node is a function of its sums.
class NodeTable {
 public:
  std::size_t size() const { return trees_.size(); }
  bool empty() const { return trees_.empty(); }
  TreeNodes& operator[](std::size_t t) { return trees_[t]; }
  const TreeNodes& operator[](std::size_t t) const { return trees_[t]; }
  auto begin() { return trees_.begin(); }
  auto end() { return trees_.end(); }
  auto begin() const { return trees_.begin(); }
  auto end() const { return trees_.end(); }
  void resize(std::size_t n_trees) { trees_.resize(n_trees); }
  TreeNodes& append() { return trees_.emplace_back(); }

  bool holds_packed_sums() const {
    return trees_.empty() ||
           std::holds_alternative<TreeHistograms<PackedSums>>(trees_[0].histograms);
  }
  const Tree& tree(std::size_t t) const { return trees_[t].tree; }

 private:
  std::vector<TreeNodes> trees_;
};

}  // namespace graftboost
