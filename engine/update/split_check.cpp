#include "update/split_check.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "update/growth_order.hpp"

namespace graftboost {

template <class Sums>
SplitChecker<Sums>::SplitChecker(const UpdateContext& context)
    : context_(context),
      booker_(context),
      path_(context.model.layout()),
      evaluation_(context, path_) {}

// --- rounds --------------------------------------------------------------------------------------

template <class Sums>
void SplitChecker<Sums>::open(TreeCheck<Sums>& check) {
  check_ = &check;
  nodes_ = &context_.model.nodes[check.t];
  histograms_ = &std::get<TreeHistograms<Sums>>(nodes_->histograms);
}

template <class Sums>
bool SplitChecker<Sums>::begin(TreeCheck<Sums>& check, const ChangedRows& changed,
                               bool is_counted) {
  open(check);
  if (changed.has_new_cells()) booker_.book_new_cells(check.t, changed, is_counted);
  if (!booker_.book_all(check.t, changed, check.touched, check.counts)) return false;
  ++check.counts.trees_touched;
  if (check.is_survey)
    check.counts.work.add(cost::surveyed_row, static_cast<std::int64_t>(changed.size()));
  enter(0, 0);
  check_node(0, 0);
  return true;
}

template <class Sums>
bool SplitChecker<Sums>::begin_deferred(TreeCheck<Sums>& check) {
  open(check);
  const std::vector<Node>& nodes = nodes_->tree.nodes;
  if (nodes[0].deferred.empty()) return false;
  context_.undo.save_tree(check.t);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    check.touched.touched[i] = !nodes[i].deferred.empty();
  ++check.counts.trees_touched;
  enter(0, 0);
  check_node(0, 0);
  return true;
}

template <class Sums>
bool SplitChecker<Sums>::book_only(TreeCheck<Sums>& check, const ChangedRows& changed,
                                   bool is_counted) {
  open(check);
  if (changed.has_new_cells()) booker_.book_new_cells(check.t, changed, is_counted);
  if (!booker_.book_all(check.t, changed, check.touched, check.counts)) return false;
  ++check.counts.trees_touched;
  for (std::size_t i = 0; i < check.touched.touched.size(); ++i) {
    const auto index = static_cast<NodeIndex>(i);
    if (check.touched[index] && !node(index).is_leaf()) set_gain(index, gain_of_split(index));
  }
  return true;
}

template <class Sums>
void SplitChecker<Sums>::apply(TreeCheck<Sums>& check, const TreeFlips& flips) {
  open(check);
  check.is_survey = false;
  check.selected = &flips;
  check.selected_at.assign(nodes_->tree.nodes.size(), TreeCheck<Sums>::not_selected);
  for (std::size_t f = 0; f < flips.flips.size(); ++f) {
    const bool acts = flips.actions[f] != FlipAction::none;
    if (!acts && !flips.flips[f].is_void) continue;
    check.selected_at[static_cast<std::size_t>(flips.flips[f].node)] =
        acts ? static_cast<std::int32_t>(f) : TreeCheck<Sums>::stays;
  }
  check.change_in_survey = std::exchange(check.largest_change, 0);
  enter(0, 0);
  check_node(0, 0);
}

template <class Sums>
void SplitChecker<Sums>::book_back(TreeCheck<Sums>& check, const ChangedRows& changed) {
  open(check);
  booker_.book_all(check.t, changed, check.touched, check.counts, true);
  for (GainBounds& of_node : nodes_->bounds)
    if (of_node.is_pending()) of_node.forget();
}

template <class Sums>
void SplitChecker<Sums>::resume(TreeCheck<Sums>& check) {
  open(check);
  check.to_count.clear();
  const std::vector<Shift> shifts = std::exchange(check.shifts, {});
  const std::vector<std::vector<MovedRows>> moved = std::exchange(check.moved, {});
  const std::vector<NodeIndex> waiting = std::exchange(check.waiting, {});
  for (std::size_t s = 0; s < shifts.size(); ++s) {
    const NodeIndex top = shifts[s].node;
    for (const MovedRows& part : moved[s]) {
      for (const MovedRow& row : part.moved) {
        const NodeIndex from = nodes_->tree.leaves[row.from], to = nodes_->tree.leaves[row.to];
        const auto change = [&](NodeIndex i, bool enters) {
          for (; i != top; i = node(i).parent) {
            enters ? node(i).sums += row.totals : node(i).sums -= row.totals;
            check.has_moved[static_cast<std::size_t>(i)] = true;
          }
        };
        change(from, false);
        change(to, true);
      }
      booker_.book_moved(*nodes_, top, *part.rows, part.moved, check.moved_features, check.touched,
                         check.counts);
    }
  }
  for (const Shift& shift : shifts) {
    if (check.selected != nullptr && gain_of_split(shift.node) == no_gain) {
      check.failed.push_back(shift.node);
    } else {
      check_children(shift.node, enter_path(shift.node));
    }
  }
  for (const NodeIndex i : waiting) check_node(i, enter_path(i));
}

template <class Sums>
void SplitChecker<Sums>::finish(TreeCheck<Sums>& check) {
  open(check);
  for (std::size_t i = 0; i < check.touched.touched.size(); ++i) {
    if (!check.touched.touched[i]) continue;
    Node& node = nodes_->tree.nodes[i];
    node.value = context_.model.leaf_value(node.sums);
    // The rows whose features have yet to be evaluated are not known in the next update.
    if (nodes_->bounds[i].is_pending()) nodes_->bounds[i].forget();
  }
  if (!nodes_->counted) return;  // nor are there gains from which an order would follow
  // The key of a node changes by no more than the gains on its path.
  const double change = 2 * (check.change_in_survey + check.largest_change);
  nodes_->order_slack = change < -no_gain ? nodes_->order_slack - change : no_gain;
  check.order_changed =
      !check.failed.empty() || (!(nodes_->order_slack > context_.gain.least_gain) &&
                                find_growth_swap(context_, check.t).leaf != no_node);
}

// --- the walk from the root ----------------------------------------------------------------------

template <class Sums>
void SplitChecker<Sums>::enter(NodeIndex i, std::size_t depth) {
  const Totals& sums = node(i).sums;
  if (cached(i).cached) return path_.set_cached(depth, sums, cached(i), false);
  const NodeIndex sibling = i == 0 ? no_node : nodes_->tree.sibling(i);
  if (i != 0 && cached(sibling).cached) return path_.set_cached(depth, sums, cached(sibling), true);
  // Of two siblings the smaller is counted.
  const bool is_sibling = i != 0 && node(i).sums.n > node(sibling).sums.n;
  const NodeIndex source = is_sibling ? sibling : i;
  for (const auto& [counted, histogram] : check_->counted)
    if (counted == source) return path_.set_counted(depth, sums, histogram, is_sibling);
  path_.set_missing(depth, sums, source, is_sibling);
}

// Enters all nodes from the root to i; returns the depth of i.
template <class Sums>
std::size_t SplitChecker<Sums>::enter_path(NodeIndex i) {
  const std::size_t depth = i == 0 ? 0 : enter_path(node(i).parent) + 1;
  enter(i, depth);
  return depth;
}

// If the histogram has to be counted first, the node waits.
template <class Sums>
bool SplitChecker<Sums>::require_histogram(NodeIndex i, std::size_t depth) {
  if (path_.is_available(depth)) return true;
  path_.find_missing(depth, check_->to_count);
  check_->waiting.push_back(i);
  return false;
}

template <class Sums>
void SplitChecker<Sums>::check_node(NodeIndex i, std::size_t depth) {
  if (!check_->counted_nodes[static_cast<std::size_t>(i)]) {
    check_->counted_nodes[static_cast<std::size_t>(i)] = true;
    ++check_->counts.nodes_checked;
    // As if half of the features had to be evaluated: what bounds save must not decide anything.
    check_->counts.work += cost::checked_node + context_.cost.histogram / 2;
  }
  if (node(i).is_leaf()) return check_leaf(i, depth);
  const Outcome outcome = context_.rule.keeps_structure() ? Outcome::passes : check_split(i, depth);
  if (outcome == Outcome::fails) check_->failed.push_back(i);
  if (outcome == Outcome::passes) check_children(i, depth);
}

template <class Sums>
void SplitChecker<Sums>::check_children(NodeIndex i, std::size_t depth) {
  set_gain(i, gain_of_split(i));
  for (const NodeIndex child : {node(i).left, node(i).right}) {
    if (!check_->touched[child]) continue;
    if (!node(child).is_leaf() || may_split(child)) enter(child, depth + 1);
    check_node(child, depth + 1);
  }
}

template <class Sums>
void SplitChecker<Sums>::check_leaf(NodeIndex i, std::size_t depth) {
  if (!nodes_->counted) return;  // its gain will be recomputed with the histograms
  // The survey evaluated it, and nothing has changed since.
  if (check_->selected != nullptr && !check_->has_moved[static_cast<std::size_t>(i)]) return;
  const bool splits = may_split(i);
  if (splits && !require_histogram(i, depth)) return;
  const BestSplit best = splits ? evaluation_.find_best(on_path(i, depth)) : BestSplit{};
  set_gain(i, best.gain);
  node(i).split = best.split;
}

template <class Sums>
void SplitChecker<Sums>::set_gain(NodeIndex i, double gain) {
  double& present = node(i).gain;
  if (present != gain)
    check_->largest_change = std::max(check_->largest_change, std::abs(gain - present));
  present = gain;
}

template <class Sums>
void SplitChecker<Sums>::evaluate_all(TreeCheck<Sums>& check) {
  open(check);
  enter(0, 0);
  evaluate_below(0, 0);
}

template <class Sums>
void SplitChecker<Sums>::evaluate_new_leaf(TreeCheck<Sums>& check, NodeIndex leaf) {
  open(check);
  bounds(leaf).forget();
  check_leaf(leaf, enter_path(leaf));
}

template <class Sums>
void SplitChecker<Sums>::evaluate_below(NodeIndex i, std::size_t depth) {
  if (node(i).is_leaf()) {
    // Those of deferred rows keep the gain that they had when they were last checked.
    if (node(i).deferred.empty()) check_leaf(i, depth);
    return;
  }
  set_gain(i, gain_of_split(i));
  for (const NodeIndex child : {node(i).left, node(i).right}) {
    if (!node(child).is_leaf() || may_split(child)) enter(child, depth + 1);
    evaluate_below(child, depth + 1);
  }
}

// --- whether a split passes ----------------------------------------------------------------------

template <class Sums>
typename SplitChecker<Sums>::Outcome SplitChecker<Sums>::check_split(NodeIndex i,
                                                                     std::size_t depth) {
  if (check_->is_survey) return survey_split(i, depth);
  if (context_.rule.kind == UpdateRule::Kind::fidelity) return apply_action(i);
  return context_.rule.kind == UpdateRule::Kind::rank ? check_rank(i, depth)
                                                      : check_regret(i, depth);
}

// Finds out whether another candidate is better than the split.
template <class Sums>
typename SplitChecker<Sums>::Outcome SplitChecker<Sums>::survey_split(NodeIndex i,
                                                                      std::size_t depth) {
  const std::int64_t n = node(i).sums.n;
  const double present = gain_of_split(i);
  Flip flip;
  flip.node = i;
  flip.is_void = present == no_gain;
  flip.splits = may_split(i);
  if (!flip.splits) {
    flip.weight = flip_weight(nodes_->tree, i);
  } else {
    if (!require_histogram(i, depth)) return Outcome::waits;
    const BestSplit best = evaluation_.find_best(on_path(i, depth));
    if (!(best.gain > present) && !flip.is_void) return Outcome::passes;
    flip.splits = best.gain > no_gain;
    flip.best = best.split;
    flip.left = best.left;
    if (flip.splits) find_shift(i, depth, best, flip);
    flip.regret = best.gain - present;
    flip.weight = flip_weight(nodes_->tree, i);
    const double factor = flip.weight * flip.weight;
    flip.regrown_below = flip.shifted_below =
        factor * context_.relative_regret(check_->t, best.gain, present, n);
    if (flip.n_moving > 0) {
      const std::int64_t n_worked_on = std::min(n, cost::rows_per_move * flip.n_moving);
      flip.shifted_below =
          factor * context_.relative_regret(check_->t, best.gain, present, n_worked_on);
    }
  }
  if (flip.is_void) flip.regret = flip.regrown_below = flip.shifted_below = -no_gain;
  check_->flips.push_back(flip);
  return Outcome::passes;
}

// Whether a better threshold of the same feature moves few rows: if it is as good as the best
// candidate, or if the present one is void.
template <class Sums>
void SplitChecker<Sums>::find_shift(NodeIndex i, std::size_t depth, const BestSplit& best,
                                    Flip& flip) {
  const Split& present = node(i).split;
  const bool is_own = best.split.feature == present.feature;
  if (!is_own && !flip.is_void) return;
  const std::uint32_t own = layout().number_of(present.feature);
  const BestSplit best_own = is_own ? best : evaluation_.evaluate_feature(on_path(i, depth), own);
  if (best_own.gain == no_gain) return;
  SplitEvaluator<Sums> evaluator(context_.gain, node(i).sums);
  const std::int64_t n_moving =
      evaluator.rows_between(layout()[own], path_.of_feature(depth, own), present, best_own.split);
  if (cost::largest_shift * n_moving > node(i).sums.n) return;
  flip.shifted = best_own.split;
  flip.n_moving = std::max<std::int64_t>(n_moving, 1);
}

template <class Sums>
typename SplitChecker<Sums>::Outcome SplitChecker<Sums>::apply_action(NodeIndex i) {
  if (check_->selected == nullptr) return Outcome::passes;
  const std::int32_t number = check_->selected_at[static_cast<std::size_t>(i)];
  if (number == TreeCheck<Sums>::stays) return Outcome::passes;
  // A shift above may have left a child too little.
  if (number < 0) return gain_of_split(i) == no_gain ? Outcome::fails : Outcome::passes;
  const auto f = static_cast<std::size_t>(number);
  if (check_->selected->actions[f] == FlipAction::regrow) return Outcome::fails;
  check_->selected_at[static_cast<std::size_t>(i)] = TreeCheck<Sums>::not_selected;  // once
  const Flip& flip = check_->selected->flips[f];
  bounds(i).set_margin({});
  return shift(i, flip.shifted, flip.n_moving);
}

template <class Sums>
typename SplitChecker<Sums>::Outcome SplitChecker<Sums>::check_rank(NodeIndex i,
                                                                    std::size_t depth) {
  const double present = gain_of_split(i);
  if (present == no_gain) return Outcome::fails;
  if (!require_histogram(i, depth)) return Outcome::waits;
  SplitEvaluator<Sums> evaluator(context_.gain, node(i).sums);
  std::int64_t n_ahead = 0;
  for (const std::uint32_t number : layout().by_offset())
    n_ahead += evaluator.count_better(layout()[number], path_.of_all(depth, number), present);
  return n_ahead < context_.rule.n_top ? Outcome::passes : Outcome::fails;
}

// Units whose bound is tolerated are not evaluated. A better split by the same feature that moves
// only a few rows replaces the present one. If there is any tolerance, that is also done where the
// present split leaves a child too little (it is void).
template <class Sums>
typename SplitChecker<Sums>::Outcome SplitChecker<Sums>::check_regret(NodeIndex i,
                                                                      std::size_t depth) {
  const std::int64_t n = node(i).sums.n;
  const std::uint32_t own_column = node(i).split.feature, own = layout().number_of(own_column);
  const bool known = bounds(i).known();
  const double present = gain_of_split(i);
  const bool is_void = present == no_gain;
  if (is_void && (context_.tolerance == 0 || !may_split(i))) return Outcome::fails;
  const std::int64_t n_least = std::min(n, cost::rows_per_move * bounds(i).rows_to_move());
  // Ungrouped bounds cover all features and can decide without a histogram.
  const auto passes_by_bounds = [&](double unbounded) {
    if (!known) return false;
    return tolerates(std::max(unbounded, limits(i).of_all()), present, n_least);
  };
  const bool grouped = evaluation_.grouped();
  if (!grouped && passes_by_bounds(no_gain)) return Outcome::passes;
  if (!require_histogram(i, depth)) return Outcome::waits;
  const NodeOnPath at = on_path(i, depth);
  evaluation_.evaluate_changed(at);
  const double unbounded = evaluation_.evaluate_unbounded(at).gain;
  if (grouped && passes_by_bounds(unbounded)) return Outcome::passes;
  if (!known) bounds(i).start(context_.gain, node(i).sums, layout());

  BestSplit best_own;
  SplitEvaluator<Sums> evaluator(context_.gain, node(i).sums);
  if (is_void || !known || grouped ||
      !tolerates(limits(i).of_unit(own, own_column), present, n_least)) {
    best_own = evaluation_.evaluate_feature(at, own);
    bounds(i).set_margin(
        evaluator.margin(layout()[own], path_.of_feature(depth, own), node(i).split));
  }
  const double standard = is_void ? best_own.gain : present;
  if (standard == no_gain || !tolerates(std::max(best_own.gain, unbounded), standard, n))
    return Outcome::fails;
  const GainBounds::Limits limits = this->limits(i);
  bool passes = true;
  evaluation_.for_each_unit(own, [&](std::size_t unit) {
    if (known && tolerates(limits.of_unit(unit, own_column), standard, n)) return true;
    BestSplit best;
    evaluation_.evaluate_unit(at, unit, best);
    return passes = tolerates(best.gain, standard, n);
  });
  if (!passes) return Outcome::fails;
  if (!(best_own.gain > present)) return Outcome::passes;
  const FeatureCells<Sums> cells = path_.of_feature(depth, own);
  const std::int64_t n_moving =
      evaluator.rows_between(layout()[own], cells, node(i).split, best_own.split);
  if (is_void && cost::largest_shift * n_moving > n) return Outcome::fails;
  if (!is_void && tolerates(best_own.gain, present, std::min(n, cost::rows_per_move * n_moving)))
    return Outcome::passes;
  bounds(i).set_margin(evaluator.margin(layout()[own], cells, best_own.split));
  return shift(i, best_own.split, n_moving);
}

template <class Sums>
typename SplitChecker<Sums>::Outcome SplitChecker<Sums>::shift(NodeIndex i, const Split& to,
                                                               std::int64_t n_moving) {
  context_.undo.save_tree(check_->t);
  check_->shifts.push_back({i, std::exchange(node(i).split, to)});
  check_->has_shifted = true;
  ++check_->counts.nodes_shifted;
  check_->counts.rows_shifted += n_moving;
  check_->counts.work += cost::looked_up_row * static_cast<double>(context_.model.n_rows()) +
                         cost::compared_row * static_cast<double>(node(i).sums.n);
  return Outcome::shifted;
}

template class SplitChecker<PackedSums>;
template class SplitChecker<WideSums>;

}  // namespace graftboost
