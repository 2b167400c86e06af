#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "model/model.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/deferring.hpp"
#include "tests/update/surveys.hpp"
#include "update/deferral.hpp"
#include "update/restore_histograms.hpp"
#include "update/update.hpp"

namespace graftboost {
namespace {

using testing::bins_of;
using testing::change;
using testing::check_same;
using testing::check_sound;
using testing::check_sums;
using testing::deferred_state;
using testing::Deferring;
using testing::deferring;
using testing::fidelity_rule;
using testing::fit_model;
using testing::ModelOptions;
using testing::models_that_defer;
using testing::n_with_sums;
using testing::random_rows;
using testing::StartedRegrow;
using testing::state_of;
using testing::TrainingRows;

constexpr double infinite = std::numeric_limits<double>::infinity();

// --- regrowing -----------------------------------------------------------------------------------

TEST_CASE("regrowing without a limit leaves nothing deferred") {
  int n_in_place = 0;
  std::int64_t n_regrown = 0, n_shifted = 0;
  std::uint64_t seed = 50;
  for (const ModelOptions& options : models_that_defer()) {
    for (const double fidelity : {0.5, 0.9, 1.0}) {
      Deferring deferring(options, seed++);
      deferring.defer_all();
      Model& model = *deferring.model;
      const UpdateCounts counts = model.regrow(fidelity_rule(fidelity), infinite, 2);
      const ModelState after = state_of(model);
      CHECK(after.deferred.empty());
      CHECK_EQ(counts.rows_deferred, 0);
      check_sound(after);
      CHECK(check_sums(after) > 0);
      CHECK_EQ(counts.fidelity.is_known, !counts.refitted);
      CHECK(!counts.fidelity.is_of_rows || counts.refitted);
      n_in_place += !counts.refitted;
      n_regrown += counts.nodes_regrown;
      n_shifted += counts.nodes_shifted;
      // All nodes were checked: no leaf has an old gain.
      ModelState recounted = after;
      for (TreeNodes& nodes : recounted.nodes) nodes.drop_histograms();
      restore_histograms(recounted, 1);
      check_same(after, recounted);
      // There is nothing to do any more.
      const UpdateCounts again = model.regrow(fidelity_rule(fidelity), infinite, 2);
      CHECK_EQ(again.nodes_checked + again.nodes_regrown + again.nodes_shifted, 0);
      CHECK(!again.refitted);
      check_same(after, state_of(model));
    }
  }
  CHECK(n_in_place > 5);
  CHECK(n_regrown > 20);
  CHECK(n_shifted > 0);
}

TEST_CASE("a refit is made instead of regrowing only if the work is not limited") {
  int n_refits = 0;
  for (const ModelOptions& options : models_that_defer()) {
    Deferring deferring(options, 70);
    deferring.defer_all();
    const auto limited = deferring.model->copy();
    const auto refitted = deferring.model->copy();
    refitted->refit(1);
    const UpdateCounts counts = deferring.model->regrow(fidelity_rule(1), 1, 2);
    CHECK(!limited->regrow(fidelity_rule(1), 0.99, 2).refitted);
    if (!counts.refitted) continue;
    ++n_refits;
    check_same(state_of(*refitted), state_of(*deferring.model));
  }
  CHECK(n_refits > 0);
}

TEST_CASE("regrowing with little work at a time ends") {
  int n_calls = 0;
  std::uint64_t seed = 80;
  for (ModelOptions options : models_that_defer()) {
    options.training.n_estimators = 3;
    for (const int min_samples_leaf : {5, 12}) {
      options.training.min_samples_leaf = min_samples_leaf;
      Deferring deferring(options, seed++);
      deferring.defer_all();
      Model& model = *deferring.model;
      // Any node but a root can be regrown with the rows of one tree.
      const double most_work = 1 / static_cast<double>(state_of(model).nodes.size());
      const std::int64_t n_rows = state_of(model).deferred.n_rows();
      std::int64_t n_left = n_with_sums(state_of(model));
      while (n_left > 0) {
        const UpdateCounts counts = model.regrow(fidelity_rule(1), most_work, 2);
        const ModelState after = state_of(model);
        check_sound(after);
        CHECK(!counts.refitted);
        CHECK_EQ(counts.rows_deferred, after.deferred.n_rows());
        CHECK_EQ(after.deferred.n_rows(), after.deferred.empty() ? 0 : n_rows);
        ++n_calls;
        // What was settled is settled for good: shifted nodes keep their number of rows only.
        std::int64_t n_still = 0;
        for (const TreeNodes& nodes : after.nodes)
          for (const Node& node : nodes.tree.nodes) n_still += node.deferred.recorded > 0;
        REQUIRE(n_still < n_left);
        n_left = n_still;
        if (after.deferred.empty()) break;
      }
      CHECK(state_of(model).deferred.empty());
    }
  }
  CHECK(n_calls > 20);
}

TEST_CASE("without any work one step is taken, and rows stay deferred") {
  int n_limited = 0;
  std::uint64_t seed = 100;
  for (const ModelOptions& options : models_that_defer()) {
    for (int repetition = 0; repetition < 3; ++repetition) {
      Deferring deferring(options, seed++);
      deferring.defer_all();
      const ModelState before = state_of(*deferring.model);
      const UpdateCounts counts = deferring.model->regrow(fidelity_rule(1), 0, 2);
      const ModelState after = state_of(*deferring.model);
      check_sound(after);
      if (after.deferred.empty()) continue;
      ++n_limited;
      // A shift may leave a split below it with too few rows.
      CHECK(counts.nodes_regrown == 1 || counts.nodes_shifted == 1);
      CHECK_EQ(after.deferred.n_rows(), before.deferred.n_rows());
      CHECK_EQ(counts.rows_deferred, before.deferred.n_rows());
    }
  }
  CHECK(n_limited > 2);
}

TEST_CASE("regrowing does not depend on histograms and bounds of earlier updates") {
  for (const ModelOptions& options : models_that_defer()) {
    Deferring deferring(options, 110);
    deferring.defer_all();
    ModelState state = state_of(*deferring.model);
    for (TreeNodes& nodes : state.nodes) nodes.drop_histograms();
    Model other(std::move(state));
    for (const double most_work : {0.1, infinite}) {
      other.regrow(fidelity_rule(0.9), most_work, 2);
      deferring.model->regrow(fidelity_rule(0.9), most_work, 2);
      check_same(state_of(*deferring.model), state_of(other));
    }
  }
}

TEST_CASE("neither shards nor threads change what is deferred and regrown") {
  int n_in_place = 0;
  std::int64_t n_regrown = 0;
  std::uint64_t seed = 120;
  for (ModelOptions options : models_that_defer()) {
    const TrainingRows rows = random_rows(options, 340, seed++);
    const TrainingRows fitted = rows.slice(0, 300);
    const auto bins = bins_of(fitted, options);
    struct Changed {
      std::unique_ptr<Model> model;
      int n_threads;
      UpdateCounts counts;
      PendingSurvey pending;
    };
    std::vector<Changed> all;
    for (const std::size_t n_shards : {1, 2, 3}) {
      options.n_shards = n_shards;
      for (const int n_threads : {1, 3})
        all.push_back({fit_model(fitted, options, bins, n_threads), n_threads, {}, {}});
    }
    for (std::size_t step = 0; step < 8; ++step) {
      const TrainingRows added = rows.slice(300 + 4 * step, 303 + 4 * step);
      const TrainingRows removed = rows.slice(20 * step, 20 * step + 8);
      for (auto& [model, n_threads, counts, pending] : all) {
        if (step == 3 || step == 6) {
          counts = model->regrow(fidelity_rule(0.9), step == 3 ? 0.15 : infinite, n_threads);
        } else if (step == 4) {
          model->refresh(n_threads);
        } else {
          // The others defer; one update regrows at once.
          counts = change(*model, added, removed.ids(),
                          step == 2 ? fidelity_rule(0.5) : deferring(), n_threads);
        }
        pending = model->pending(fidelity_rule(0.9), n_threads);
        const Changed& first = all[0];
        check_sound(state_of(*model));
        check_same(state_of(*first.model), state_of(*model));
        CHECK_EQ(first.counts.refitted, counts.refitted);
        CHECK_EQ(first.counts.nodes_checked, counts.nodes_checked);
        CHECK_EQ(first.counts.rows_regrown, counts.rows_regrown);
        CHECK_EQ(first.counts.rows_shifted, counts.rows_shifted);
        CHECK_EQ(first.counts.rows_deferred, counts.rows_deferred);
        CHECK_EQ(first.counts.work.amount(), counts.work.amount());
        CHECK_EQ(first.counts.fidelity.achieved, counts.fidelity.achieved);
        CHECK_EQ(first.counts.fidelity.left, counts.fidelity.left);
        CHECK(first.pending.rows == pending.rows);
        CHECK_EQ(first.pending.n_nodes, pending.n_nodes);
        CHECK_EQ(first.pending.work, pending.work);
        CHECK_EQ(first.pending.now.left, pending.now.left);
      }
      n_in_place += !all[0].counts.refitted;
      n_regrown += all[0].counts.nodes_regrown;
    }
  }
  CHECK(n_in_place > 30);
  CHECK(n_regrown > 10);
}

TEST_CASE("a refit forgets what was deferred") {
  ModelOptions options;
  options.n_shards = 2;
  const UpdateRule regrow_at_once{UpdateRule::Kind::regret, 3, 1};
  for (const bool by_update : {false, true}) {
    Deferring deferring(options, 130);
    deferring.defer_all();
    Model& model = *deferring.model;
    CHECK(!state_of(*model.copy()).deferred.empty());
    if (by_update) {
      const TrainingRows many = deferring.rows.slice(100, 220);
      CHECK(change(model, deferring.rows.slice(0, 0), many.ids(), regrow_at_once).refitted);
    } else {
      model.refit(1);
    }
    CHECK(state_of(model).deferred == DeferredRows{});
    CHECK_EQ(n_with_sums(state_of(model)), 0);
  }
  ModelState model = deferred_state(options, 131);
  REQUIRE(n_with_sums(model) > 0);
  forget_deferred(model);
  CHECK(model.deferred == DeferredRows{});
  CHECK_EQ(n_with_sums(model), 0);
}

// --- what changes nothing ------------------------------------------------------------------------

TEST_CASE("a survey of what is pending changes neither the model nor what follows") {
  std::int64_t n_flips = 0;
  std::uint64_t seed = 140;
  for (const ModelOptions& options : models_that_defer()) {
    for (const bool is_refreshed : {false, true}) {
      Deferring deferring(options, seed++);
      deferring.defer_all(2);
      Model& model = *deferring.model;
      if (is_refreshed) model.refresh(1);
      const auto other = model.copy();
      const ModelState before = state_of(model);
      for (const double fidelity : {0.5, 0.95}) {
        const PendingSurvey found = model.pending(fidelity_rule(fidelity), 2);
        CHECK(found.rows == before.deferred);
        CHECK(found.work >= 0);
        CHECK(found.now.is_known && !found.now.is_of_rows);
        CHECK_EQ(found.now.achieved, static_cast<double>(before.deferred.achieved) * 0x1p-28);
        n_flips += found.n_nodes;
        const ModelState after = state_of(model);
        check_same(before, after);
        check_sums(after);
        for (std::size_t t = 0; t < before.nodes.size(); ++t) {
          CHECK_EQ(after.nodes[t].counted, before.nodes[t].counted);
          CHECK_EQ(after.nodes[t].order_slack, before.nodes[t].order_slack);
          if (is_refreshed) continue;
          // Histograms are not counted again because of a survey.
          std::visit(
              [&]<class Sums>(const TreeHistograms<Sums>& a) {
                CHECK(a == std::get<TreeHistograms<Sums>>(before.nodes[t].histograms));
              },
              after.nodes[t].histograms);
        }
      }
      CHECK_EQ(model.n_changes(), is_refreshed ? 3 : 2);
      deferring.defer(2);
      change(*other, deferring.added(2), deferring.removed(2).ids(), testing::deferring());
      check_same(state_of(*other), state_of(model));
      model.pending(fidelity_rule(0.7), 1);
      for (const double most_work : {0.1, infinite}) {
        const UpdateCounts a = model.regrow(fidelity_rule(0.9), most_work, 2);
        const UpdateCounts b = other->regrow(fidelity_rule(0.9), most_work, 2);
        check_same(state_of(*other), state_of(model));
        CHECK_EQ(a.work.amount(), b.work.amount());
        CHECK_EQ(a.fidelity.left, b.fidelity.left);
      }
      const PendingSurvey nothing = model.pending(fidelity_rule(0.9), 1);
      CHECK(nothing.rows.empty());
      CHECK_EQ(nothing.n_nodes, 0);
    }
  }
  CHECK(n_flips > 50);
}

TEST_CASE("updates and regrows that fail restore what was deferred") {
  for (const ModelOptions& options : models_that_defer()) {
    const ModelState before = deferred_state(options, 160);
    // An update that defers more rows.
    StartedRegrow update(before, deferring());
    update.abandon();
    check_same(before, update.model);
    update.undo = std::make_unique<NodeUndo>(update.model);
    for (RowShard& shard : update.model.shards) shard.begin_update({1, 4, 5});
    update.none.reset();
    ChangedRows changed(update.model, 1);
    UpdateContext context(update.model, update.rule, *update.undo, 1);
    UpdateCounts counts;
    CHECK(update_trees(context, changed, counts));
    CHECK_EQ(update.model.deferred.n_removed - before.deferred.n_removed, changed.size());
    update.abandon();
    check_same(before, update.model);
    restore_histograms(update.model, 1);
    check_same(before, update.model);
    check_sound(update.model);

    // A regrow, limited or not.
    for (const double most_work : {0.2, 0.9}) {
      StartedRegrow regrow(before, fidelity_rule(1));
      bool reaches_target = false;
      CHECK(regrow_deferred(*regrow.context, *regrow.none, most_work, reaches_target, counts));
      CHECK(counts.nodes_regrown + counts.nodes_shifted > 0);
      CHECK(n_with_sums(regrow.model) < n_with_sums(before));
      regrow.abandon();
      check_same(before, regrow.model);
      restore_histograms(regrow.model, 1);
      check_same(before, regrow.model);
      check_sound(regrow.model);
    }
  }
}

TEST_CASE("leaves with deferred rows keep their gains when a tree is counted again") {
  int n_old = 0;
  for (const ModelOptions& options : models_that_defer()) {
    for (const bool is_refreshed : {false, true}) {
      ModelState model = deferred_state(options, 170);
      const ModelState before = model;
      if (is_refreshed) {
        Model refreshed(std::move(model));
        refreshed.refresh(1);
        model = state_of(refreshed);
      } else {
        for (TreeNodes& nodes : model.nodes) nodes.drop_histograms();
      }
      ModelState forgetful = model;
      forget_deferred(forgetful);
      restore_histograms(model, 1);
      restore_histograms(forgetful, 1);
      for (std::size_t t = 0; t < model.nodes.size(); ++t) {
        for (std::size_t i = 0; i < model.nodes.tree(t).nodes.size(); ++i) {
          const Node& node = model.nodes.tree(t).nodes[i];
          const Node& evaluated = forgetful.nodes.tree(t).nodes[i];
          if (!node.is_leaf() || node.deferred.empty()) {
            CHECK_EQ(node.gain, evaluated.gain);
            continue;
          }
          CHECK_EQ(node.gain, before.nodes.tree(t).nodes[i].gain);
          CHECK(node.split == before.nodes.tree(t).nodes[i].split);
          n_old += node.gain != evaluated.gain;
        }
      }
    }
  }
  CHECK(n_old > 20);
}

}  // namespace
}  // namespace graftboost
