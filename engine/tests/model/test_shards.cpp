#include <cstdint>
#include <vector>

#include "model/model.hpp"
#include "model/state_check.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/random_changes.hpp"

namespace graftboost {
namespace {

using testing::bins_of;
using testing::change;
using testing::check_same;
using testing::check_same_counts;
using testing::check_sums;
using testing::contents_of;
using testing::fit_model;
using testing::ModelOptions;
using testing::never_regrow;
using testing::random_rows;
using testing::RandomChanges;
using testing::state_of;
using testing::TrainingRows;
using testing::Tried;

// Fits a model to some of the rows in so many shards, each, and changes all models alike.
void check_shards(ModelOptions options, const UpdateRule& rule, std::uint64_t seed, Tried& tried) {
  RandomChanges changes(options, seed);
  const TrainingRows fitted = changes.fitted();
  const auto bins = bins_of(fitted, options);
  std::vector<std::unique_ptr<Model>> models;
  for (const std::size_t n_shards : {1, 2, 3, 7}) {
    options.n_shards = n_shards;
    models.push_back(fit_model(fitted, options, bins));
    REQUIRE(state_of(*models.back()).shards.size() == n_shards);
  }
  for (int step = 0; step < 5; ++step) {
    const auto before = contents_of(state_of(*models[0]));
    for (std::size_t m = 1; m < models.size(); ++m)
      check_same(before, contents_of(state_of(*models[m])));
    const RandomChanges::Change next = changes.next();
    if (next.empty()) continue;
    std::vector<UpdateCounts> counts;
    for (const auto& model : models) {
      counts.push_back(change(*model, next.added, next.removed, rule));
      model->check_state(1);
    }
    for (const UpdateCounts& other : counts) check_same_counts(other, counts[0]);
    tried.note(counts[0]);
  }
  check_same(state_of(*models[0]), state_of(*models[3]));
  check_sums(state_of(*models[2]));
}

TEST_CASE("models do not depend on the number of shards") {
  Tried tried;
  const UpdateRule regret{UpdateRule::Kind::regret, 3, 1}, strict{UpdateRule::Kind::regret, 0.3, 1},
      rank{UpdateRule::Kind::rank, 0.2, 20};
  ModelOptions options;
  check_shards(options, regret, 1, tried);
  check_shards(options, rank, 2, tried);
  options.training.subsample = 0.7;
  options.max_bins = 1024;  // codes of two bytes
  options.loss = LossKind::squared;
  check_shards(options, strict, 3, tried);
  options.weighted = true;
  check_shards(options, regret, 4, tried);
  options.training.subsample = 1;
  options.loss = LossKind::softmax;
  options.n_classes = 3;
  check_shards(options, regret, 5, tried);
  options.many_columns = true;
  check_shards(options, regret, 6, tried);
  options.weighted = false;
  options.training.l2_regularization = 2;
  check_shards(options, never_regrow, 7, tried);
  options.histogram_memory = 50'000;
  check_shards(options, strict, 8, tried);
  // A small model would rather be refitted than regrown, so most nodes are tolerated here.
  const UpdateRule mild{UpdateRule::Kind::regret, 20, 1};
  for (std::uint64_t seed = 9; seed < 13; ++seed) check_shards(ModelOptions(), mild, seed, tried);
  CHECK(tried.in_place >= 10);
  CHECK(tried.regrown > 0);
  CHECK(tried.shifted > 0);
}

TEST_CASE("a shard that has lost all its rows takes rows again") {
  for (const int max_leaf_nodes : {20, 300}) {
    ModelOptions options;
    options.loss = LossKind::squared;
    options.training.min_samples_leaf = 1;
    options.training.max_leaf_nodes = max_leaf_nodes;
    options.training.n_estimators = 2;
    const TrainingRows rows = random_rows(options, 600, 9);
    const auto bins = bins_of(rows, options);
    const auto one = fit_model(rows, options, bins);
    options.n_shards = 7;
    const auto many = fit_model(rows, options, bins);
    CHECK_EQ(state_of(*one).nodes.tree(0).n_leaves(), max_leaf_nodes);
    std::vector<std::size_t> moved;
    const ModelState dealt = state_of(*many);
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (dealt.shards.shard_of(rows.ids()[r]) == 3) moved.push_back(r);
    const TrainingRows of_shard = rows.select(moved), none = rows.slice(0, 0);
    for (int times = 0; times < 2; ++times) {
      for (const auto& model : {one.get(), many.get()})
        change(*model, none, of_shard.ids(), never_regrow);
      CHECK_EQ(state_of(*many).shards[3].size(), 0);
      check_same(state_of(*one), state_of(*many));
      many->check_state(1);
      for (const auto& model : {one.get(), many.get()}) change(*model, of_shard, {}, never_regrow);
      check_same(state_of(*one), state_of(*many));
      many->check_state(1);
      many->refit(1);
      one->refit(1);
    }
  }
}

}  // namespace
}  // namespace graftboost
