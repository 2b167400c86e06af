#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/deferring.hpp"
#include "tests/update/surveys.hpp"
#include "update/deferral.hpp"

namespace graftboost {
namespace {

using testing::change;
using testing::check_sound;
using testing::check_sums;
using testing::contents_of;
using testing::deferred_state;
using testing::Deferring;
using testing::fidelity_rule;
using testing::ModelOptions;
using testing::models_that_defer;
using testing::n_with_sums;
using testing::StartedRegrow;
using testing::state_of;
using testing::TrainingRows;

constexpr double infinite = std::numeric_limits<double>::infinity();

// --- booking -------------------------------------------------------------------------------------

TEST_CASE("rows that are only booked change no split, and nothing that other rows recorded") {
  for (const ModelOptions& options : models_that_defer()) {
    Deferring deferring(options, 1);
    std::int64_t n_rows = 0;
    for (std::size_t step = 0; step < 3; ++step) {
      const ModelState before = state_of(*deferring.model);
      const UpdateCounts counts = deferring.defer(step);
      n_rows += static_cast<std::int64_t>(deferring.removed(step).size());
      n_rows += static_cast<std::int64_t>(deferring.added(step).size());
      CHECK(!counts.refitted);
      CHECK_EQ(counts.nodes_regrown + counts.nodes_shifted, 0);
      CHECK(!counts.fidelity.is_known);
      CHECK_EQ(counts.rows_deferred, n_rows);
      const ModelState after = state_of(*deferring.model);
      CHECK_EQ(after.deferred.n_rows(), n_rows);
      CHECK(after.base_scores != before.base_scores);
      for (std::size_t t = 0; t < before.nodes.size(); ++t) {
        const std::vector<Node>&was = before.nodes.tree(t).nodes, &is = after.nodes.tree(t).nodes;
        REQUIRE(was.size() == is.size());
        for (std::size_t i = 0; i < was.size(); ++i) {
          CHECK(std::tie(was[i].left, was[i].right, was[i].parent, was[i].leaf, was[i].split) ==
                std::tie(is[i].left, is[i].right, is[i].parent, is[i].leaf, is[i].split));
          // Nothing was evaluated; the gain of a split follows from sums.
          CHECK_EQ(is[i].gain, is[i].is_leaf() ? was[i].gain
                                               : after.gain_of_split(after.gain_params(),
                                                                     after.nodes.tree(t), is[i]));
        }
      }
      auto rows_before = contents_of(before).rows, rows_after = contents_of(after).rows;
      const TrainingRows removed = deferring.removed(step), added = deferring.added(step);
      for (const RowId id : removed.ids()) CHECK_EQ(rows_before.erase(id), 1);
      for (const RowId id : added.ids()) CHECK_EQ(rows_after.erase(id), 1);
      CHECK(rows_before == rows_after);
      check_sound(after);
      CHECK(check_sums(after) > 0);
    }
  }
}

// What updates without regrowing should leave at nodes, counted row by row.
class NaiveDeferral {
 public:
  explicit NaiveDeferral(const ModelState& model) {
    for (const TreeNodes& nodes : model.nodes) sums_.emplace_back(nodes.tree.nodes.size());
  }

  // Between two states of a model: an update changed these rows.
  void add(const ModelState& before, const ModelState& after, std::span<const RowId> removed,
           std::span<const RowId> added) {
    for (const RowId id : removed) add_row(before, id, before, after, 1);
    for (const RowId id : added) add_row(after, id, before, after, -1);
    rows_.n_removed += static_cast<std::int64_t>(removed.size());
    rows_.n_added += static_cast<std::int64_t>(added.size());
  }

  void check(const ModelState& model) const {
    CHECK(model.deferred == rows_);
    for (std::size_t t = 0; t < sums_.size(); ++t)
      for (std::size_t i = 0; i < sums_[t].size(); ++i)
        CHECK(model.nodes.tree(t).nodes[i].deferred == sums_[t][i]);
  }

 private:
  // A row that `holder` holds; `sign` is that of a rising loss.
  void add_row(const ModelState& holder, RowId id, const ModelState& before,
               const ModelState& after, int sign) {
    for (std::size_t s = 0; s < holder.shards.size(); ++s) {
      const RowTable& rows = holder.shards[s].rows;
      const auto found = std::find(rows.ids.begin(), rows.ids.end(), id);
      if (found == rows.ids.end()) continue;
      const auto slot = static_cast<Slot>(found - rows.ids.begin());
      const auto leaf_in = [&](const Tree& tree) {
        return tree.route([&](std::uint32_t c) { return rows.code(slot, c); });
      };
      const auto scores_by = [&](const ModelState& model) {
        std::vector<double> scores = model.base_scores;
        for (std::size_t t = 0; t < model.nodes.size(); ++t) {
          const Tree& tree = model.nodes.tree(t);
          scores[t % scores.size()] += tree[leaf_in(tree)].value;
        }
        return scores;
      };
      const std::vector<double> scores = scores_by(after);
      const Loss& loss = after.loss;
      const double unit = loss.kind == LossKind::squared
                              ? 0x1p-28 * after.variance_in(after.nodes.size() - 1)
                              : 0x1p-28;
      const double now = std::nearbyint(loss.of_row(rows.target[slot], scores) / unit);
      const double then = std::nearbyint(loss.of_row(rows.target[slot], scores_by(before)) / unit);
      rows_.achieved += sign * static_cast<std::int64_t>(now - then);
      std::vector<double> slopes(scores.size());
      loss.slopes(rows.target[slot], scores, slopes.data());
      for (std::size_t t = 0; t < sums_.size(); ++t) {
        if (!after.params.in_subsample(t, id)) continue;
        const Tree& tree = after.nodes.tree(t);
        const std::int64_t g = testing::recorded(holder, t, s, slot).g;
        const double slope = std::abs(slopes[t % scores.size()]);
        const auto last = static_cast<std::int64_t>(std::nearbyint(slope / loss.slope_grid()));
        for (NodeIndex i = leaf_in(tree); i != no_node; i = tree[i].parent) {
          DeferredSums& sums = sums_[t][static_cast<std::size_t>(i)];
          ++sums.n;
          sums.recorded += g < 0 ? -g : g;
          sums.last += last;
        }
      }
      return;
    }
    REQUIRE(false);
  }

  std::vector<std::vector<DeferredSums>> sums_;  // per tree and node
  DeferredRows rows_;
};

TEST_CASE("what is deferred are sums over the changed rows of all updates") {
  for (const ModelOptions& options : models_that_defer()) {
    Deferring deferring(options, 2);
    NaiveDeferral expected(state_of(*deferring.model));
    for (std::size_t step = 0; step < 3; ++step) {
      const ModelState before = state_of(*deferring.model);
      deferring.defer(step);
      const ModelState after = state_of(*deferring.model);
      expected.add(before, after, deferring.removed(step).ids(), deferring.added(step).ids());
      expected.check(after);
    }
    CHECK(n_with_sums(state_of(*deferring.model)) > 10);
  }
}

TEST_CASE("rows are booked as in an update that never regrows") {
  for (const ModelOptions& options : models_that_defer()) {
    Deferring deferring(options, 3);
    const auto other = deferring.model->copy();
    deferring.defer_all();
    for (std::size_t step = 0; step < 3; ++step) {
      change(*other, deferring.added(step), deferring.removed(step).ids(), testing::never_regrow);
    }
    const ModelState a = state_of(*deferring.model), b = state_of(*other);
    CHECK(b.deferred.empty());
    CHECK(contents_of(a).rows == contents_of(b).rows);
    CHECK(contents_of(a).squares == contents_of(b).squares);
    CHECK(a.base_scores == b.base_scores);
    CHECK(a.target_sums == b.target_sums);
    for (std::size_t t = 0; t < a.nodes.size(); ++t) {
      for (std::size_t i = 0; i < a.nodes.tree(t).nodes.size(); ++i) {
        const Node &one = a.nodes.tree(t).nodes[i], &same = b.nodes.tree(t).nodes[i];
        CHECK(one.sums == same.sums);
        CHECK_EQ(one.value, same.value);
      }
    }
  }
}

TEST_CASE("sums of deferred rows stop at the most that they hold") {
  constexpr std::int64_t most = DeferredSums::most;
  DeferredSums sums;
  sums.add(5, 7);
  CHECK(sums == DeferredSums{1, 5, 7});
  sums = {most - 1, most - 10, most - 10};
  sums.add(9, 10);
  CHECK(sums == DeferredSums{most, most - 1, most});
  sums.add(9, std::numeric_limits<std::int64_t>::max());
  CHECK(sums == DeferredSums{most, most, most});
}

// --- selection -----------------------------------------------------------------------------------

TEST_CASE("memory grows by the present slope first, and is whole at the end") {
  const MemoryCurve curve{2, 10};
  CHECK_EQ(curve.at(0), 0);
  CHECK_EQ(curve.at(1), 10);
  CHECK_EQ(curve.at(0.5), 2 * 0.5 + 8 * 0.125);
  CHECK(std::abs(curve.at(0x1p-20) * 0x1p20 - 2) < 1e-9);
  // Losses that are steeper now than on the way are taken to be as steep all the way.
  const MemoryCurve steep{15, 10};
  for (const double part : {0.0, 0.25, 0.5, 1.0}) CHECK_EQ(steep.at(part), 10 * part);
}

// Rows that what is selected in a tree works on. What is done below a node that is regrown is not
// done.
std::int64_t rows_worked_on(const Tree& tree, const FlipRule& rule, std::size_t t) {
  const std::vector<NodeIndex> regrown = rule.nodes_to_regrow(t);
  const TreeFlips& flips = rule.flips(t);
  std::int64_t n = 0;
  for (const NodeIndex node : regrown) n += tree[node].sums.n;
  for (std::size_t f = 0; f < flips.flips.size(); ++f) {
    const Flip& flip = flips.flips[f];
    const bool is_gone =
        std::ranges::any_of(regrown, [&](NodeIndex top) { return is_under(tree, flip.node, top); });
    if (flips.actions[f] != FlipAction::shift || is_gone) continue;
    n += std::min(tree[flip.node].sums.n, 5 * flip.n_moving);
  }
  return n;
}

TEST_CASE("no more rows are worked on than is allowed, unless that is too little for any step") {
  int n_limited = 0, n_reached = 0, n_void = 0, n_settled = 0, n_shifted = 0;
  std::uint64_t seed = 1;
  for (ModelOptions options : models_that_defer()) {
    for (const int min_samples_leaf : {5, 5, 5, 12}) {
      options.training.min_samples_leaf = min_samples_leaf;
      StartedRegrow regrow(deferred_state(options, seed++), fidelity_rule(0.95));
      const ModelState& model = regrow.model;
      const std::vector<std::vector<Flip>> flips = regrow.survey();
      const double all_rows =
          static_cast<double>(model.n_rows()) * static_cast<double>(flips.size());
      for (const double most_work : {0.0, 0.01, 0.05, 0.2, 1.0, infinite}) {
        DeferredRule rule(*regrow.context, most_work);
        std::vector<std::size_t> trees;
        std::int64_t n_flips = 0, n_actions = 0, worked_on = 0;
        for (std::size_t t = 0; t < flips.size(); ++t) {
          rule.set_flips(t, flips[t]);
          trees.push_back(t);
          n_flips += static_cast<std::int64_t>(flips[t].size());
          for (const Flip& flip : flips[t]) n_void += flip.is_void;
        }
        rule.select(trees);
        CHECK_EQ(rule.n_flips(), n_flips);
        for (std::size_t t = 0; t < flips.size(); ++t) {
          worked_on += rows_worked_on(model.nodes.tree(t), rule, t);
          const std::vector<NodeIndex> regrown = rule.nodes_to_regrow(t);
          for (std::size_t f = 0; f < flips[t].size(); ++f) {
            const FlipAction action = rule.flips(t).actions[f];
            const Flip& flip = rule.flips(t).flips[f];
            const bool is_gone = std::ranges::any_of(regrown, [&](NodeIndex top) {
              return is_under(model.nodes.tree(t), flip.node, top);
            });
            if (flip.is_void && rule.reaches_target()) CHECK(is_gone || action != FlipAction::none);
            n_actions += action != FlipAction::none;
            n_settled += action != FlipAction::none;
            n_shifted += action == FlipAction::shift;
          }
        }
        const double work = static_cast<double>(worked_on) / all_rows;
        CHECK(work <= rule.work() + 1e-12);
        CHECK(rule.work() <= most_work || n_actions == 1);
        CHECK(rule.reaches_target() || n_actions > 0);
        if (most_work == infinite) CHECK(rule.reaches_target());
        n_limited += !rule.reaches_target();
        n_reached += rule.reaches_target();
      }
      regrow.abandon();
    }
  }
  CHECK(n_limited > 10);
  CHECK(n_reached > 10);
  CHECK(n_void > 0);
  CHECK(n_settled > 50);
  CHECK(n_shifted > 5);
}

// The memory of a flip by the formula in deferral.hpp, in units: now and whole.
std::pair<double, double> naive_memory(const UpdateContext& context, std::size_t t,
                                       const Flip& flip) {
  const ModelState& model = context.model;
  const DeferredSums& sums = model.nodes.tree(t)[flip.node].deferred;
  const double recorded = static_cast<double>(sums.recorded) * context.gain.gradient_unit;
  const double last = static_cast<double>(sums.last) * model.loss.slope_grid();
  const double unit =
      model.loss.kind == LossKind::squared ? 0x1p-28 * context.variance.back() : 0x1p-28;
  const double factor =
      model.params.learning_rate * 0.85 * flip.weight * flip.regret / recorded / unit;
  const double unweighted = recorded / context.mean_weight;
  return {factor * last, factor * (0.75 * last + 0.25 * unweighted)};
}

TEST_CASE("flips below the floor do not count towards the target when one above is regrown") {
  UpdateRule by_floor = fidelity_rule(1);
  by_floor.memory_floor = 1e-9;
  StartedRegrow regrow(deferred_state({}, 1), by_floor);
  ModelState& model = regrow.model;
  model.deferred.achieved = model.deferred.settled = 0;
  // A split below the root of a tree, one below it, and one in another tree.
  constexpr std::size_t none = 1000;
  std::size_t first_tree = none, other_tree = none;
  NodeIndex upper = no_node, lower = no_node, other = no_node;
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    const Tree& tree = model.nodes.tree(t);
    for (NodeIndex i = 1; i < static_cast<NodeIndex>(tree.nodes.size()); ++i) {
      if (tree[i].is_leaf()) continue;
      const NodeIndex above = tree[i].parent;
      if (first_tree == none && above != 0) {
        first_tree = t, upper = above, lower = i;
      } else if (other_tree == none && first_tree != none && t != first_tree) {
        other_tree = t, other = i;
      }
    }
  }
  REQUIRE(first_tree != none);
  REQUIRE(other_tree != none);
  const auto flip_at = [&](std::size_t t, NodeIndex node, std::int64_t n_rows, double regret) {
    model.nodes[t].tree[node].deferred = {n_rows, 1 << 20, 1 << 20};
    Flip flip;
    flip.node = node;
    flip.weight = 0.6;
    flip.regret = flip.regrown_below = flip.shifted_below = regret;
    return flip;
  };
  DeferredRule rule(*regrow.context, infinite);
  // The memory of so many rows is far below the floor.
  const Flip below_floor = flip_at(first_tree, lower, std::int64_t{1} << 50, 0.2);
  rule.set_flips(first_tree, {flip_at(first_tree, upper, 1, 1.0), below_floor});
  rule.set_flips(other_tree, {flip_at(other_tree, other, 1, 0.1)});
  rule.select({});
  CHECK(rule.flips(first_tree).actions[0] == FlipAction::regrow);
  CHECK(rule.flips(first_tree).actions[1] == FlipAction::none);
  CHECK(rule.flips(other_tree).actions[0] == FlipAction::regrow);
  CHECK(rule.reaches_target());
  regrow.abandon();
}

TEST_CASE("the memory of flips follows from sums, and the rest when some are settled") {
  std::uint64_t seed = 30;
  for (const ModelOptions& options : models_that_defer()) {
    StartedRegrow regrow(deferred_state(options, seed++), fidelity_rule(0.9));
    ModelState& model = regrow.model;
    UpdateContext& context = *regrow.context;
    // Two flips that have nothing to do with each other, at nodes below the roots of two trees.
    std::vector<std::pair<std::size_t, Flip>> flips;
    for (std::size_t t = 0; t < model.nodes.size() && flips.size() < 2; ++t) {
      const std::vector<Node>& nodes = model.nodes.tree(t).nodes;
      for (std::size_t i = 1; i < nodes.size(); ++i) {
        if (nodes[i].is_leaf() || nodes[i].deferred.recorded == 0) continue;
        Flip flip;
        flip.node = static_cast<NodeIndex>(i);
        flip.weight = 0.6;
        flip.regret = 3.5 + static_cast<double>(flips.size());
        flip.regrown_below = flip.shifted_below = 10 - static_cast<double>(flips.size());
        flips.emplace_back(t, flip);
        break;
      }
    }
    REQUIRE(flips.size() == 2);
    const auto [now_0, whole_0] = naive_memory(context, flips[0].first, flips[0].second);
    const auto [now_1, whole_1] = naive_memory(context, flips[1].first, flips[1].second);
    const double whole = whole_0 + whole_1, first = std::min(now_0 + now_1, whole);
    const auto curve = [&](double part) {
      return first * part + (whole - first) * part * part * part;
    };
    DeferredRule rule(context, infinite);
    rule.set_flips(flips[0].first, {flips[0].second});
    rule.set_flips(flips[1].first, {flips[1].second});
    // What was achieved so far is such that the target is just reached with the first flip.
    const double part = whole_0 / whole, done = 1.3 * part;
    const double recovered = curve(done);
    const double left = curve(done + (1 - 0.5 * part) * (1 - part)) - recovered;
    model.deferred.settled = 0;
    for (const double enough : {-1000.0, 1000.0}) {
      // At a fidelity of 0.9, nine times as much has to be done as is left.
      model.deferred.achieved = static_cast<std::int64_t>(9 * left - recovered + enough);
      REQUIRE(model.deferred.achieved >= 0);
      rule.select({});
      const bool settles_both = enough < 0;
      CHECK(rule.flips(flips[0].first).actions[0] == FlipAction::regrow);
      CHECK(rule.flips(flips[1].first).actions[0] ==
            (settles_both ? FlipAction::regrow : FlipAction::none));
      CHECK(rule.reaches_target());
      const double achieved = static_cast<double>(model.deferred.achieved);
      const FidelityEstimate before = rule.estimate_before();
      CHECK(before.is_known && !before.is_of_rows);
      CHECK_EQ(before.achieved, achieved * 0x1p-28);
      CHECK(std::abs(before.left * 0x1p28 - whole) <= 4);
      rule.before_settling();
      const double expected = settles_both ? curve(1.3) : recovered;
      CHECK(std::abs(static_cast<double>(model.deferred.settled) - expected) <= 4);
      const FidelityEstimate after = rule.estimate({});
      CHECK(std::abs(after.achieved * 0x1p28 - achieved - expected) <= 4);
      CHECK(std::abs(after.left * 0x1p28 - (settles_both ? 0 : left)) <= 4);
      model.deferred.settled = 0;
    }
    // A root leaves nothing, as later trees use the candidate; of a void split nothing is known.
    Flip at_root = flips[0].second, is_void = flips[1].second;
    at_root.node = 0;
    is_void.is_void = true;
    is_void.regret = is_void.regrown_below = is_void.shifted_below = infinite;
    rule.set_flips(flips[0].first, {at_root});
    rule.set_flips(flips[1].first, {is_void});
    rule.select({});
    CHECK_EQ(rule.estimate_before().left, 0);
    CHECK(rule.flips(flips[0].first).actions[0] == FlipAction::none);
    CHECK(rule.flips(flips[1].first).actions[0] == FlipAction::regrow);
    regrow.abandon();
  }
}

TEST_CASE("flips whose rows are all below the floor stay") {
  int n_tried = 0;
  StartedRegrow regrow(deferred_state({}, 40), fidelity_rule(1));
  const std::vector<std::vector<Flip>> flips = regrow.survey();
  const auto n_trees = static_cast<double>(flips.size());
  for (std::size_t t = 0; t < flips.size(); ++t) {
    for (const Flip& flip : flips[t]) {
      if (flip.is_void || flip.node == 0) continue;
      const double n = static_cast<double>(regrow.model.nodes.tree(t)[flip.node].deferred.n);
      const double of_row = naive_memory(*regrow.context, t, flip).second * 0x1p-28 / n;
      for (const double factor : {0.999, 1.001}) {
        const UpdateRule by = fidelity_rule(1, of_row * n_trees * factor);
        UpdateContext context(regrow.model, by, *regrow.undo, 1);
        DeferredRule rule(context, infinite);
        rule.set_flips(t, {flip});
        rule.select({});
        CHECK_EQ(rule.has_actions(t), factor < 1);
        CHECK(rule.reaches_target());
        ++n_tried;
      }
    }
  }
  CHECK(n_tried > 5);
  regrow.abandon();
}

}  // namespace
}  // namespace graftboost
