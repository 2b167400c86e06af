#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "model/model.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "tests/update/surveys.hpp"
#include "update/fidelity_rule.hpp"

namespace graftboost {
namespace {

using testing::bins_of;
using testing::change;
using testing::check_same;
using testing::fidelity_rule;
using testing::fit_model;
using testing::ModelOptions;
using testing::Random;
using testing::random_rows;
using testing::StartedUpdate;
using testing::state_of;
using testing::TrainingRows;
using testing::various_models;

bool is_below(const Tree& tree, NodeIndex i, NodeIndex top) {
  for (i = tree[i].parent; i != no_node; i = tree[i].parent)
    if (i == top) return true;
  return false;
}

TEST_CASE("flips are sorted, and the topmost of the nodes to regrow are regrown") {
  int n_above = 0, n_below = 0, n_selected = 0;
  std::uint64_t seed = 0;
  for (int turn = 0; turn < 4; ++turn)
    for (const ModelOptions& options : various_models()) {
      Random random(++seed);
      StartedUpdate update(options, 200, 4, 0.05, seed, false, fidelity_rule(1));
      FidelityRule rule(*update.context, *update.changed);
      CHECK(update.context->tolerance > 1e300);
      std::vector<TreeFlips> found = testing::survey_all(update, random);
      std::vector<std::size_t> trees(found.size());
      std::iota(trees.begin(), trees.end(), std::size_t{0});
      for (const std::size_t t : trees) {
        std::vector<Flip> backwards = found[t].flips;
        std::ranges::reverse(backwards);
        rule.set_flips(t, backwards);
      }
      rule.select(trees);
      n_selected += update.context->tolerance < 1e300;
      for (const std::size_t t : trees) {
        const Tree& tree = update.model.nodes.tree(t);
        const TreeFlips& flips = rule.flips(t);
        REQUIRE(flips.flips.size() == found[t].flips.size());
        REQUIRE(flips.actions.size() == flips.flips.size());
        std::vector<NodeIndex> regrown, expected;
        bool any = false;
        for (std::size_t f = 0; f < flips.flips.size(); ++f) {
          CHECK_EQ(flips.flips[f].node, found[t].flips[f].node);
          any |= flips.actions[f] != FlipAction::none;
          if (flips.actions[f] == FlipAction::regrow) regrown.push_back(flips.flips[f].node);
        }
        CHECK_EQ(rule.has_actions(t), any);
        for (const NodeIndex i : regrown) {
          const bool is_top = std::ranges::none_of(
              regrown, [&](NodeIndex other) { return is_below(tree, i, other); });
          if (is_top) expected.push_back(i);
          ++(is_top ? n_above : n_below);
        }
        CHECK(rule.nodes_to_regrow(t) == expected);
      }
    }
  CHECK(n_selected > 10);
  CHECK(n_above > 10);
  CHECK(n_below > 5);
}

void check_same(const FidelityEstimate& a, const FidelityEstimate& b) {
  CHECK_EQ(a.is_known, b.is_known);
  CHECK_EQ(a.achieved, b.achieved);
  CHECK_EQ(a.left, b.left);
  CHECK_EQ(a.left_error, b.left_error);
  CHECK_EQ(a.most_left, b.most_left);
  CHECK_EQ(a.rows_remembered, b.rows_remembered);
  CHECK_EQ(a.rows_still_remembered, b.rows_still_remembered);
}

TEST_CASE("of the flips that stay less counts for rows whose other flips are settled") {
  int n_between = 0, n_none_settled = 0;
  for (const ModelOptions& options : various_models()) {
    Random random(2);
    StartedUpdate update(options, 200, 4, 0.05, 2, false, fidelity_rule(0.6));
    ModelState& model = update.model;
    const ChangedRows& changed = *update.changed;
    FidelityRule rule(*update.context, changed);
    std::vector<TreeFlips> all = testing::survey_all(update, random);
    std::vector<std::size_t> trees(all.size());
    std::iota(trees.begin(), trees.end(), std::size_t{0});
    for (const std::size_t t : trees) rule.set_flips(t, all[t].flips);
    rule.select(trees);
    rule.before_settling();
    std::vector<TreeFlips> stay(all.size());
    for (const std::size_t t : trees) {
      const std::vector<NodeIndex> regrown = rule.nodes_to_regrow(t);
      const TreeFlips& flips = rule.flips(t);
      for (std::size_t f = 0; f < flips.flips.size(); ++f) {
        const NodeIndex node = flips.flips[f].node;
        const bool is_gone = std::ranges::any_of(regrown, [&](NodeIndex top) {
          return node == top || is_below(model.nodes.tree(t), node, top);
        });
        if (!is_gone && flips.actions[f] == FlipAction::none)
          stay[t].flips.push_back(flips.flips[f]);
      }
    }
    // Nothing is settled after all, so the scores are those of booking.
    for (TreeNodes& nodes : model.nodes)
      for (Node& node : nodes.tree.nodes) node.value = model.leaf_value(node.sums);
    const FidelityEstimate found = rule.estimate(std::vector<bool>(all.size(), false));
    const FlipShifts by_all(*update.context, changed, all, 1);
    const FlipShifts by_staying(*update.context, changed, stay, 1);
    const ChangedScores booked = scores_when_booked(*update.context, changed);
    RowLoss loss(*update.context, changed);
    const std::size_t k_trees = model.base_scores.size();
    std::int64_t left = 0, most_left = 0;
    for (std::size_t row = 0; row < changed.size(); ++row) {
      double size = 0, size_staying = 0;
      std::vector<double> shifts(k_trees);
      by_all.for_each(row, [&](std::size_t, std::uint32_t, double s) { size += std::abs(s); });
      by_staying.for_each(row, [&](std::size_t t, std::uint32_t, double s) {
        size_staying += std::abs(s);
        shifts[t % k_trees] += s;
      });
      // Flips that are topmost only among those that stay may have larger shifts.
      const double settled = std::max(size - size_staying, 0.0);
      const double part = settled > 0 ? 1 - 0.5 * (settled / (settled + size_staying)) : 1;
      n_between += part > 0.5 && part < 1;
      n_none_settled += part == 1 && size > 0;
      for (double& shift : shifts) shift *= part;
      const std::int64_t memory =
          loss.memory(row, {booked.data() + row * k_trees, k_trees}, shifts);
      left += memory;
      most_left = std::max(most_left, memory);
    }
    CHECK_EQ(found.left, static_cast<double>(left) * memory_unit);
    CHECK_EQ(found.most_left, static_cast<double>(most_left) * memory_unit);
  }
  CHECK(n_between > 10);
  CHECK(n_none_settled > 0);
}

struct Tried {
  int in_place = 0;
  std::int64_t regrown = 0, shifted = 0, remembered = 0;
};

TEST_CASE("neither shards nor threads change an update by the fidelity rule") {
  Tried tried;
  std::uint64_t seed = 1;
  for (ModelOptions options : various_models()) {
    for (const UpdateRule& rule : {fidelity_rule(0.5), fidelity_rule(0.9, 1e-3)}) {
      const TrainingRows rows = random_rows(options, 420, seed++);
      const TrainingRows fitted = rows.slice(0, 400);
      const auto bins = bins_of(fitted, options);
      struct Updated {
        std::unique_ptr<Model> model;
        int n_threads;
        UpdateCounts counts;
      };
      std::vector<Updated> all;
      for (const std::size_t n_shards : {1, 2, 3}) {
        options.n_shards = n_shards;
        for (const int n_threads : {1, 2})
          all.push_back({fit_model(fitted, options, bins, n_threads), n_threads, {}});
      }
      for (std::size_t step = 0; step < 3; ++step) {
        // Removes rows, adds rows, does both.
        const TrainingRows added = rows.slice(400 + 5 * step, 400 + 5 * step + (step == 0 ? 0 : 3));
        const TrainingRows removed = rows.slice(20 * step, 20 * step + (step == 1 ? 0 : 5));
        for (Updated& one : all) {
          one.counts = change(*one.model, added, removed.ids(), rule, one.n_threads);
          one.model->check_state(1);
          const UpdateCounts& first = all[0].counts;
          check_same(state_of(*all[0].model), state_of(*one.model));
          check_same(first.fidelity, one.counts.fidelity);
          CHECK_EQ(first.refitted, one.counts.refitted);
          CHECK_EQ(first.nodes_checked, one.counts.nodes_checked);
          CHECK_EQ(first.nodes_regrown, one.counts.nodes_regrown);
          CHECK_EQ(first.rows_regrown, one.counts.rows_regrown);
          CHECK_EQ(first.nodes_shifted, one.counts.nodes_shifted);
          CHECK_EQ(first.rows_shifted, one.counts.rows_shifted);
          CHECK_EQ(first.work.amount(), one.counts.work.amount());
          CHECK_EQ(one.counts.fidelity.is_known, !one.counts.refitted);
        }
        tried.in_place += !all[0].counts.refitted;
        tried.regrown += all[0].counts.nodes_regrown;
        tried.shifted += all[0].counts.nodes_shifted;
        tried.remembered += all[0].counts.fidelity.rows_remembered;
      }
    }
  }
  CHECK(tried.in_place > 12);
  CHECK(tried.regrown > 10);
  CHECK(tried.shifted > 0);
  CHECK(tried.remembered > 10);
}

TEST_CASE("the estimate for many rows does not depend on shards either") {
  int n_in_place = 0;
  for (const bool weighted : {false, true}) {
    ModelOptions options;
    options.loss = LossKind::squared;
    options.weighted = weighted;
    options.training.n_estimators = 8;
    options.training.min_samples_leaf = 20;
    for (std::uint64_t seed = 20; seed < 23; ++seed) {
      const TrainingRows rows = random_rows(options, 2000, seed);
      const auto bins = bins_of(rows, options);
      std::vector<UpdateCounts> counts;
      for (const std::size_t n_shards : {1, 2, 3}) {
        options.n_shards = n_shards;
        const auto model = fit_model(rows, options, bins);
        counts.push_back(
            change(*model, rows.slice(0, 0), rows.slice(0, 40).ids(), fidelity_rule(0.7), 2));
        check_same(counts[0].fidelity, counts.back().fidelity);
      }
      n_in_place += !counts[0].refitted;
    }
  }
  CHECK(n_in_place > 2);
}

TEST_CASE("what was achieved is the change of the losses of the changed rows") {
  int n_in_place = 0;
  for (const LossKind kind : {LossKind::logistic, LossKind::softmax}) {
    ModelOptions options;
    options.loss = kind;
    options.n_classes = kind == LossKind::softmax ? 3 : 2;
    options.n_shards = 2;
    options.training.n_estimators = 8;
    for (const double fidelity : {0.0, 0.5, 1.0}) {
      const TrainingRows rows = random_rows(options, 1002, 9);
      const auto model = fit_model(rows.slice(0, 1000), options);
      const TrainingRows removed = rows.slice(3, 6), added = rows.slice(1000, 1002);
      const Loss loss = state_of(*model).loss;
      const auto losses = [&](const TrainingRows& of) {
        const auto scores = model->scores(of.table.dense(), 0, -1, 1);
        double sum = 0;
        for (std::size_t r = 0; r < of.size(); ++r) {
          sum += loss.of_row(static_cast<std::int32_t>(of.y[r]),
                             {scores.values.data() + r * scores.per_row, scores.per_row});
        }
        return sum;
      };
      const double before = losses(removed) - losses(added);
      const UpdateCounts counts = change(*model, added, removed.ids(), fidelity_rule(fidelity));
      CHECK_EQ(counts.fidelity.is_known, fidelity != 0 && !counts.refitted);
      if (!counts.fidelity.is_known) continue;
      ++n_in_place;
      const double after = losses(removed) - losses(added);
      CHECK(std::abs(counts.fidelity.achieved - (after - before)) < 1e-7);
      CHECK(counts.fidelity.rows_remembered <= 5);
      CHECK(counts.fidelity.rows_still_remembered <= 5);
      CHECK(counts.fidelity.most_left >= counts.fidelity.left / 5);
    }
  }
  CHECK(n_in_place >= 3);
}

int n_void_splits(const ModelState& model) {
  int n = 0;
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    for (const Node& node : model.nodes.tree(t).nodes) n += !node.is_leaf() && node.gain == no_gain;
  }
  return n;
}

// Removes rows from models whose leaves are as small as they may be.
void check_no_void(const UpdateRule& rule, Tried& tried) {
  std::uint64_t seed = 40;
  for (ModelOptions options : various_models()) {
    options.training.min_samples_leaf = 10;
    options.training.n_estimators = 6;
    for (int repetition = 0; repetition < 4; ++repetition) {
      const TrainingRows rows = random_rows(options, 400, seed++);
      const auto model = fit_model(rows, options);
      for (std::size_t step = 0; step < 10; ++step) {
        const TrainingRows removed = rows.slice(8 * step, 8 * step + 8);
        const UpdateCounts counts = change(*model, rows.slice(0, 0), removed.ids(), rule);
        tried.in_place += !counts.refitted;
        tried.regrown += counts.nodes_regrown;
        tried.shifted += counts.nodes_shifted;
        // One that stays counts once.
        if (!CHECK_EQ(n_void_splits(state_of(*model)), 0)) break;
      }
    }
  }
}

TEST_CASE("no split is void after an update by the fidelity rule") {
  Tried tried;
  check_no_void(fidelity_rule(0.1, 1), tried);  // hardly anything else is settled
  check_no_void(fidelity_rule(0.5), tried);
  CHECK(tried.in_place > 40);
  CHECK(tried.regrown > 10);
  CHECK(tried.shifted > 10);
}

}  // namespace
}  // namespace graftboost
