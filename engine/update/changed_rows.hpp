// The rows of an update, as values.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/array.hpp"
#include "model/model_state.hpp"
#include "update/routing.hpp"

namespace graftboost {

// Owns copies of the rows that an update removes and adds: codes, targets, weights, ids and, per
// tree, the leaf before the update and the recorded gradient. Booking needs nothing else, so the
// node half never reads the rows of a shard. Removed rows come first. What added rows record is
// found out tree by tree.
class ChangedRows {
 public:
  // Copies what the shards have marked as removed and what was appended to them, here and elsewhere.
  ChangedRows(const ModelState& model, int n_threads);

  std::size_t size() const { return rows_.size(); }
  std::size_t n_removed() const { return n_removed_; }
  std::size_t n_added() const { return size() - n_removed_; }
  bool enters(std::size_t row) const { return row >= n_removed_; }
  const RowTable& rows() const { return rows_; }
  Shards::Location location(std::size_t row) const { return locations_[row]; }

  RecordedGradients recorded_in(std::size_t t, LossKind kind) const {
    return {std::as_const(recorded_).data() + t * size(),
            rows_.weight.empty() ? nullptr : rows_.weight.data(), kind};
  }
  std::uint16_t leaf(std::size_t t, std::size_t row) const { return leaves_[t * size() + row]; }
  // Sets what an added row recorded.
  void record(std::size_t t, std::size_t row, Gradient recorded) {
    recorded_.set(t * size() + row, recorded);
  }
  // The cells of a histogram in which a row is counted; see RowTable::for_each_cell.
  std::span<const std::uint32_t> cells_of(std::size_t row) const {
    return {cells_.data() + cells_begin_[row], cells_begin_[row + 1] - cells_begin_[row]};
  }
  // The codes of a row by the number of the feature, if gain bounds are kept per feature.
  std::span<const Code> codes_of(std::size_t row) const {
    const std::size_t n = rows_.layout.size();
    return std::span(codes_).subspan(row * n, n);
  }
  // Calls use(row, leaf) with the leaves of a tree that the rows from begin to end reach.
  template <class Use>
  void route(const Tree& tree, std::size_t begin, std::size_t end, Use&& use) const;
  // The bundled and sparse features in which a row differs from the common code, if gain bounds are
  // grouped.
  const WipedVector<std::uint32_t>& features_of(std::size_t row) const { return features_[row]; }

  // Cells of rows that stay, of columns that were too rare to be split and are laid out now.
  struct NewCell {
    std::uint32_t row;  // among the rows that have new cells
    std::uint32_t cell;
  };
  void set_new_cells(const ModelState& model,
                     const std::vector<WipedVector<RowTable::NewCell>>& by_shard,
                     const std::vector<RowsWithNewCells>& elsewhere = {});
  bool has_new_cells() const { return has_new_cells_; }
  const WipedVector<NewCell>& new_cells() const { return new_cells_; }
  // What a row with new cells recorded in a tree, and its leaf there; no rows if it is not in the
  // tree's subsample.
  const Totals& new_cell_totals(std::size_t t, std::uint32_t row) const {
    return new_totals_[t * n_with_new_cells_ + row];
  }
  std::uint16_t new_cell_leaf(std::size_t t, std::uint32_t row) const {
    return new_leaves_[t * n_with_new_cells_ + row];
  }

 private:
  void append_all(const RowTable& rows);
  void list_cells();
  void set_new_cells(const ModelState& model, const std::vector<RowsWithNewCells>& elsewhere);

  RowTable rows_;
  std::size_t n_removed_ = 0;
  std::vector<Shards::Location> locations_;
  GradientArray recorded_;       // by tree, then row
  Array<std::uint16_t> leaves_;  // likewise
  // The same for all trees, so they are found once.
  std::vector<std::size_t> cells_begin_;  // per row, and the end
  WipedVector<std::uint32_t> cells_;
  WipedVector<Code> codes_;
  std::vector<WipedVector<std::uint32_t>> features_;
  bool has_new_cells_ = false;
  std::size_t n_with_new_cells_ = 0;
  WipedVector<NewCell> new_cells_;
  WipedVector<Totals> new_totals_;  // by tree, then row
  WipedVector<std::uint16_t> new_leaves_;
};

template <class Use>
void ChangedRows::route(const Tree& tree, std::size_t begin, std::size_t end, Use&& use) const {
  if (end - begin >= tree.nodes.size() / 4 && !codes_.empty()) {
    if (const Routing routing(tree, rows_.layout); routing.is_possible()) {
      for (std::size_t row = begin; row < end; ++row) use(row, routing.leaf_of(codes_of(row)));
      return;
    }
  }
  for (std::size_t row = begin; row < end; ++row) {
    const auto slot = static_cast<Slot>(row);
    use(row, tree.route([&](std::uint32_t column) { return rows_.code(slot, column); }));
  }
}

}  // namespace graftboost
