// Nodes whose split failed are regrown, and the growth order is replayed.
#pragma once

#include <span>
#include <vector>

#include "train/growing_rows.hpp"
#include "train/tree_grower.hpp"
#include "update/fresh_gradients.hpp"
#include "update/grafting.hpp"
#include "update/growth_order.hpp"
#include "update/regrowing_rows.hpp"
#include "update/split_check.hpp"
#include "update/update_context.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// A node that has been regrown, before it is grafted in.
template <class Sums>
struct Regrown {
  Graft<Sums> graft;
  NodeHistogram<Sums> before;  // the node's former histogram, which its ancestors still include
  __int128 more_squares = 0;   // what regrowing adds to the tree's sum of squared gradients
};

// Regrows nodes from the rows that reach them, with fresh gradients. These depend on the scores
// that the trees before give, so earlier trees must be final. Nodes of one iteration can be regrown
// side by side, each by a Regrower of its own.
template <class Sums>
class Regrower {
 public:
  Regrower(const UpdateContext& context, FreshGradients& fresh, const GrowingCells& cells,
           SplitChecker<Sums>& checker);

  // Finds the rows that reach a node, per shard, and saves what they recorded. This depends on no
  // other tree, so it can be done for the nodes of all trees side by side, before they are regrown.
  std::vector<ReachingRows> find_rows(std::size_t t, NodeIndex node);
  // Regrows the part of a tree below a node, which these rows reach, with as many leaves as it has.
  // Only the rows change.
  Regrown<Sums> regrow(std::size_t t, NodeIndex node, const std::vector<ReachingRows>& reaching,
                       UpdateCounts& counts);
  // Grafts regrown nodes into their tree, and replays the growth order.
  void graft_in(std::size_t t, std::vector<Regrown<Sums>> regrown, UpdateCounts& counts);

 private:
  Regrown<Sums> regrow(std::size_t t, NodeIndex top, const std::vector<ReachingRows>& reaching,
                       int n_leaves, const std::vector<std::int32_t>& spare, UpdateCounts& counts);
  bool is_derivable(const TreeNodes& nodes, NodeIndex i) const;
  NodeHistogram<Sums> derive(const TreeNodes& nodes, NodeIndex i) const;
  void book_difference(TreeNodes& nodes, const Regrown<Sums>& regrown, UpdateCounts& counts);
  void join(std::size_t t, std::vector<Regrown<Sums>> regrown, std::vector<Graft<Sums>> grafts,
            UpdateCounts& counts);
  void swap_growth(std::size_t t, const GrowthSwap& swap, UpdateCounts& counts);
  void evaluate_undone(std::size_t t, std::int32_t leaf, UpdateCounts& counts);

  static const NodeHistogram<Sums>& histogram(const TreeNodes& nodes, NodeIndex i) {
    return std::get<TreeHistograms<Sums>>(nodes.histograms)[static_cast<std::size_t>(i)];
  }

  const UpdateContext& context_;
  ModelState& model_;
  FreshGradients& fresh_;
  RegrowingRows<Sums> regrowing_;
  GrowingRows<Sums> rows_;
  TreeGrower<Sums> grower_;
  SplitChecker<Sums>& checker_;
};

}  // namespace graftboost
