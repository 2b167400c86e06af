#include "update/deferral.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "core/parallel.hpp"
#include "update/flip_settler.hpp"

namespace graftboost {
namespace {

// The same for all data. With this factor, estimates agree with refits on average over six data
// sets.
constexpr double damping = 0.85;
// The part of the way from the present slope of losses to that in training.
constexpr double part_recorded = 0.25;

}  // namespace

void defer_rows(const UpdateContext& context, const ChangedRows& changed,
                const ChangedScores& before) {
  ModelState& model = context.model;
  const std::size_t k_trees = model.base_scores.size();
  const ChangedScores booked = scores_when_booked(context, changed);
  for (const std::int64_t units : achieved(context, changed, before, booked))
    model.deferred.achieved =
        std::clamp(model.deferred.achieved + units, -DeferredSums::most, DeferredSums::most);
  model.deferred.n_removed += static_cast<std::int64_t>(changed.n_removed());
  model.deferred.n_added += static_cast<std::int64_t>(changed.n_added());
  WipedVector<double> last(changed.size() * k_trees);
  for_blocks(context, changed, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      model.loss.slopes(changed.rows().target[i], of_row(booked, i, k_trees),
                        last.data() + i * k_trees);
  });
  const double grid = model.loss.slope_grid();
  parallel(context.n_threads, model.nodes.size(), [&](std::size_t t) {
    Tree& tree = model.nodes[t].tree;
    const RecordedGradients recorded = changed.recorded_in(t, model.loss.kind);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (!model.params.in_subsample(t, changed.rows().ids[i])) continue;
      const std::int64_t g = std::abs(recorded.of(static_cast<Slot>(i)).g);
      const double slope = std::abs(last[i * k_trees + t % k_trees]);
      const auto at_end = static_cast<std::int64_t>(std::nearbyint(slope / grid));
      for (NodeIndex at = tree.leaves[changed.leaf(t, i)]; at != no_node; at = tree[at].parent)
        tree[at].deferred.add(g, at_end);
    }
  });
}

void forget_deferred(ModelState& model) noexcept {
  for (TreeNodes& nodes : model.nodes)
    for (Node& node : nodes.tree.nodes) node.deferred = {};
  model.deferred = {};
}

DeferredRule::DeferredRule(UpdateContext& context, double most_work)
    : FlipRule(context), most_work_(most_work), unit_(unit_of_losses(context)) {}

DeferredRule::FlipMemory DeferredRule::memory_of(const Tree& tree, const Flip& flip) const {
  const DeferredSums& sums = tree[flip.node].deferred;
  if (flip.is_void || flip.node == 0 || sums.recorded == 0) return {};
  const ModelState& model = context_.model;
  const double recorded = static_cast<double>(sums.recorded) * context_.gain.gradient_unit;
  const double last = static_cast<double>(sums.last) * model.loss.slope_grid();
  const double shift = model.params.learning_rate * damping * flip.weight * flip.regret / recorded;
  const double mean =
      (1 - part_recorded) * last + part_recorded * (recorded / context_.mean_weight);
  return {in_memory_units(shift * last / unit_, sums.n),
          in_memory_units(shift * mean / unit_, sums.n), false};
}

DeferredRule::Outcome DeferredRule::outcome(const MemoryCurve& curve, double settled) {
  const double part = curve.whole > 0 ? settled / curve.whole : 1;
  const double done = in_place * part;
  const double recovered = curve.at(done);
  return {recovered, curve.at(done + part_left(part, 1 - part) * (1 - part)) - recovered};
}

bool DeferredRule::is_enough(const Outcome& outcome) const {
  const DeferredRows& deferred = context_.model.deferred;
  const auto before = static_cast<double>(deferred.achieved + deferred.settled);
  const double total = std::max(before, 0.0) + outcome.recovered;
  return total >= context_.rule.fidelity * (total + outcome.left);
}

void DeferredRule::select(std::span<const std::size_t>) { take_steps(find_steps()); }

// Notes the memory of all flips, and returns the steps that may be taken, in their order.
std::vector<SettlingStep> DeferredRule::find_steps() {
  const double least_memory =
      context_.rule.memory_floor / memory_unit / static_cast<double>(flips_.size());
  memory_.assign(flips_.size(), {});
  curve_ = eligible_ = {};
  std::vector<SettlingStep> steps;
  for (std::size_t t = 0; t < flips_.size(); ++t) {
    const Tree& tree = context_.model.nodes.tree(t);
    for (std::size_t f = 0; f < flips_[t].flips.size(); ++f) {
      const Flip& flip = flips_[t].flips[f];
      FlipMemory& memory = memory_[t].emplace_back(memory_of(tree, flip));
      const auto now = static_cast<double>(memory.now), whole = static_cast<double>(memory.whole);
      curve_.now += now, curve_.whole += whole;
      // If every flip on the paths of a row has less, the row has less than the floor.
      const auto n = static_cast<double>(tree[flip.node].deferred.n);
      if (!flip.is_void && !(whole > 0 && whole >= least_memory * n)) continue;
      memory.is_eligible = true;
      eligible_.now += now, eligible_.whole += whole;
      const bool can_shift = flip.n_moving > 0;
      if (can_shift) steps.push_back({flip.shifted_below, t, f, FlipAction::shift});
      if (!flip.is_void || !can_shift)
        steps.push_back({flip.regrown_below, t, f, FlipAction::regrow});
    }
  }
  if (context_.rule.keeps_structure()) steps.clear();
  std::ranges::sort(steps, {}, [](const SettlingStep& step) {
    return std::tuple(-step.below, step.t, step.flip, step.action);
  });
  return steps;
}

// Takes steps until the target is reached, as far as there is work for them.
void DeferredRule::take_steps(const std::vector<SettlingStep>& steps) {
  const double most_rows =
      most_work_ * static_cast<double>(context_.n_rows) * static_cast<double>(flips_.size());
  FlipSettler settler(context_.model, flips_);
  double settled_eligible = 0;
  settled_ = 0;
  const auto take = [&](const SettlingStep& step, std::int64_t rows) {
    for (const std::size_t f : settler.take(step, rows)) {
      const FlipMemory& memory = memory_[step.t][f];
      settled_ += static_cast<double>(memory.whole);
      if (memory.is_eligible) settled_eligible += static_cast<double>(memory.whole);
    }
  };
  const auto is_reached = [&] { return is_enough(outcome(eligible_, settled_eligible)); };
  // Infinite if nothing need be settled, like that of select_actions().
  context_.tolerance = steps.empty() || is_reached() ? -no_gain : 0;
  // The smallest of the steps that do not fit: of all, and of those for void splits, which come
  // first and are taken whether the target is reached or not.
  struct {
    const SettlingStep* step = nullptr;
    std::int64_t rows = 0;
  } smallest, smallest_void;
  for (const SettlingStep& step : steps) {
    const bool is_void = flips_[step.t].flips[step.flip].is_void;
    if (!is_void && is_reached()) {
      context_.tolerance = std::max(context_.tolerance, step.below);
      smallest = smallest_void;
      break;
    }
    const std::int64_t rows = settler.rows_for(step);
    if (rows < 0) continue;
    if (static_cast<double>(settler.n_worked_on() + rows) <= most_rows) {
      take(step, rows);
      continue;
    }
    // Smaller steps may still fit.
    if (smallest.step == nullptr || rows < smallest.rows) smallest = {&step, rows};
    if (is_void) smallest_void = smallest;
  }
  const bool lacks_work = smallest.step != nullptr;
  // Every call does something, so that repeated calls come to an end.
  if (lacks_work && settler.n_worked_on() == 0) take(*smallest.step, smallest.rows);
  reaches_target_ = !lacks_work || (n_void_left() == 0 && is_reached());
  // The growth order is not replayed before there is work left for it.
  if (!reaches_target_) context_.tolerance = -no_gain;
  n_worked_on_ = settler.n_worked_on();
}

// Splits that must not stay, and do for now.
std::int64_t DeferredRule::n_void_left() const {
  std::int64_t n = 0;
  for (std::size_t t = 0; t < flips_.size(); ++t) {
    const std::vector<bool> settled = find_settled(context_.model.nodes.tree(t), flips_[t]);
    for (std::size_t f = 0; f < settled.size(); ++f) n += !settled[f] && flips_[t].flips[f].is_void;
  }
  return n;
}

double DeferredRule::work() const {
  return static_cast<double>(n_worked_on_) /
         (static_cast<double>(context_.n_rows) * static_cast<double>(flips_.size()));
}

std::int64_t DeferredRule::n_flips() const {
  std::int64_t n = 0;
  for (const TreeFlips& of_tree : flips_) n += static_cast<std::int64_t>(of_tree.flips.size());
  return n;
}

// Nothing is left to settle at a node whose threshold is moved.
void DeferredRule::before_settling() {
  for (std::size_t t = 0; t < flips_.size(); ++t) {
    for (std::size_t f = 0; f < flips_[t].flips.size(); ++f) {
      if (flips_[t].actions[f] == FlipAction::shift) {
        DeferredSums& sums = context_.model.nodes[t].tree[flips_[t].flips[f].node].deferred;
        sums.recorded = sums.last = 0;
      }
    }
  }
  DeferredRows& deferred = context_.model.deferred;
  deferred.settled += in_memory_units(outcome(curve_, settled_).recovered, deferred.n_rows());
}

FidelityEstimate DeferredRule::estimate(const std::vector<bool>&) const {
  return estimate_of({0, outcome(curve_, settled_).left});  // what was recovered is noted
}

FidelityEstimate DeferredRule::estimate_before() const { return estimate_of(outcome(curve_, 0)); }

FidelityEstimate DeferredRule::estimate_of(const Outcome& outcome) const {
  const DeferredRows& deferred = context_.model.deferred;
  FidelityEstimate found;
  found.is_known = true;
  found.is_of_rows = false;
  found.achieved = static_cast<double>(deferred.achieved + deferred.settled) * memory_unit;
  found.left = outcome.left * memory_unit;
  return found;
}

}  // namespace graftboost
