// What an update overwrites in the trees, saved until it is certain that the update completes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/model_state.hpp"

namespace graftboost {

// Restores the nodes of a model, its target sums, base scores and deferred rows unless commit() was
// called.
//
// Owns copies of the nodes on the paths of the changed rows, or of whole trees. Histograms and gain
// bounds follow from the rows and are dropped: the next update recomputes them. Restoring allocates
// nothing, because memory may be what ran out.
class NodeUndo {
 public:
  explicit NodeUndo(ModelState& model);
  NodeUndo(const NodeUndo&) = delete;
  ~NodeUndo();

  void commit() noexcept { committed_ = true; }
  const std::vector<double>& base_scores_before() const { return base_scores_; }

  // To be called before nodes of a tree change: if only nodes on the paths of changed rows will,
  // with the leaves of these rows; before anything else changes, without. Different threads may
  // save different trees.
  template <class LeafOf>
  void save_paths(std::size_t t, std::size_t n_rows, LeafOf&& leaf_of);
  void save_tree(std::size_t t);
  // The histograms of a tree are again as they were before its nodes changed.
  void keep_histograms(std::size_t t) noexcept { trees_[t].keeps_histograms = true; }
  // What grafting replaced in a tree: memory to return to, with an element for each former node.
  void keep_replaced(std::size_t t, AnyTreeHistograms histograms,
                     std::vector<GainBounds> bounds) noexcept;

 private:
  struct SavedNode {
    NodeIndex index;
    Node node;
  };
  struct SavedTree {
    std::vector<SavedNode> nodes;  // as they were before `tree` was saved
    Tree tree;
    bool is_touched = false, is_saved = false, is_grafted = false, keeps_histograms = false;
    AnyTreeHistograms histograms;
    std::vector<GainBounds> bounds;
  };

  void restore(std::size_t t) noexcept;

  ModelState& model_;
  bool committed_ = false;
  TargetSums target_sums_;
  std::vector<double> base_scores_;
  DeferredRows deferred_;
  std::vector<__int128> squares_;  // per tree
  std::vector<SavedTree> trees_;
};

template <class LeafOf>
void NodeUndo::save_paths(std::size_t t, std::size_t n_rows, LeafOf&& leaf_of) {
  SavedTree& saved = trees_[t];
  if (saved.is_saved) return;
  const Tree& tree = model_.nodes.tree(t);
  std::size_t n = 0;
  for (std::size_t row = 0; row < n_rows && n < tree.nodes.size(); ++row)
    for (NodeIndex i = leaf_of(row); i != no_node; i = tree[i].parent) ++n;
  if (n >= tree.nodes.size()) return save_tree(t);
  saved.nodes.reserve(n);
  for (std::size_t row = 0; row < n_rows; ++row)
    for (NodeIndex i = leaf_of(row); i != no_node; i = tree[i].parent)
      saved.nodes.push_back({i, tree[i]});
  saved.is_touched = true;
}

}  // namespace graftboost
