#include "update/node_undo.hpp"

#include <utility>

namespace graftboost {

NodeUndo::NodeUndo(ModelState& model)
    : model_(model),
      target_sums_(model.target_sums),
      base_scores_(model.base_scores),
      deferred_(model.deferred),
      trees_(model.nodes.size()) {
  squares_.reserve(trees_.size());
  for (const TreeNodes& nodes : model.nodes) squares_.push_back(nodes.squares);
}

NodeUndo::~NodeUndo() {
  if (committed_) return;
  for (std::size_t t = 0; t < trees_.size(); ++t) restore(t);
  model_.target_sums = std::move(target_sums_);
  model_.base_scores = std::move(base_scores_);
  model_.deferred = deferred_;
}

void NodeUndo::save_tree(std::size_t t) {
  SavedTree& saved = trees_[t];
  if (saved.is_saved) return;
  saved.tree = model_.nodes.tree(t);
  saved.is_touched = saved.is_saved = true;
}

void NodeUndo::keep_replaced(std::size_t t, AnyTreeHistograms histograms,
                             std::vector<GainBounds> bounds) noexcept {
  SavedTree& saved = trees_[t];
  if (std::exchange(saved.is_grafted, true)) return;  // an earlier graft replaced the first ones
  saved.histograms = std::move(histograms);
  saved.bounds = std::move(bounds);
}

void NodeUndo::restore(std::size_t t) noexcept {
  SavedTree& saved = trees_[t];
  if (!saved.is_touched) return;
  TreeNodes& nodes = model_.nodes[t];
  nodes.squares = squares_[t];
  if (saved.is_saved) nodes.tree = std::move(saved.tree);
  for (const SavedNode& node : saved.nodes)  // all as they were at the same time
    nodes.tree[node.index] = node.node;
  if (saved.is_grafted) {
    nodes.histograms = std::move(saved.histograms);
    nodes.bounds = std::move(saved.bounds);
  }
  if (!saved.keeps_histograms) nodes.drop_histograms();
}

}  // namespace graftboost
