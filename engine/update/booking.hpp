// Booking: what changed rows recorded is added to the nodes on their paths, or subtracted.
#pragma once

#include <list>
#include <span>
#include <vector>

#include "model/node_table.hpp"
#include "update/changed_rows.hpp"
#include "update/update_context.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// Books the sums of nodes along the paths of all changed rows of a tree. `gradients` are those that
// the added rows record in this tree; they are entered in `changed`. The values of their leaves,
// which follow, are added to `scores`.
void book_sums(const UpdateContext& context, std::size_t t, ChangedRows& changed,
               ConstGradientPointer gradients, std::span<double> scores, UpdateCounts& counts);

// Nodes of a tree that an update touched.
struct TouchedNodes {
  std::vector<bool> touched;
  // If gain bounds are grouped: the features of the rows that changed, per node.
  std::vector<std::vector<const WipedVector<std::uint32_t>*>> features;

  void reset(std::size_t n_nodes, bool grouped);
  bool operator[](NodeIndex i) const { return touched[static_cast<std::size_t>(i)]; }
  std::span<const WipedVector<std::uint32_t>* const> features_of(NodeIndex i) const {
    if (features.empty()) return {};
    return features[static_cast<std::size_t>(i)];
  }
};

// Books rows in the cached histograms and gain bounds of the nodes on their paths. One per thread.
template <class Sums>
class HistogramBooker {
 public:
  explicit HistogramBooker(const UpdateContext& context);

  // Books rows of a table that a shifted split moved from leaf to leaf below `top`, those of a leaf
  // together if they are many. If gain bounds are grouped, `features` keeps the features in which
  // the rows differ from common codes, for as long as `touched` refers to them.
  void book_moved(TreeNodes& nodes, NodeIndex top, const RowTable& rows,
                  std::span<const MovedRow> moved, std::list<WipedVector<std::uint32_t>>& features,
                  TouchedNodes& touched, UpdateCounts& counts);
  // Books all changed rows of a tree, or books them back, those of a leaf together if they are many;
  // false if none is in the tree's subsample.
  // If the tree has no histograms because a refresh dropped them, only notes the nodes touched.
  bool book_all(std::size_t t, const ChangedRows& changed, TouchedNodes& touched,
                UpdateCounts& counts, bool back = false);
  // Books the cells of columns that are laid out from now on. `is_counted`: the histograms were
  // counted with this layout.
  void book_new_cells(std::size_t t, const ChangedRows& changed, bool is_counted);

 private:
  // A row as booking needs it.
  struct BookedRow {
    const RowTable& rows;
    Slot slot;
    std::span<const std::uint32_t> cells;
    std::span<const Code> codes;  // of all features, if bounds are of single ones
    Totals totals;
    bool enters;
    const WipedVector<std::uint32_t>* features;
  };
  void book(TreeNodes& nodes, NodeIndex top, NodeIndex leaf, const BookedRow& row,
            TouchedNodes& touched, UpdateCounts& counts);
  template <class ForEachRow>
  void book_together(TreeNodes& nodes, NodeIndex top, NodeIndex leaf, std::size_t n_rows,
                     bool enters, ForEachRow&& for_each_row, TouchedNodes& touched,
                     UpdateCounts& counts);
  bool pays_together(std::size_t n_rows) const;
  BookedRow decode(const RowTable& rows, const MovedRow& row);
  void sort_by_leaf(std::size_t t, const ChangedRows& changed);
  bool touch_paths(std::size_t t, const ChangedRows& changed, TouchedNodes& touched,
                   UpdateCounts& counts) const;

  const UpdateContext& context_;
  bool grouped_, decodes_;            // bounds are grouped, or of single features, or not kept
  WipedVector<Code> codes_;           // of the moved row that is being booked
  WipedVector<std::uint32_t> cells_;  // that it falls into
  NodeHistogram<Sums> together_;      // of rows that are booked together
  std::vector<Slot> by_leaf_;         // the changed rows of a tree
  std::vector<std::uint32_t> begin_;  // the end of the rows of a leaf in by_leaf_
  std::vector<std::size_t> n_leaving_, n_entering_;  // moved rows by leaf
};

}  // namespace graftboost
