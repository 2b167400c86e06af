#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "train/refit.hpp"

namespace graftboost {
namespace {

using testing::bins_of;
using testing::change;
using testing::check_same;
using testing::fit_model;
using testing::ModelOptions;
using testing::never_regrow;
using testing::random_rows;
using testing::state_of;
using testing::TrainingRows;

std::vector<ModelOptions> all_options() {
  ModelOptions plain, squared, sparse;
  plain.training.subsample = 0.7;
  squared.loss = LossKind::squared;
  squared.weighted = true;
  squared.n_shards = 3;
  sparse.many_columns = true;
  sparse.loss = LossKind::softmax;
  sparse.n_classes = 3;
  sparse.n_shards = 2;
  return {plain, squared, sparse};
}

TEST_CASE("a refit gives the model that a fit to the present rows gives") {
  for (const ModelOptions& options : all_options()) {
    const TrainingRows rows = random_rows(options, 240, 1);
    const auto bins = bins_of(rows.slice(0, 200), options);
    const auto model = fit_model(rows.slice(0, 200), options, bins);
    // Without changes, nothing changes.
    const ModelState fitted = state_of(*model);
    model->refit(2);
    check_same(fitted, state_of(*model));

    // Rows 20 to 239, of which the last 40 are new.
    const TrainingRows removed = rows.slice(0, 20);
    change(*model, rows.slice(200, 240), removed.ids(), never_regrow);
    model->refit(2);
    model->check_state(1);
    check_same(state_of(*fit_model(rows.slice(20, 240), options, bins)), state_of(*model));
  }
}

TEST_CASE("a refit that fails has changed nothing") {
  for (const ModelOptions& options : all_options()) {
    ModelState model = testing::fit_state(random_rows(options, 150, 2), options);
    const auto before = testing::contents_of(model);
    const auto fail = [](ModelState& next) {
      next.shards[0].rows.target[0] = 0;
      next.params.learning_rate = 7;
      throw std::runtime_error("as if memory ran out");
    };
    CHECK_THROWS_AS(refit(model, 1, fail), std::runtime_error);
    check_same(before, testing::contents_of(model));
    CHECK(model.params.learning_rate != 7);
    testing::check_sums(model);
  }
}

}  // namespace
}  // namespace graftboost
