// What an update overwrites, kept until it is certain that the update completes.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "model/model.hpp"

namespace graftboost {

// Brings a model back to what it was when this was made, unless commit() was called.
//
// RowTable that were appended are cut off. Of a tree, the nodes on the paths of few changed rows are kept
// before they change, or all of it; and of rows that get another leaf or a fresh gradient the former ones.
// All else (histograms, gain bounds, the index of ids)
// follows from these and is dropped: the next update computes it again. Going back allocates nothing,
// because memory may be what ran out.
class Rollback {
 public:
  explicit Rollback(Forest& forest);
  Rollback(const Rollback&) = delete;
  ~Rollback();

  void commit() noexcept { committed_ = true; }

  // To be called before anything in a tree changes: with the leaves of all changed rows, if nothing but
  // nodes on the paths to them will; then again, before anything else does, without. Different trees may
  // be saved by different threads.
  void save_paths(std::size_t t, std::span<const NodeIndex> leaves);
  void save_tree(std::size_t t);
  // To be called before the leaf ids or recorded gradients of these rows change in a tree, which is
  // saved. Several threads may save rows of one tree, if no two save the same row.
  void save_rows(std::size_t t, std::span<const Slot> slots);
  // What grafting replaced in a tree: memory to go back to, with an element for each of its nodes.
  void keep_replaced(std::size_t t, AnyKeptSums sums, std::vector<Watch> watches) noexcept;
  // What became of the layout when rare columns got places.
  void keep_layout(CodeLayout layout) noexcept { layout_ = std::move(layout); }

 private:
  struct SavedRows {
    Array<Slot> slots;
    Array<Gradient> recorded;
    Array<std::uint16_t> leaf_ids;
  };
  struct SavedNode {
    NodeIndex index;
    Node node;
  };
  struct SavedTree {
    std::vector<SavedNode> nodes;  // as they were before `tree` was saved
    Tree tree;
    bool is_touched = false, is_saved = false, is_grafted = false;
    AnyKeptSums sums;
    std::vector<Watch> watches;
    std::vector<SavedRows> rows;
  };

  void undo() noexcept;
  void undo_tree(std::size_t t) noexcept;

  Forest& forest_;
  bool committed_ = false;
  RowTable::Extent rows_;
  std::optional<CodeLayout> layout_;
  TargetSums target_sums_;
  std::vector<double> base_scores_;
  std::vector<SavedTree> trees_;
  std::mutex rows_lock_;
};

}  // namespace graftboost
