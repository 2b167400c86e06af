#include "update/undo.hpp"

#include <algorithm>
#include <utility>

namespace graftboost {

Rollback::Rollback(Forest& forest)
    : forest_(forest),
      rows_(forest.rows.extent()),
      target_sums_(forest.target_sums),
      base_scores_(forest.base_scores),
      trees_(forest.trees.size()) {}

Rollback::~Rollback() {
  if (!committed_) undo();
}

void Rollback::save_paths(std::size_t t, std::span<const NodeIndex> leaves) {
  if (trees_[t].is_saved) return;
  const Tree& tree = forest_.trees[t];
  std::size_t n = 0;
  const auto each = [&](auto&& use) {
    for (const NodeIndex leaf : leaves) {
      for (NodeIndex i = leaf; i != no_node; i = tree.nodes[static_cast<std::size_t>(i)].parent)
        use(i);
    }
  };
  each([&](NodeIndex) { ++n; });
  if (n >= tree.nodes.size()) return save_tree(t);
  SavedTree& saved = trees_[t];
  saved.nodes.reserve(n);
  each([&](NodeIndex i) { saved.nodes.push_back({i, tree.nodes[static_cast<std::size_t>(i)]}); });
  saved.is_touched = true;
}

void Rollback::save_tree(std::size_t t) {
  SavedTree& saved = trees_[t];
  if (saved.is_saved) return;
  saved.tree = forest_.trees[t];
  saved.is_touched = saved.is_saved = true;
}

void Rollback::save_rows(std::size_t t, std::span<const Slot> slots) {
  const TreeState& state = forest_.states[t];
  SavedRows saved;
  saved.slots.resize(slots.size());
  saved.recorded.resize(slots.size());
  saved.leaf_ids.resize(slots.size());
  std::copy(slots.begin(), slots.end(), saved.slots.begin());
  for (std::size_t i = 0; i < slots.size(); ++i) saved.recorded[i] = state.recorded[slots[i]];
  state.leaf_ids.visit([&](const auto* ids) {
    for (std::size_t i = 0; i < slots.size(); ++i) saved.leaf_ids[i] = ids[slots[i]];
  });
  std::lock_guard lock(rows_lock_);
  trees_[t].rows.push_back(std::move(saved));
}

void Rollback::keep_replaced(std::size_t t, AnyKeptSums sums, std::vector<Watch> watches) noexcept {
  SavedTree& saved = trees_[t];
  if (std::exchange(saved.is_grafted, true)) return;  // an earlier graft replaced the first ones
  saved.sums = std::move(sums);
  saved.watches = std::move(watches);
}

void Rollback::undo() noexcept {
  for (std::size_t t = 0; t < trees_.size(); ++t) undo_tree(t);
  forest_.rows.truncate(rows_);
  if (layout_) forest_.rows.exchange_layout(*layout_);
  forest_.target_sums = std::move(target_sums_);
  forest_.base_scores = std::move(base_scores_);
  forest_.index = {};
}

// In the reverse order: the same row may have been moved twice.
void Rollback::undo_tree(std::size_t t) noexcept {
  SavedTree& saved = trees_[t];
  TreeState& state = forest_.states[t];
  for (auto rows = saved.rows.rbegin(); rows != saved.rows.rend(); ++rows) {
    for (std::size_t i = 0; i < rows->slots.size(); ++i)
      state.recorded[rows->slots[i]] = rows->recorded[i];
    state.leaf_ids.visit([&]<class LeafId>(LeafId* ids) {
      for (std::size_t i = 0; i < rows->slots.size(); ++i)
        ids[rows->slots[i]] = static_cast<LeafId>(rows->leaf_ids[i]);
    });
  }
  state.recorded.resize(rows_.n);
  state.leaf_ids.resize(rows_.n);
  if (!saved.is_touched) return;
  if (saved.is_saved) forest_.trees[t] = std::move(saved.tree);
  for (const SavedNode& node : saved.nodes)  // all as they were at the same time
    forest_.trees[t].nodes[static_cast<std::size_t>(node.index)] = node.node;
  if (saved.is_grafted) {
    state.sums = std::move(saved.sums);
    state.watches = std::move(saved.watches);
  }
  state.drop_sums();
}

}  // namespace graftboost
