#include <cstdint>
#include <memory>
#include <vector>

#include "io/model_arrays.hpp"
#include "tests/check.hpp"
#include "tests/io/stored_model.hpp"
#include "tests/models.hpp"

namespace graftboost {
namespace {

using testing::all_options;
using testing::change;
using testing::check_round_trip;
using testing::check_same;
using testing::fit_model;
using testing::fit_state;
using testing::ModelOptions;
using testing::random_rows;
using testing::state_of;
using testing::Stored;
using testing::TrainingRows;

const UpdateRule rule{UpdateRule::Kind::regret, 3, 1};

TEST_CASE("a model comes back from its arrays as it was") {
  for (ModelOptions options : all_options()) {
    for (const std::size_t n_shards : {1, 3}) {
      options.n_shards = n_shards;
      check_round_trip(fit_state(random_rows(options, 200, 1), options));
    }
  }
}

TEST_CASE("a model that was changed comes back from its arrays as it was") {
  for (ModelOptions options : all_options()) {
    for (const std::size_t n_shards : {1, 3}) {
      options.n_shards = n_shards;
      const TrainingRows rows = random_rows(options, 240, 2);
      const auto model = fit_model(rows.slice(0, 220), options);
      for (std::size_t step = 0; step < 3; ++step) {
        const TrainingRows removed = rows.slice(10 * step, 10 * step + 10);
        change(*model, rows.slice(220 + 5 * step, 225 + 5 * step), removed.ids(), rule);
        check_round_trip(state_of(*model));
      }
      model->refresh(1);
      check_round_trip(state_of(*model));
    }
  }
}

TEST_CASE("a loaded model goes on like the one that was stored") {
  for (ModelOptions options : all_options()) {
    for (const std::size_t n_shards : {1, 3}) {
      options.n_shards = n_shards;
      const TrainingRows rows = random_rows(options, 230, 3);
      const auto model = fit_model(rows.slice(0, 200), options);
      for (const bool room : {false, true}) {
        const auto stored = std::make_shared<Stored>(state_of(*model), true, room);
        Model loaded(model_from(stored->summary, stored->given(), stored));
        loaded.require_verification({});
        const auto other = model->copy();
        for (std::size_t step = 0; step < 3; ++step) {
          const TrainingRows added = rows.slice(200 + 10 * step, 210 + 10 * step);
          const TrainingRows removed = rows.slice(3 * step, 3 * step + 3);
          change(loaded, added, removed.ids(), rule);
          change(*other, added, removed.ids(), rule);
          check_same(state_of(*other), state_of(loaded));
          loaded.check_state(1);
        }
      }
    }
  }
}

TEST_CASE("without its state a model comes back for predictions only") {
  ModelOptions options;
  const TrainingRows rows = random_rows(options, 200, 4);
  const auto model = fit_model(rows, options);
  Stored stored(state_of(*model), false, false);
  CHECK(!stored.arrays.contains("row_ids"));
  const Model loaded(stored.model());
  CHECK(!loaded.updatable());
  const auto table = rows.table.dense();
  CHECK(loaded.scores(table, 0, -1, 1).values == model->scores(table, 0, -1, 1).values);
}

}  // namespace
}  // namespace graftboost
