// Best-first growth of one tree, from the histograms of its nodes.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "model/loss.hpp"
#include "model/node_histogram.hpp"
#include "model/tree.hpp"
#include "train/active_cells.hpp"
#include "train/growing_rows.hpp"
#include "train/split_evaluation.hpp"
#include "update/gain_bounds.hpp"

namespace graftboost {

struct GrowingParams {
  GainParams gain;
  double learning_rate = 0.1;
  bool keep_histograms = true;
};

// The node side of growing. It asks the row side for the histogram of the root and, after each
// split, of the smaller child; the larger child's is the difference to the parent's. Grows one tree
// after the other and owns the memory that they share. Not for two threads at once.
//
// If rows are elsewhere, every question costs a round of messages. All leaves that may still be
// split are then split ahead, in one round, so that a tree takes about log2(leaves) rounds. Best-first
// growth is replayed among these splits, and those that it does not reach are dropped: the tree is
// the same, node by node.
template <class Sums>
class TreeGrower {
 public:
  TreeGrower(const ActiveCells& cells, const Loss& loss, const GrowingParams& params,
             int n_threads);

  // Grows a tree from the rows that `rows` was started with, which are arranged by leaf afterwards:
  // those of leaf l are the rows of node leaf_nodes()[l] of the growth. `before` is as for
  // GrowingRows::count_root().
  Tree grow(GrowingRows<Sums>& rows, int max_leaf_nodes, Histogram<Sums>* before = nullptr);
  const std::vector<NodeIndex>& leaf_nodes() const { return leaf_nodes_; }

  // After grow(): the histograms to cache, and the gain bounds, one per node.
  TreeHistograms<Sums> take_histograms();
  std::vector<GainBounds> take_bounds();
  // Takes the memory of a histogram that is not needed any more, so that the trees that grow next
  // need no fresh pages. Takes no more than there was room made for.
  void make_room_to_reuse(std::size_t n_histograms) {
    spare_.reserve(spare_.size() + n_histograms);
  }
  void reuse(NodeHistogram<Sums>& former) noexcept;

 private:
  static std::size_t at(NodeIndex i) { return static_cast<std::size_t>(i); }
  // What is known about a node while its tree grows.
  struct Growth {
    Histogram<Sums> histogram;
    NodeHistogram<Sums> kept;               // if the histogram's memory was passed on to a child
    std::vector<std::uint32_t> splittable;  // grouped features that nodes below may be split by
    GainBounds bounds;
    Totals left;        // sums on the left of the best split
    bool keep = false;  // the histogram is cached with the tree
    // If the node was split ahead: what its bounds need once the split is part of the tree.
    std::optional<Margin> margin;
  };
  struct Children {
    NodeIndex smaller, larger;
  };

  Histogram<Sums> new_histogram();
  NodeIndex next_to_split(const Tree& tree) const;
  void split_leaf(Tree& tree, NodeIndex parent, GrowingRows<Sums>& rows);
  Children open_children(Tree& tree, NodeIndex parent, GrowingRows<Sums>& rows);
  void keep_sparse(Growth& grown) const;
  void evaluate_children(Tree& tree, NodeIndex parent, const Children& children);
  Tree grow_ahead(Tree grown, GrowingRows<Sums>& rows);
  void split_ahead(Tree& grown, const std::vector<NodeIndex>& parents, GrowingRows<Sums>& rows);
  Tree replay(const Tree& grown, std::vector<NodeIndex>& missing);
  void evaluate(Tree& tree, NodeIndex smaller, NodeIndex larger, const Sums* parent);
  void evaluate_each(Tree& tree, NodeIndex smaller, NodeIndex larger, const Sums* parent);
  void evaluate_grouped(Tree& tree, NodeIndex smaller, NodeIndex larger, const Sums* parent);
  void subtract(std::uint32_t number, const Sums* parent, const Sums* smaller, Sums* larger) const;
  void settle(Tree& tree, NodeIndex i, const std::vector<BestSplit>& found);
  Totals total_at_root(const GrowingRows<Sums>& rows) const;
  bool is_sparse() const { return layout().histogram_size() != layout().plain_size(); }
  bool may_split(const Node& node) const { return params_.gain.may_split(node.sums); }
  const CodeLayout& layout() const { return cells_.layout(); }

  const ActiveCells& cells_;
  const Loss& loss_;
  GrowingParams params_;
  int max_leaf_nodes_ = 0;  // of the tree that is growing
  int n_threads_;
  // Shares of the evaluation: ranges of layout.by_offset().
  std::vector<std::pair<std::size_t, std::size_t>> feature_shares_;
  std::vector<Growth> growths_;         // per node of the growth
  std::vector<NodeIndex> grown_nodes_;  // of the growth, per node of the tree
  std::vector<NodeIndex> leaf_nodes_;
  std::vector<Histogram<Sums>> spare_;
};

}  // namespace graftboost
