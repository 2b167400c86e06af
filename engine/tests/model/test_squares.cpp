#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "model/model.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "train/histogram.hpp"
#include "update/node_undo.hpp"
#include "update/update_context.hpp"
#include "update/update_trees.hpp"

namespace graftboost {
namespace {

using testing::change;
using testing::check_same;
using testing::fit_model;
using testing::fit_state;
using testing::ModelOptions;
using testing::naive_squares;
using testing::never_regrow;
using testing::Random;
using testing::random_rows;
using testing::StartedUpdate;
using testing::state_of;
using testing::TrainingRows;

// Of all losses, weighted and not, whole and subsampled.
std::vector<ModelOptions> models_with_squares() {
  std::vector<ModelOptions> all = testing::various_models();
  ModelOptions both;
  both.weighted = true;
  both.training.subsample = 0.6;
  both.n_shards = 2;
  all.push_back(both);
  both.loss = LossKind::softmax;
  both.n_classes = 3;
  both.training.n_estimators = 2;
  all.push_back(both);
  return all;
}

std::vector<UpdateRule> all_rules() {
  UpdateRule half{.kind = UpdateRule::Kind::fidelity, .fidelity = 0.5}, full = half, none = half;
  full.fidelity = 1;
  none.fidelity = 0;
  return {{UpdateRule::Kind::regret, 0, 1},
          {UpdateRule::Kind::regret, 3, 1},
          {UpdateRule::Kind::rank, 0.3, 15},
          never_regrow,
          half,
          full,
          none};
}

void check_squares(const Model& model) {
  const ModelState state = state_of(model);
  for (std::size_t t = 0; t < state.nodes.size(); ++t) {
    CHECK(state.nodes[t].squares == naive_squares(state, t));
    CHECK(state.nodes[t].squares > 0);
    for (const RowShard& shard : state.shards) {
      for (Slot row = 0; row < shard.size(); ++row) {
        CHECK(state.params.in_subsample(t, shard.rows.ids[row]) ||
              shard.trees[t].recorded[row] == 0);
      }
    }
  }
}

TEST_CASE("squares are those of the rows after a fit, updates, a refresh and a refit") {
  std::int64_t n_regrown = 0, n_shifted = 0, n_in_place = 0, n_refitted = 0;
  std::uint64_t seed = 1;
  for (const ModelOptions& options : models_with_squares()) {
    const TrainingRows rows = random_rows(options, 220, seed++);
    const auto fitted = fit_model(rows.slice(0, 180), options);
    check_squares(*fitted);
    for (const UpdateRule& rule : all_rules()) {
      const auto model = fitted->copy();
      std::size_t at = 0;
      const auto update = [&](std::size_t n_added, std::size_t n_removed) {
        const TrainingRows added = rows.slice(180 + at, 180 + at + n_added);
        const TrainingRows removed = rows.slice(at, at + n_removed);
        at += std::max(n_added, n_removed);
        const UpdateCounts counts = change(*model, added, removed.ids(), rule);
        ++(counts.refitted ? n_refitted : n_in_place);
        n_regrown += counts.nodes_regrown;
        n_shifted += counts.nodes_shifted;
        check_squares(*model);
      };
      update(2, 0);
      update(0, 2);
      update(1, 2);
      model->refresh(2);
      check_squares(*model);
      update(2, 1);
      model->refit(2);
      check_squares(*model);
      update(1, 1);
    }
  }
  CHECK(n_in_place > 50);
  CHECK(n_refitted > 0);  // after an update that was undone, because a refit was cheaper
  CHECK(n_regrown > 20);
  CHECK(n_shifted > 0);
}

TEST_CASE("an update that is undone restores squares, and one that is refused leaves them") {
  int n_done = 0;
  for (const ModelOptions& options : models_with_squares()) {
    for (const UpdateRule& rule : all_rules()) {
      StartedUpdate update(options, 150, 2, 0.01, 3, false, rule);
      ModelState& model = update.model;
      UpdateCounts counts;
      const bool done = update_trees(*update.context, *update.changed, counts);
      n_done += done;
      bool any_changed = false;
      for (std::size_t t = 0; t < model.nodes.size(); ++t) {
        any_changed |= model.nodes[t].squares != update.before.nodes[t].squares;
        // Rows that were removed are still there, but do not count.
        if (done) CHECK(model.nodes[t].squares == naive_squares(model, t));
      }
      CHECK(any_changed);
      update.undo.reset();
      for (RowShard& shard : model.shards) shard.undo();
      check_same(update.before, model);
      for (std::size_t t = 0; t < model.nodes.size(); ++t)
        CHECK(model.nodes[t].squares == naive_squares(model, t));
    }
    const TrainingRows rows = random_rows(options, 130, 4);
    const auto model = fit_model(rows.slice(0, 120), options);
    const ModelState before = state_of(*model);
    const std::vector<RowId> unknown{rows.ids()[0], -1};
    CHECK_THROWS_AS(change(*model, rows.slice(120, 130), unknown, never_regrow),
                    std::invalid_argument);
    check_same(before, state_of(*model));
  }
  CHECK(n_done > 10);
}

TEST_CASE("the variance in a tree is that of what rows recorded over their mean hessian") {
  for (const ModelOptions& options : models_with_squares()) {
    const ModelState model = fit_state(random_rows(options, 160, 5), options);
    const Loss& loss = model.loss;
    const double grid = loss.kind == LossKind::squared ? Loss::target_grid : 0x1p-15;
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      double squares = 0, hessians = 0;
      for (const RowShard& shard : model.shards) {
        for (Slot row = 0; row < shard.size(); ++row) {
          const double weight = static_cast<double>(shard.weight_of(row)) * loss.weight_unit;
          if (!model.params.in_subsample(t, shard.rows.ids[row])) continue;
          const double g = shard.trees[t].recorded[row] * grid;
          const double p = std::abs(g);
          squares += weight * g * g;
          // Hessians lie on a grid, too.
          hessians +=
              weight *
              (loss.kind == LossKind::squared ? 1 : std::floor(p * (1 - p) / 0x1p-20) * 0x1p-20);
        }
      }
      const double expected = squares / hessians;
      CHECK(std::abs(model.variance_in(t) / expected - 1) < 1e-12);
    }
  }
}

TEST_CASE("regrets do not depend on the scale of weights") {
  ModelOptions options;
  options.weighted = true;
  options.training.n_estimators = 1;
  for (const LossKind loss : {LossKind::logistic, LossKind::squared}) {
    options.loss = loss;
    TrainingRows rows = random_rows(options, 160, 6);
    const auto bins = testing::bins_of(rows, options);
    const auto regret = [&] {
      ModelState model = state_of(*fit_model(rows, options, bins));
      NodeUndo undo(model);
      undo.commit();
      const UpdateRule rule;
      UpdateContext context(model, rule, undo, 1);
      context.variance[0] = model.variance_in(0);
      return context.relative_regret(0, model.nodes.tree(0)[0].gain, 0, 50);
    };
    const double light = regret();
    CHECK(light > 0);
    for (double& weight : rows.weight) weight *= 32;
    CHECK(std::abs(regret() / light - 1) < 1e-4);
  }
}

TEST_CASE("a tree in which nothing is recorded has a variance of one") {
  ModelOptions options;
  ModelState model = fit_state(random_rows(options, 100, 7), options);
  REQUIRE(model.variance_in(0) != 1);
  ModelState other = model;
  other.nodes[0].squares = 0;
  CHECK_EQ(other.variance_in(0), 1);
  model.nodes[0].tree[0].sums.h = 0;
  CHECK_EQ(model.variance_in(0), 1);
}

TEST_CASE("sums of squares are exact up to the largest gradients and weights") {
  constexpr std::size_t n = (std::size_t{1} << 21) + 3;
  constexpr Gradient largest = 1 << 30;
  std::vector<Gradient> gradients(n);
  std::vector<Weight> weights(n, static_cast<Weight>(Loss::largest_weight));
  for (std::size_t i = 0; i < n; ++i) gradients[i] = i % 2 == 0 ? largest : -largest;
  const __int128 square = static_cast<__int128>(1) << 60;
  for (const std::size_t some : {std::size_t{0}, std::size_t{1}, std::size_t{9}, n}) {
    CHECK(sum_of_squares({gradients.data(), nullptr, LossKind::squared}, 0, some) == square * some);
    CHECK(sum_of_squares({gradients.data(), weights.data(), LossKind::squared}, 0, some) ==
          (square << 30) * some);
  }
  // All bits of both halves: (2^30 - 1)^2 = 2^60 - 2^31 + 1.
  for (Gradient& g : gradients) g = g > 0 ? largest - 1 : 1 - largest;
  CHECK(sum_of_squares({gradients.data(), nullptr, LossKind::squared}, 0, n) ==
        (square - (static_cast<__int128>(1) << 31) + 1) * n);
}

TEST_CASE("sums of squares of gradients of classes are exact up to the largest") {
  constexpr std::size_t n = (std::size_t{1} << 21) + 3;
  std::vector<NarrowGradient> gradients(n);
  std::vector<Weight> weights(n, static_cast<Weight>(Loss::largest_weight));
  // The last but one value is only in a corrupted file.
  for (const int largest : {32767, 32768, 1}) {
    for (std::size_t i = 0; i < n; ++i)
      gradients[i] =
          static_cast<NarrowGradient>(i % 2 == 0 && largest < 32768 ? largest : -largest);
    const __int128 square = static_cast<__int128>(largest) * largest;
    CHECK(sum_of_squares({gradients.data(), nullptr, LossKind::logistic}, 0, n) == square * n);
    CHECK(sum_of_squares({gradients.data(), weights.data(), LossKind::logistic}, 0, n) ==
          (square << 30) * n);
  }
}

TEST_CASE("sums of squares of gradients that only a corrupted file has") {
  const std::vector<Gradient> gradients(5, std::numeric_limits<Gradient>::min());
  CHECK(sum_of_squares({gradients.data(), nullptr, LossKind::squared}, 0, 5) ==
        5 * (static_cast<__int128>(1) << 62));
}

TEST_CASE("sums of squares of any rows are those of each") {
  Random random(8);
  for (int repetition = 0; repetition < 50; ++repetition) {
    const std::size_t n = random.below(70);
    std::vector<Gradient> gradients;
    std::vector<Weight> weights;
    __int128 plain = 0, weighted = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const int bits = static_cast<int>(random.below(31));
      gradients.push_back(static_cast<Gradient>(random.normal() / 6 * std::ldexp(1.0, bits)));
      weights.push_back(static_cast<Weight>(random.below(std::size_t{1} << bits)));
      const __int128 g = gradients[i];
      plain += g * g;
      weighted += g * g * weights[i];
    }
    const RecordedGradients a{gradients.data(), nullptr, LossKind::squared};
    const RecordedGradients b{gradients.data(), weights.data(), LossKind::squared};
    CHECK(sum_of_squares(a, 0, n) == plain);
    CHECK(sum_of_squares(b, 0, n) == weighted);
    __int128 of_each = 0;
    for (Slot row = 0; row < n; ++row) of_each += b.square_of(row);
    CHECK(of_each == weighted);
  }
}

}  // namespace
}  // namespace graftboost
