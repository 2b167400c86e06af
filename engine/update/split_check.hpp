// Whether the splits of a tree still pass after rows changed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/node_table.hpp"
#include "update/booking.hpp"
#include "update/bounded_evaluation.hpp"
#include "update/flip.hpp"
#include "update/path_histogram.hpp"
#include "update/tree_check.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// Checks trees, one at a time. One per thread. Owns what it works in: the histograms of the path
// that it is on, and a booker.
template <class Sums>
class SplitChecker {
 public:
  explicit SplitChecker(const UpdateContext& context);
  SplitChecker(const SplitChecker&) = delete;  // its evaluation refers to its path

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
  NodeOnPath on_path(NodeIndex i, std::size_t depth) {
    return {node(i), bounds(i), depth, check_->touched.features_of(i)};
  }
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

  bool tolerates(double best, double present, std::int64_t n) const {
    return context_.tolerates(check_->t, best, present, n);
  }
  GainBounds::Limits limits(NodeIndex i) { return bounds(i).limits(context_.gain, node(i).sums); }

  const UpdateContext& context_;
  HistogramBooker<Sums> booker_;
  PathHistogram<Sums> path_;
  BoundedEvaluation<Sums> evaluation_;
  TreeCheck<Sums>* check_ = nullptr;  // the one at work
  TreeNodes* nodes_ = nullptr;
  TreeHistograms<Sums>* histograms_ = nullptr;
};

}  // namespace graftboost
