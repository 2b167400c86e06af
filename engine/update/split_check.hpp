// Whether the splits of a tree still pass after rows changed.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/node_table.hpp"
#include "update/booking.hpp"
#include "update/flip.hpp"
#include "update/path_histogram.hpp"
#include "update/update_context.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// A split that is replaced by another one of the same feature: rows between the two thresholds
// move.
struct Shift {
  NodeIndex node = no_node;
  Split before;
};

// Rows of a shard that a shift moved, and the table they are in.
struct MovedRows {
  const RowTable* rows = nullptr;
  WipedVector<MovedRow> moved;
};

// The check of one tree: how far it is, what it asks of the rows, and what it found. A check goes
// on in rounds. It stops below nodes whose histogram has to be counted and below shifted splits,
// and goes on there when the row side has answered `to_count` and `shifts`.
//
// A survey comes before a check if the tolerance is not known yet: it visits all touched nodes and
// replaces no split.
template <class Sums>
struct TreeCheck {
  std::size_t t = 0;
  bool is_survey = false;
  TouchedNodes touched;
  std::vector<bool> counted_nodes;  // those that are in `counts`
  // If actions were selected: the flip of each node that has one to be settled. A void split may stay
  // for now, if the work for it is not there.
  static constexpr std::int32_t not_selected = -1, stays = -2;
  const TreeFlips* selected = nullptr;
  std::vector<std::int32_t> selected_at;
  UpdateCounts counts;
  double largest_change = 0;  // of a gain
  double change_in_survey = 0;

  // What the row side is asked for.
  std::vector<NodeIndex> to_count;
  std::vector<Shift> shifts;
  // Where to go on: at these nodes, and below the shifted ones.
  std::vector<NodeIndex> waiting;
  // Answers.
  std::deque<std::pair<NodeIndex, Histogram<Sums>>> counted;
  std::vector<std::vector<MovedRows>> moved;  // per shift and shard
  std::deque<WipedVector<std::uint32_t>> moved_features;

  // What was found: by a survey, all flips; by a check, the topmost nodes whose split does not
  // pass, and whether the growth order changed.
  std::vector<Flip> flips;
  std::vector<NodeIndex> failed;
  bool order_changed = false;
  bool has_shifted = false;

  bool is_waiting() const { return !waiting.empty() || !shifts.empty(); }
  void reset(std::size_t tree, std::size_t n_nodes, bool grouped);
  // What the rows answered may take much memory.
  void drop_answers() {
    counted.clear();
    moved.clear();
  }
};

// Checks trees, one at a time. One per thread.
template <class Sums>
class SplitChecker {
 public:
  explicit SplitChecker(const UpdateContext& context);

  // Books the changed rows in the histograms of a tree and checks, or surveys, the nodes they
  // touch. `is_counted`: the histograms were counted with the present layout. False if no row is in
  // the tree's subsample.
  bool begin(TreeCheck<Sums>& check, const ChangedRows& changed, bool is_counted);
  // The same for the nodes at which rows of earlier updates are deferred; nothing is booked. False
  // if there are none.
  bool begin_deferred(TreeCheck<Sums>& check);
  // Books the changed rows in the histograms of a tree like begin(), and checks nothing.
  bool book_only(TreeCheck<Sums>& check, const ChangedRows& changed, bool is_counted);
  // Applies the actions that were selected for the flips of a tree that has been surveyed.
  void apply(TreeCheck<Sums>& check, const TreeFlips& flips);
  // Books the changed rows back in the histograms of a tree that has been surveyed.
  void book_back(TreeCheck<Sums>& check, const ChangedRows& changed);
  // Goes on when the row side has answered.
  void resume(TreeCheck<Sums>& check);
  // Sets values and gains of the touched nodes; to be called when the check does not wait any more.
  void finish(TreeCheck<Sums>& check);

  // The gains of all nodes of a tree whose histograms have just been counted.
  void evaluate_all(TreeCheck<Sums>& check);
  // The best candidate of a leaf that was a split until now. May wait, like begin().
  void evaluate_new_leaf(TreeCheck<Sums>& check, NodeIndex leaf);

 private:
  enum class Outcome { passes, fails, shifted, waits };

  Node& node(NodeIndex i) { return nodes_->tree[i]; }
  const CodeLayout& layout() const { return context_.model.layout(); }
  GainBounds& bounds(NodeIndex i) { return nodes_->bounds[static_cast<std::size_t>(i)]; }
  const NodeHistogram<Sums>& cached(NodeIndex i) const {
    return (*histograms_)[static_cast<std::size_t>(i)];
  }
  bool may_split(NodeIndex i) { return context_.gain.may_split(node(i).sums); }
  double gain_of_split(NodeIndex i) {
    return context_.model.gain_of_split(context_.gain, nodes_->tree, node(i));
  }

  void open(TreeCheck<Sums>& check);
  void enter(NodeIndex i, std::size_t depth);
  std::size_t enter_path(NodeIndex i);
  bool require_histogram(NodeIndex i, std::size_t depth);

  void check_node(NodeIndex i, std::size_t depth);
  void check_children(NodeIndex i, std::size_t depth);
  void check_leaf(NodeIndex i, std::size_t depth);
  void set_gain(NodeIndex i, double gain);
  void evaluate_below(NodeIndex i, std::size_t depth);

  Outcome check_split(NodeIndex i, std::size_t depth);
  Outcome survey_split(NodeIndex i, std::size_t depth);
  void find_shift(NodeIndex i, std::size_t depth, const BestSplit& best, Flip& flip);
  Outcome apply_action(NodeIndex i);
  Outcome shift(NodeIndex i, const Split& to, std::int64_t n_moving);
  Outcome check_rank(NodeIndex i, std::size_t depth);
  Outcome check_regret(NodeIndex i, std::size_t depth);

  BestSplit evaluate_feature(NodeIndex i, std::size_t depth, std::uint32_t number);
  void evaluate_unit(NodeIndex i, std::size_t depth, std::size_t unit, BestSplit& best);
  BestSplit evaluate_unbounded(NodeIndex i, std::size_t depth);
  void evaluate_changed(NodeIndex i, std::size_t depth);
  BestSplit find_best(NodeIndex i, std::size_t depth);
  bool tolerates(double best, double present, std::int64_t n) const {
    return context_.tolerates(check_->t, best, present, n);
  }
  GainBounds::Limits limits(NodeIndex i) { return bounds(i).limits(context_.gain, node(i).sums); }

  const UpdateContext& context_;
  bool grouped_;
  std::size_t n_units_;
  HistogramBooker<Sums> booker_;
  PathHistogram<Sums> path_;
  TreeCheck<Sums>* check_ = nullptr;  // the one at work
  TreeNodes* nodes_ = nullptr;
  TreeHistograms<Sums>* histograms_ = nullptr;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace graftboost
