#include "model/row_undo.hpp"

#include <algorithm>
#include <utility>

#include "model/leaf_ids.hpp"
#include "model/row_shard.hpp"

namespace graftboost {

std::span<const Slot> RowUndo::save_rows(std::size_t t, const TreeRows& tree,
                                         std::span<const Slot> slots) {
  SavedRows saved;
  saved.size = slots.size();
  saved.slots.resize(slots.size() + slots_read_ahead);
  saved.recorded = GradientArray(tree.recorded.is_wide, slots.size());
  saved.leaf_ids.resize(slots.size());
  std::copy(slots.begin(), slots.end(), saved.slots.begin());
  std::fill_n(saved.slots.begin() + slots.size(), slots_read_ahead, Slot{0});
  tree.recorded.visit([&]<class Element>(const Element* recorded) {
    Element* to = saved.recorded.of<Element>();
    for (std::size_t i = 0; i < slots.size(); ++i) to[i] = recorded[slots[i]];
  });
  tree.leaf_ids.visit([&](const auto* ids) {
    for (std::size_t i = 0; i < slots.size(); ++i) saved.leaf_ids[i] = ids[slots[i]];
  });
  const std::span<const Slot> copy(saved.slots.data(), saved.size);
  std::lock_guard lock(lock_);
  trees_[t].push_back(std::move(saved));
  return copy;
}

// In reverse order, because a row may have moved twice.
void RowUndo::restore(RowTable& rows, std::vector<TreeRows>& trees) noexcept {
  for (std::size_t t = 0; t < trees.size(); ++t) {
    for (auto saved = trees_[t].rbegin(); saved != trees_[t].rend(); ++saved) {
      trees[t].recorded.visit([&]<class Element>(Element* recorded) {
        const Element* from = saved->recorded.of<Element>();
        for (std::size_t i = 0; i < saved->size; ++i) recorded[saved->slots[i]] = from[i];
      });
      trees[t].leaf_ids.visit([&]<class LeafId>(LeafId* ids) {
        for (std::size_t i = 0; i < saved->size; ++i)
          ids[saved->slots[i]] = static_cast<LeafId>(saved->leaf_ids[i]);
      });
    }
    trees[t].recorded.resize(extent_.n);
    trees[t].leaf_ids.resize(extent_.n);
  }
  rows.truncate(extent_);
  if (layout_) rows.exchange_layout(*layout_);
}

}  // namespace graftboost
