#include <atomic>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model/model.hpp"
#include "model/state_check.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"

namespace graftboost {
namespace {

using testing::change;
using testing::check_same;
using testing::Contents;
using testing::contents_of;
using testing::fit_model;
using testing::ModelOptions;
using testing::never_regrow;
using testing::random_rows;
using testing::state_of;
using testing::TrainingRows;

const UpdateRule rule{UpdateRule::Kind::regret, 3, 1};

TEST_CASE("predictions are those of the model before or after a change, never in between") {
  ModelOptions options;
  options.n_shards = 2;
  const TrainingRows rows = random_rows(options, 230, 1);
  const auto model = fit_model(rows.slice(0, 200), options);
  const auto table = rows.table.dense();
  const auto scores = [&] { return model->scores(table, 0, -1, 1).values; };
  // The two states between which the model goes to and fro, because no structure changes.
  const TrainingRows added = rows.slice(200, 230);
  const std::vector<double> without = scores();
  change(*model, added, {}, never_regrow);
  const std::vector<double> with = scores();
  REQUIRE(with != without);
  std::atomic<bool> is_done = false;
  std::atomic<int> n_wrong = 0, n_read = 0;
  const auto read = [&] {
    while (!is_done) {
      const auto now = scores();
      if (now != with && now != without) ++n_wrong;
      const std::size_t n = model->read([](const ModelState& state) { return state.n_rows(); });
      if (n != 200 && n != 230) ++n_wrong;
      ++n_read;
    }
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) readers.emplace_back(read);
  for (int i = 0; i < 10; ++i) {
    change(*model, rows.slice(0, 0), added.ids(), never_regrow);
    change(*model, added, {}, never_regrow);
  }
  while (n_read < 20) std::this_thread::yield();
  is_done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK_EQ(n_wrong.load(), 0);
  CHECK_EQ(model->n_changes(), 21);
  CHECK(scores() == with);
  model->check_state(1);
}

TEST_CASE("a file is verified once, before its state is first used") {
  ModelOptions options;
  const TrainingRows rows = random_rows(options, 120, 2);
  const auto model = fit_model(rows.slice(0, 110), options);
  std::atomic<int> n_verified = 0;
  model->require_verification([&] { ++n_verified; });
  // Predictions do not need the rows.
  model->scores(rows.table.dense(), 0, -1, 1);
  model->leaf_ids(rows.table.dense(), 1);
  CHECK_EQ(n_verified.load(), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { model->check_state(1); });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(n_verified.load(), 1);
  change(*model, rows.slice(110, 120), {}, never_regrow);
  model->copy();
  model->held_rows({});
  CHECK_EQ(n_verified.load(), 1);
}

TEST_CASE("a model whose verification fails is refused each time") {
  ModelOptions options;
  const TrainingRows rows = random_rows(options, 120, 3);
  const auto model = fit_model(rows.slice(0, 110), options);
  const Contents before = contents_of(state_of(*model));
  int n_verified = 0;
  model->require_verification([&] {
    ++n_verified;
    throw std::runtime_error("the file has changed");
  });
  const auto update = [&] { change(*model, rows.slice(110, 120), {}, rule); };
  CHECK_THROWS_AS(update(), std::runtime_error);
  CHECK_THROWS_AS(model->refit(1), std::runtime_error);
  CHECK_THROWS_AS(model->refresh(1), std::runtime_error);
  CHECK_THROWS_AS(model->copy(), std::runtime_error);
  CHECK_THROWS_AS(model->check_state(1), std::runtime_error);
  CHECK_THROWS_AS(model->tree_nodes(0), std::runtime_error);
  CHECK_THROWS_AS(model->held_rows({}), std::runtime_error);
  CHECK_EQ(n_verified, 7);
  CHECK_EQ(model->n_changes(), 0);
  check_same(before, contents_of(state_of(*model)));
}

TEST_CASE("state that is invalid is refused before it is used") {
  ModelOptions options;
  ModelState state = testing::fit_state(random_rows(options, 120, 4), options);
  state.shards[0].trees[1].leaf_ids.narrow[5] = 200;
  Model model(std::move(state));
  model.require_verification({});
  CHECK_THROWS_AS(model.refit(1), std::invalid_argument);
  CHECK_THROWS_AS(model.check_state(1), std::invalid_argument);
}

TEST_CASE("a request that is not valid changes nothing") {
  for (const bool weighted : {false, true}) {
    ModelOptions options;
    options.weighted = weighted;
    options.n_shards = 2;
    const TrainingRows rows = random_rows(options, 130, 5);
    const auto model = fit_model(rows.slice(0, 120), options);
    const Contents before = contents_of(state_of(*model));
    const TrainingRows none = rows.slice(0, 0), known = rows.slice(118, 125);
    const auto is_refused = [&](const TrainingRows& added, std::vector<RowId> removed,
                                const std::string& names) {
      try {
        change(*model, added, removed, rule);
      } catch (const std::invalid_argument& error) {
        const bool named = std::string(error.what()).find(names) != std::string::npos;
        if (!named) CHECK_EQ(std::string(error.what()), names);
        return true;
      }
      return false;
    };
    const RowId held = rows.ids()[3], other = rows.ids()[125];
    CHECK(is_refused(none, {other}, "row_ids"));       // not held
    CHECK(is_refused(none, {held, held}, "row_ids"));  // twice
    CHECK(is_refused(known, {}, ""));                  // some are held already
    CHECK(is_refused(known, {rows.ids()[118]}, ""));   // only one of them is removed
    TrainingRows invalid = rows.slice(120, 125);
    invalid.y[2] = 2;
    CHECK(is_refused(invalid, {}, "y"));  // no such class
    invalid.y[2] = 0.5;
    CHECK(is_refused(invalid, {}, "y"));
    invalid = rows.slice(120, 125);
    invalid.weight.assign(5, 1.0);
    invalid.weight[1] = -1;
    CHECK(is_refused(invalid, {held}, "weight"));
    invalid.weight[1] = std::numeric_limits<double>::quiet_NaN();
    CHECK(is_refused(invalid, {held}, "weight"));
    std::vector<RowId> all(rows.ids().begin(), rows.ids().begin() + 120);
    CHECK(is_refused(none, all, ""));  // nothing would be left
    check_same(before, contents_of(state_of(*model)));
    CHECK_EQ(model->n_changes(), 0);
    model->check_state(1);
  }
}

TEST_CASE("a copy is independent of its model") {
  ModelOptions options;
  const TrainingRows rows = random_rows(options, 130, 6);
  const auto model = fit_model(rows.slice(0, 120), options);
  const auto copy = model->copy();
  const Contents before = contents_of(state_of(*model));
  check_same(before, contents_of(state_of(*copy)));
  change(*copy, rows.slice(120, 130), std::vector<RowId>{rows.ids()[3]}, rule);
  check_same(before, contents_of(state_of(*model)));
  const Contents changed = contents_of(state_of(*copy));
  CHECK(changed.rows != before.rows);
  // The same change gives the same model.
  change(*model, rows.slice(120, 130), std::vector<RowId>{rows.ids()[3]}, rule);
  check_same(changed, contents_of(state_of(*model)));
  copy->check_state(1);
}

TEST_CASE("a model that is not updatable keeps no rows") {
  ModelOptions options;
  options.training.updatable = false;
  const TrainingRows rows = random_rows(options, 120, 7);
  const auto model = fit_model(rows, options);
  CHECK(!model->updatable());
  CHECK_EQ(state_of(*model).n_rows(), 0);
  CHECK_THROWS_AS(change(*model, rows.slice(0, 1), {}, rule), std::invalid_argument);
  CHECK_THROWS_AS(model->refit(1), std::invalid_argument);
  CHECK_THROWS_AS(model->refresh(1), std::invalid_argument);
  model->check_state(1);
  options.training.updatable = true;
  const auto updatable = fit_model(rows, options);
  const auto table = rows.table.dense();
  CHECK(model->scores(table, 0, -1, 1).values == updatable->scores(table, 0, -1, 1).values);
}

TEST_CASE("a refresh keeps the structure and gives every row its present gradient") {
  ModelOptions options;
  options.n_shards = 2;
  const TrainingRows rows = random_rows(options, 230, 8);
  const auto model = fit_model(rows.slice(0, 200), options);
  change(*model, rows.slice(200, 230), {}, never_regrow);
  const ModelState before = state_of(*model);
  model->refresh(2);
  model->check_state(1);
  const ModelState after = state_of(*model);
  std::vector<double> scores;
  for (std::size_t t = 0; t < after.nodes.size(); ++t) {
    const Tree &was = before.nodes.tree(t), &is = after.nodes.tree(t);
    REQUIRE(was.nodes.size() == is.nodes.size());
    for (std::size_t i = 0; i < is.nodes.size(); ++i) {
      CHECK_EQ(is.nodes[i].left, was.nodes[i].left);
      CHECK_EQ(is.nodes[i].right, was.nodes[i].right);
      if (!is.nodes[i].is_leaf()) CHECK(is.nodes[i].split == was.nodes[i].split);
    }
  }
  for (std::size_t s = 0; s < after.shards.size(); ++s) {
    const RowShard& shard = after.shards[s];
    for (Slot row = 0; row < shard.size(); ++row) {
      double score = after.base_scores[0];
      for (std::size_t t = 0; t < after.nodes.size(); ++t) {
        CHECK_EQ(shard.trees[t].recorded[row],
                 testing::naive_gradients(after, s, row, t, {&score, 1})[0]);
        score +=
            after.nodes.tree(t)[after.nodes.tree(t).leaves[shard.trees[t].leaf_ids[row]]].value;
      }
    }
  }
  // The next update counts the histograms again, and a refresh of an unchanged model does nothing.
  model->refresh(1);
  const ModelState again = state_of(*model);
  CHECK(contents_of(again).rows == contents_of(after).rows);
  change(*model, rows.slice(0, 0), std::vector<RowId>{rows.ids()[1]}, rule);
  model->check_state(1);
  CHECK(testing::check_sums(state_of(*model)) > 0);
}

TEST_CASE("the memory for histograms does not change a model") {
  ModelOptions options;
  options.training.n_estimators = 6;
  const TrainingRows rows = random_rows(options, 330, 9);
  const auto bins = testing::bins_of(rows, options);
  std::vector<std::unique_ptr<Model>> models;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{100'000}, std::numeric_limits<std::size_t>::max()}) {
    options.histogram_memory = bytes;
    models.push_back(fit_model(rows.slice(0, 300), options, bins));
  }
  for (int step = 0; step < 4; ++step) {
    const auto first = static_cast<std::size_t>(step);
    const std::vector<RowId> removed{rows.ids()[first], rows.ids()[50 + first]};
    for (const auto& model : models)
      change(*model, rows.slice(300 + 3 * first, 303 + 3 * first), removed, rule);
    for (const auto& model : models) check_same(state_of(*models[0]), state_of(*model));
  }
  models[1]->set_histogram_memory(0);
  CHECK_EQ(state_of(*models[1]).histogram_memory, 0);
}

}  // namespace
}  // namespace graftboost
