// Best-first growth of one tree.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "train/histogram.hpp"
#include "train/split_evaluation.hpp"
#include "model/tree.hpp"
#include "train/active_cells.hpp"

namespace graftboost {

struct GrowingParams {
  int max_leaf_nodes = 31;
  GainParams gain;
  double learning_rate = 0.1;
  bool keep_sums = true;
};

// Grows trees one after the other; owns the scratch that they share. Not for two threads at once.
template <class Sums>
class Grower {
 public:
  Grower(const RowTable& rows, const Loss& loss, const GrowingParams& params, const WorkingCells& cells,
         int n_threads);

  // The slots to grow from are written here first, then grow() arranges them by leaf.
  Slot* start(std::size_t n_slots);
  Tree grow(const Contributions& contributions, int max_leaf_nodes);

  // After grow(): the slots that reached a node, and the sums to keep, one per node.
  std::span<const Slot> slots_of(NodeIndex node) const {
    const Growth& growth = growths_[static_cast<std::size_t>(node)];
    return {slots_.data() + growth.begin, growth.end - growth.begin};
  }
  KeptSums<Sums> take_kept_sums();
  std::vector<Watch> take_watches();

 private:
  // What is known of a node while its tree grows: slots [begin, end) reach it.
  static std::size_t at(NodeIndex i) { return static_cast<std::size_t>(i); }
  struct Growth {
    std::size_t begin = 0, end = 0;
    Histogram<Sums> histogram;
    NodeSums<Sums> kept;  // if the histogram's memory went on to a child
    std::vector<std::uint32_t>
        present;  // if searched together: places that may split below the node
    Watch watch;
    Totals left;        // sums left of the best split
    bool keep = false;  // the sums stay with the tree

    std::size_t size() const { return end - begin; }
  };

  Histogram<Sums> new_histogram();
  void count_root(const Contributions& contributions);
  void count(const Contributions& contributions, Growth& growth,
             const std::function<void()>& meanwhile = {});
  std::size_t partition(std::size_t begin, std::size_t end, const Split& split);
  std::size_t partition_slots(std::size_t begin, std::size_t end, const Split& split);
  std::size_t partition_block(const Split& split, std::size_t begin, std::size_t end, Slot* lefts,
                              Slot* rights) const;
  void split_leaf(Tree& tree, NodeIndex parent, const Contributions& contributions);
  void find_best(Tree& tree, NodeIndex smaller, NodeIndex larger, const Sums* parent_sums);
  void search_each(Tree& tree, NodeIndex smaller, NodeIndex larger, const Sums* parent_sums);
  void search_together(Tree& tree, NodeIndex smaller, NodeIndex larger, const Sums* parent_sums);
  void take_smaller(std::uint32_t number, const Sums* parent_sums, const Sums* small_sums,
                    Sums* large_sums) const;
  void settle(Tree& tree, NodeIndex i, const std::vector<BestSplit>& found);
  Totals total_at_root(const Contributions& contributions) const;
  bool may_split(const Node& node) const;

  const RowTable& rows_;
  const Loss& loss_;
  const WorkingCells& cells_;
  GrowingParams params_;
  int max_leaf_nodes_ = 0;  // of the tree that is growing
  int n_threads_;
  double cells_per_row_;
  // Shares of the split search: ranges of layout.by_offset().
  std::vector<std::pair<std::size_t, std::size_t>> feature_groups_;

  Array<Slot> slots_, left_scratch_, right_scratch_;
  std::size_t n_slots_ = 0;
  std::vector<Growth> growths_;
  // What cells_ lists of the feature by which rows are sent on: its codes, off by one, so that 0 is
  // where it lists nothing.
  Array<Code> codes_;
  bool marked_ = false;  // whether it lists anything
  std::vector<Histogram<Sums>> spare_;
  std::vector<Histogram<Sums>> partial_;  // counts of single threads
  Array<Sums> of_rows_;                   // what each row adds to the tree that is growing
};

}  // namespace graftboost
