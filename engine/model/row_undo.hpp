// What an update overwrites in a shard, saved until it is certain that the update completes.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "data/row_table.hpp"
#include "model/gradient_array.hpp"

namespace graftboost {

struct TreeRows;

// Owns copies of the leaf ids and recorded gradients of rows that get others. Restoring them, and
// cutting off rows that were appended, allocates nothing, because memory may be what ran out.
class RowUndo {
 public:
  RowUndo(const RowTable& rows, std::size_t n_trees) : extent_(rows.extent()), trees_(n_trees) {}

  std::size_t n_rows() const { return extent_.n; }
  // Several threads may save rows of one tree, if no two save the same row. Returns its copy of the
  // slots, which can be read for `slots_read_ahead` elements past the end.
  std::span<const Slot> save_rows(std::size_t t, const TreeRows& tree, std::span<const Slot> slots);
  void save_layout(CodeLayout layout) noexcept { layout_ = std::move(layout); }
  void restore(RowTable& rows, std::vector<TreeRows>& trees) noexcept;

 private:
  struct SavedRows {
    Array<Slot> slots;  // and elements to be read ahead
    std::size_t size = 0;
    GradientArray recorded;
    Array<std::uint16_t> leaf_ids;
  };

  RowTable::Extent extent_;
  std::optional<CodeLayout> layout_;
  std::vector<std::vector<SavedRows>> trees_;
  std::mutex lock_;
};

}  // namespace graftboost
