#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/state_check.hpp"
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
using testing::fit_model;
using testing::ModelOptions;
using testing::never_regrow;
using testing::random_rows;
using testing::state_of;
using testing::TrainingRows;
using testing::various_models;

const UpdateRule rule{UpdateRule::Kind::regret, 3, 1};

TEST_CASE("neither threads nor the order of rows change an update") {
  for (const ModelOptions& options : various_models()) {
    const TrainingRows rows = random_rows(options, 260, 1);
    const auto model = fit_model(rows.slice(0, 240), options);
    std::vector<std::size_t> added, removed;
    for (std::size_t r = 240; r < 246; ++r) added.push_back(r);
    for (std::size_t r = 30; r < 34; ++r) removed.push_back(r);
    for (const UpdateRule& by : {rule, testing::fidelity_rule(0.8)}) {
      const auto update = [&](int n_threads) {
        const auto copy = model->copy();
        const TrainingRows out = rows.select(removed);
        change(*copy, rows.select(added), out.ids(), by, n_threads);
        copy->check_state(1);
        return state_of(*copy);
      };
      const ModelState one = update(1);
      check_same(one, update(4));
      std::reverse(added.begin(), added.end());
      std::rotate(removed.begin(), removed.begin() + 2, removed.end());
      check_same(one, update(2));
    }
  }
}

void check_history(const UpdateRule& by) {
  // The same updates from a copy that was made half-way: nothing but the model matters, not what
  // the gain bounds or cached histograms have been through.
  for (const ModelOptions& options : various_models()) {
    const TrainingRows rows = random_rows(options, 300, 2);
    const auto model = fit_model(rows.slice(0, 240), options);
    std::unique_ptr<Model> other;
    for (std::size_t step = 0; step < 8; ++step) {
      if (step == 4) {
        // Without bounds and histograms: all of them are made again.
        ModelState state = state_of(*model);
        for (TreeNodes& nodes : state.nodes) nodes.drop_histograms();
        other = std::make_unique<Model>(std::move(state));
      }
      const TrainingRows added = rows.slice(240 + 4 * step, 244 + 4 * step);
      const TrainingRows removed = rows.slice(4 * step, 4 * step + 4);
      change(*model, added, removed.ids(), by);
      if (!other) continue;
      change(*other, added, removed.ids(), by);
      check_same(state_of(*model), state_of(*other));
    }
  }
}

TEST_CASE("updates do not depend on bounds and histograms of earlier ones") {
  check_history(rule);
  check_history(testing::fidelity_rule(0.5));
  check_history(testing::fidelity_rule(0.9, 0.01));
}

TEST_CASE("columns become frequent with added rows, and leave when no row has them") {
  for (const std::size_t n_shards : {1, 3}) {
    ModelOptions options;
    options.n_shards = n_shards;
    options.training.min_samples_leaf = 6;
    const TrainingRows rows = random_rows(options, 1000, 3);
    const TrainingRows fitted = rows.slice(0, 300);
    const auto bins = bins_of(fitted, options);
    const auto model = fit_model(fitted, options, bins);
    const ModelState before = state_of(*model);
    // A column that few rows of the model have.
    const auto n_with = [&](std::uint32_t column) {
      std::size_t n = 0;
      for (std::size_t r = 0; r < 300; ++r) n += rows.table.at(r, column) != 0;
      return n;
    };
    const auto is_rare = [&](std::uint32_t column) {
      return before.layout().number_of(column) == ColumnIndex::none;
    };
    std::uint32_t column = testing::MixedColumns::rare;
    while (column < testing::MixedColumns::n && !(is_rare(column) && n_with(column) > 0)) ++column;
    REQUIRE(column < testing::MixedColumns::n);
    std::vector<std::size_t> added;
    for (std::size_t r = 300; r < 1000 && added.size() < 8; ++r)
      if (rows.table.at(r, column) != 0) added.push_back(r);
    REQUIRE(added.size() == 8);

    for (const UpdateRule& by : {rule, never_regrow}) {
      const auto changed = fit_model(fitted, options, bins);
      change(*changed, rows.select(added), {}, by);
      const ModelState with = state_of(*changed);
      CHECK(with.layout().number_of(column) != ColumnIndex::none);
      for (const RowShard& shard : with.shards)
        CHECK_EQ(shard.rows.layout.histogram_size(), with.layout().histogram_size());
      CHECK(!find_difference(with, 1));
      testing::check_sums(with);

      // All rows that have it are removed.
      std::vector<RowId> ids;
      for (std::size_t r = 0; r < 300; ++r)
        if (rows.table.at(r, column) != 0) ids.push_back(rows.ids()[r]);
      for (const std::size_t r : added) ids.push_back(rows.ids()[r]);
      change(*changed, rows.slice(0, 0), ids, by);
      const ModelState without = state_of(*changed);
      bool is_split_by = false;
      for (const TreeNodes& nodes : without.nodes)
        for (const Node& node : nodes.tree.nodes)
          is_split_by |= !node.is_leaf() && node.split.feature == column;
      CHECK(is_split_by || without.layout().number_of(column) == ColumnIndex::none);
      CHECK(!find_difference(without, 1));
      testing::check_sums(without);
    }
  }
}

}  // namespace
}  // namespace graftboost
