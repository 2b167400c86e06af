#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "model/model.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "tests/update/surveys.hpp"
#include "update/update.hpp"

namespace graftboost {
namespace {

using testing::bins_of;
using testing::change;
using testing::check_same;
using testing::check_sums;
using testing::fidelity_rule;
using testing::fit_model;
using testing::ModelOptions;
using testing::random_rows;
using testing::state_of;
using testing::TrainingRows;
using testing::various_models;

const UpdateRule rule = fidelity_rule(0.8);

TEST_CASE("a survey of what is remembered changes neither the model nor updates after it") {
  for (const ModelOptions& options : various_models()) {
    for (const bool is_refreshed : {false, true}) {
      const TrainingRows rows = random_rows(options, 300, 1);
      const auto model = fit_model(rows.slice(0, 280), options);
      if (is_refreshed) model->refresh(1);
      const auto other = model->copy();
      const ModelState before = state_of(*model);
      for (std::size_t step = 0; step < 3; ++step) {
        const TrainingRows asked = rows.slice(40 * step, 40 * step + 10 * step + 1);
        const auto found = model->memory_of(asked.ids(), "row_ids", rule, 2);
        CHECK_EQ(found.memory.size(), asked.size());
        CHECK(found.work >= 0);
        check_same(before, state_of(*model));
        check_sums(state_of(*model));
      }
      // Histograms are not counted again because of a survey, unless they had to be before.
      const ModelState after = state_of(*model);
      for (std::size_t t = 0; t < before.nodes.size(); ++t) {
        CHECK_EQ(after.nodes[t].counted, before.nodes[t].counted);
        CHECK_EQ(after.nodes[t].order_slack, before.nodes[t].order_slack);
        if (is_refreshed) continue;
        std::visit(
            [&]<class Sums>(const TreeHistograms<Sums>& a) {
              const auto& b = std::get<TreeHistograms<Sums>>(before.nodes[t].histograms);
              REQUIRE(a.size() == b.size());
              for (std::size_t i = 0; i < a.size(); ++i) {
                CHECK_EQ(a[i].cached, b[i].cached);
                CHECK(a[i] == b[i]);
              }
            },
            after.nodes[t].histograms);
      }
      for (std::size_t step = 0; step < 3; ++step) {
        const TrainingRows added = rows.slice(280 + step, 281 + step);
        const TrainingRows removed = rows.slice(35 * step, 35 * step + 2);
        change(*model, added, removed.ids(), rule);
        change(*other, added, removed.ids(), rule);
        check_same(state_of(*model), state_of(*other));
        if (step == 0) model->memory_of(rows.slice(100, 103).ids(), "row_ids", rule, 1);
      }
    }
  }
}

TEST_CASE("rows are removed alike whether or not one has asked before what is remembered of them") {
  int n_in_place = 0;
  std::uint64_t seed = 10;
  for (ModelOptions options : various_models()) {
    for (const int min_samples_leaf : {5, 12}) {
      options.training.min_samples_leaf = min_samples_leaf;
      const TrainingRows rows = random_rows(options, 400, seed++);
      const auto model = fit_model(rows, options), other = model->copy();
      for (std::size_t step = 0; step < 8; ++step) {
        const TrainingRows removed = rows.slice(10 * step, 10 * step + 4), none = rows.slice(0, 0);
        model->memory_of(removed.ids(), "row_ids", rule, 2);
        const UpdateCounts a = change(*model, none, removed.ids(), rule);
        const UpdateCounts b = change(*other, none, removed.ids(), rule);
        check_same(state_of(*model), state_of(*other));
        CHECK_EQ(a.work.amount(), b.work.amount());
        CHECK_EQ(a.fidelity.left, b.fidelity.left);
        n_in_place += !a.refitted;
      }
      check_sums(state_of(*model));
    }
  }
  CHECK(n_in_place > 10);
}

TEST_CASE("what is remembered of a row depends neither on shards, threads nor the order of ids") {
  int n_remembered = 0;
  for (ModelOptions options : various_models()) {
    const TrainingRows rows = random_rows(options, 300, 2);
    const auto bins = bins_of(rows, options);
    std::vector<RowId> ids;
    for (std::size_t r = 10; r < 30; ++r) ids.push_back(rows.ids()[r]);
    std::map<RowId, double> first;
    double work = 0;
    for (const std::size_t n_shards : {1, 2, 3}) {
      options.n_shards = n_shards;
      const auto model = fit_model(rows, options, bins);
      for (const int n_threads : {1, 2}) {
        const auto found = model->memory_of(ids, "row_ids", rule, n_threads);
        std::map<RowId, double> by_id;
        for (std::size_t i = 0; i < ids.size(); ++i) by_id[ids[i]] = found.memory[i];
        if (first.empty()) {
          first = by_id;
          work = found.work;
        }
        CHECK(by_id == first);
        CHECK_EQ(found.work, work);
        std::rotate(ids.begin(), ids.begin() + 7, ids.end());
      }
    }
    for (const auto& [id, memory] : first) n_remembered += memory > 0;
  }
  CHECK(n_remembered > 20);
}

TEST_CASE("an update counts the rows that a survey finds to be remembered") {
  ModelOptions options;
  options.n_shards = 2;
  options.training.n_estimators = 10;
  int n_in_place = 0;
  for (const double floor : {0.0, 0.01}) {
    const UpdateRule by = fidelity_rule(0.5, floor);
    const TrainingRows rows = random_rows(options, 1200, 3);
    const auto model = fit_model(rows, options);
    const TrainingRows removed = rows.slice(20, 22);
    const auto survey = model->memory_of(removed.ids(), "row_ids", by, 1);
    std::int64_t n_remembered = 0;
    for (const double memory : survey.memory) n_remembered += memory > 0 && memory >= floor;
    const UpdateCounts counts = change(*model, rows.slice(0, 0), removed.ids(), by);
    if (counts.refitted) continue;
    ++n_in_place;
    CHECK_EQ(counts.fidelity.rows_remembered, n_remembered);
  }
  CHECK(n_in_place > 0);
}

}  // namespace
}  // namespace graftboost
