#include <cstdint>
#include <limits>
#include <memory>
#include <string>
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
using testing::Corruption;
using testing::element;
using testing::fit_model;
using testing::is_refused;
using testing::ModelOptions;
using testing::random_rows;
using testing::state_of;
using testing::Stored;
using testing::TrainingRows;

UpdateRule deferring_rule() {
  UpdateRule deferring;
  deferring.kind = UpdateRule::Kind::fidelity;
  deferring.fidelity = 0.9;
  deferring.defers = true;
  return deferring;
}

// A model whose updates only booked rows.
std::unique_ptr<Model> fit_and_defer(const ModelOptions& options, std::uint64_t seed) {
  const TrainingRows rows = random_rows(options, 230, seed);
  auto model = fit_model(rows.slice(0, 220), options);
  for (std::size_t step = 0; step < 2; ++step) {
    const TrainingRows removed = rows.slice(10 * step, 10 * step + 8);
    change(*model, rows.slice(220 + 5 * step, 225 + 5 * step), removed.ids(), deferring_rule());
  }
  return model;
}

TEST_CASE("deferred rows come back, and are regrown for alike") {
  for (ModelOptions options : all_options()) {
    for (const std::size_t n_shards : {1, 3}) {
      options.n_shards = n_shards;
      const auto model = fit_and_defer(options, 7);
      const ModelState state = state_of(*model);
      CHECK_EQ(state.deferred.n_removed, 16);
      CHECK_EQ(state.deferred.n_added, 10);
      CHECK(state.deferred.achieved != 0);
      CHECK(!state.nodes.tree(0)[0].deferred.empty());
      check_round_trip(state);
      const auto stored = std::make_shared<Stored>(state, true, true);
      Model loaded(model_from(stored->summary, stored->given(), stored));
      loaded.require_verification({});
      UpdateRule regrowing = deferring_rule();
      regrowing.defers = false;
      for (const double most_work : {0.05, 0.9}) {
        model->regrow(regrowing, most_work, 2);
        loaded.regrow(regrowing, most_work, 1);
        check_same(state_of(*model), state_of(loaded));
        check_round_trip(state_of(*model));
      }
    }
  }
}

TEST_CASE("without deferred rows no array mentions them") {
  ModelOptions options;
  const auto model = fit_and_defer(options, 8);
  CHECK(Stored(state_of(*model), true, false).arrays.contains("node_deferred"));
  // For predictions they do not matter.
  CHECK(!Stored(state_of(*model), false, false).arrays.contains("deferred_rows"));
  model->refit(1);
  const Stored refitted(state_of(*model), true, false);
  CHECK(!refitted.arrays.contains("deferred_rows"));
  CHECK(!refitted.arrays.contains("node_deferred"));
}

TEST_CASE("deferred rows that no updates can have left are refused") {
  ModelOptions options;
  options.training.subsample = 0.7;
  const ModelState model = state_of(*fit_and_defer(options, 9));
  const Stored sound(model, true, false);
  CHECK(!is_refused(sound));
  for (const std::string name : {"deferred_rows", "node_deferred"}) {
    for (const int more : {-1, 1}) {
      Stored corrupted = sound;
      corrupted.arrays.at(name).size += static_cast<std::size_t>(more);
      CHECK(is_refused(corrupted));
    }
    Stored corrupted = sound;
    corrupted.arrays.at(name).number = Number::f64;
    CHECK(is_refused(corrupted));
  }
  for (const std::string name : {"deferred_rows", "node_deferred"}) {
    Stored without = sound;
    without.arrays.erase(name);
    CHECK(is_refused(without));
  }

  // A node of the first tree that has rows, and a child that has some, too.
  const std::vector<Node>& nodes = model.nodes.tree(0).nodes;
  std::size_t inner = 1;
  while (nodes[inner].is_leaf() || nodes[inner].deferred.empty()) ++inner;
  REQUIRE(inner < nodes.size());
  const auto child = static_cast<std::size_t>(
      nodes[static_cast<std::size_t>(nodes[inner].left)].deferred.empty() ? nodes[inner].right
                                                                          : nodes[inner].left);
  REQUIRE(!nodes[child].deferred.empty());
  const auto clear = [](Stored& stored, std::size_t node) {
    for (std::size_t i = 0; i < 3; ++i)
      stored.array<std::int64_t>("node_deferred")[3 * node + i] = 0;
  };
  constexpr std::int64_t most = DeferredSums::most;
  std::vector<Corruption> corruptions{
      {"a node follows one without rows", [=](Stored& s) { clear(s, inner); }},
      {"the root has no rows", [=](Stored& s) { clear(s, 0); }},
      {"all rows are 0",
       [](Stored& s) {
         for (std::size_t i = 0; i < 4; ++i) s.array<std::int64_t>("deferred_rows")[i] = 0;
       }},
      {"no rows, but losses",
       [](Stored& s) {
         for (std::size_t i = 0; i < 2; ++i) s.array<std::int64_t>("deferred_rows")[i] = 0;
       }},
      element<std::int64_t>("deferred_rows", 0, -1),
      element<std::int64_t>("deferred_rows", 1, -1),
      element<std::int64_t>("deferred_rows", 0, largest_sum),
      element<std::int64_t>("deferred_rows", 1, std::numeric_limits<std::int64_t>::max()),
      element<std::int64_t>("deferred_rows", 2, largest_sum),
      element<std::int64_t>("deferred_rows", 2, -largest_sum),
      element<std::int64_t>("deferred_rows", 3, largest_sum),
      element<std::int64_t>("deferred_rows", 3, std::numeric_limits<std::int64_t>::min()),
      // Sums without rows.
      element<std::int64_t>("node_deferred", 3 * child, 0),
  };
  for (std::size_t i = 0; i < 3; ++i) {
    corruptions.push_back(element<std::int64_t>("node_deferred", 3 * child + i, -1));
    corruptions.push_back(element<std::int64_t>("node_deferred", 3 * child + i, most + 1));
    corruptions.push_back(element<std::int64_t>("node_deferred", i, most + 1));
  }
  for (const Corruption& corruption : corruptions) {
    Stored corrupted = sound;
    corruption.apply(corrupted);
    if (!is_refused(corrupted)) CHECK_EQ(std::string(corruption.name), std::string("refused"));
  }
  // The largest sums are read.
  for (std::size_t i = 0; i < 3; ++i) {
    Stored largest = sound;
    element<std::int64_t>("node_deferred", i, most).apply(largest);
    CHECK(!is_refused(largest));
  }
}

}  // namespace
}  // namespace graftboost
