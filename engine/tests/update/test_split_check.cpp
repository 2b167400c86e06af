#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/naive_candidates.hpp"
#include "tests/update/started_update.hpp"
#include "tests/update/surveys.hpp"
#include "update/update.hpp"

namespace graftboost {
namespace {

using testing::change;
using testing::fit_model;
using testing::ModelOptions;
using testing::naive_best;
using testing::naive_candidates;
using testing::naive_code;
using testing::naive_histogram;
using testing::Random;
using testing::random_rows;
using testing::state_of;
using testing::TrainingRows;
using testing::various_models;

struct NaiveSplit {
  double gain = no_gain;
  std::uint32_t column = 0;
};

// The best candidate of a node's present rows.
NaiveSplit best_split(const ModelState& model, std::size_t t, NodeIndex node) {
  NaiveSplit best;
  const std::vector<Totals> histogram = naive_histogram(model, t, node);
  for (std::size_t f = 0; f < model.layout().size(); ++f) {
    const FeatureLayout& feature = model.layout()[f];
    const auto begin = histogram.begin() + feature.offset;
    const std::vector<Totals> cells(begin, begin + feature.n_codes);
    const auto found = naive_best(
        naive_candidates(model.gain_params(), model.nodes.tree(t)[node].sums, feature, cells));
    if (!found) continue;
    if (found->gain > best.gain || (found->gain == best.gain && feature.column < best.column))
      best = {found->gain, feature.column};
  }
  return best;
}

// Checks that leaves have the gains of their best candidates, and splits their own.
void check_gains(const ModelState& model) {
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    const Tree& tree = model.nodes.tree(t);
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const Node& node = tree.nodes[i];
      if (!node.is_leaf()) {
        CHECK_EQ(node.gain, model.gain_of_split(model.gain_params(), tree, node));
        continue;
      }
      const NaiveSplit best = best_split(model, t, static_cast<NodeIndex>(i));
      CHECK_EQ(node.gain, best.gain);
      if (best.gain != no_gain) CHECK_EQ(node.split.feature, best.column);
    }
  }
}

// The nodes that a row of a table passes.
std::vector<NodeIndex> path_of(const ModelState& model, std::size_t t, const TrainingRows& rows,
                               std::size_t r) {
  const Tree& tree = model.nodes.tree(t);
  NodeIndex at = tree.route(
      [&](std::uint32_t c) { return naive_code((*model.bins)[c], rows.table.at(r, c)); });
  std::vector<NodeIndex> path;
  for (; at != no_node; at = tree[at].parent) path.push_back(at);
  return path;
}

struct Tried {
  int in_place = 0;
  std::int64_t regrown = 0, shifted = 0;
};

// Adds and removes rows a few at a time, and calls check(model, changed rows) after each update in
// place.
template <class Check>
void update_often(ModelOptions options, const UpdateRule& rule, std::uint64_t seed, Tried& tried,
                  Check&& check) {
  constexpr std::size_t n_fitted = 160, n_all = 200;
  Random random(seed);
  options.histogram_memory = random.chance(0.5) ? 60'000 : std::numeric_limits<std::size_t>::max();
  const TrainingRows rows = random_rows(options, n_all, seed);
  const auto model = fit_model(rows.slice(0, n_fitted), options);
  std::vector<std::size_t> held, others;
  for (std::size_t r = 0; r < n_all; ++r) (r < n_fitted ? held : others).push_back(r);
  for (int step = 0; step < 4; ++step) {
    std::vector<std::size_t> removed, added, changed;
    std::vector<RowId> ids;
    for (std::size_t n = random.below(3); n > 0; --n) {
      const std::size_t i = random.below(held.size());
      removed.push_back(held[i]);
      ids.push_back(rows.ids()[held[i]]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (std::size_t n = random.below(3) + (ids.empty() ? 1 : 0); n > 0; --n) {
      const std::size_t i = random.below(others.size());
      added.push_back(others[i]);
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const UpdateCounts counts = change(*model, rows.select(added), ids, rule);
    held.insert(held.end(), added.begin(), added.end());
    others.insert(others.end(), removed.begin(), removed.end());
    if (counts.refitted) continue;
    ++tried.in_place;
    tried.regrown += counts.nodes_regrown;
    tried.shifted += counts.nodes_shifted;
    changed = added;
    changed.insert(changed.end(), removed.begin(), removed.end());
    check(state_of(*model), rows.select(changed));
  }
}

TEST_CASE("after updates every node has the gain of its present rows") {
  const UpdateRule rules[] = {
      {UpdateRule::Kind::regret, 2, 1},
      {UpdateRule::Kind::regret, 20, 1},
      {UpdateRule::Kind::rank, 0.3, 15},
      testing::fidelity_rule(0.5),
      testing::fidelity_rule(0.95),
      {UpdateRule::Kind::regret, std::numeric_limits<double>::infinity(), 1}};
  Tried tried;
  std::uint64_t seed = 1;
  for (const ModelOptions& options : various_models()) {
    for (const UpdateRule& rule : rules) {
      update_often(options, rule, seed++, tried, [](const ModelState& model, const TrainingRows&) {
        check_gains(model);
        testing::check_sums(model);
      });
    }
  }
  CHECK(tried.in_place > 25);
  CHECK(tried.regrown > 5);
  CHECK(tried.shifted > 0);
}

TEST_CASE("a split that growth undid is a leaf with its own best candidate") {
  // Splits pass although better ones have come up, but the growth order is followed strictly.
  const UpdateRule rule{UpdateRule::Kind::rank, 0, 1000};
  Tried tried;
  for (ModelOptions options : various_models()) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      update_often(options, rule, 80 + seed, tried,
                   [](const ModelState& model, const TrainingRows&) { check_gains(model); });
    }
  }
  CHECK(tried.in_place > 25);
  CHECK(tried.regrown > 20);
}

// Regrowing a node changes the sums of those above, which are not checked again.
TEST_CASE(
    "without tolerance, if nothing is regrown, nodes that rows changed in have their best split") {
  Tried tried;
  std::int64_t n_regrown = 0;
  std::size_t n_nodes = 0;
  const UpdateRule strict{UpdateRule::Kind::regret, 0, 1};
  for (ModelOptions options : various_models()) {
    options.training.n_estimators = 3;
    options.training.max_leaf_nodes = 4;
    for (std::uint64_t seed = 0; seed < 16; ++seed) {
      update_often(options, strict, 30 + seed, tried,
                   [&](const ModelState& model, const TrainingRows& changed) {
                     if (std::exchange(n_regrown, tried.regrown) != tried.regrown) return;
                     for (std::size_t t = 0; t < model.nodes.size(); ++t) {
                       std::set<NodeIndex> touched;
                       for (std::size_t r = 0; r < changed.size(); ++r) {
                         if (!model.params.in_subsample(t, changed.ids()[r])) continue;
                         for (const NodeIndex node : path_of(model, t, changed, r))
                           touched.insert(node);
                       }
                       for (const NodeIndex node : touched) {
                         CHECK_EQ(model.nodes.tree(t)[node].gain, best_split(model, t, node).gain);
                         n_nodes += !model.nodes.tree(t)[node].is_leaf();
                       }
                     }
                   });
    }
  }
  CHECK(tried.in_place > 5);
  CHECK(n_nodes > 50);
}

TEST_CASE(
    "under the rank rule, nodes that rows changed in are split by one of the best candidates") {
  Tried tried;
  const UpdateRule rank{UpdateRule::Kind::rank, 0.3, 12};
  for (ModelOptions options : various_models()) {
    options.training.n_estimators = 3;
    update_often(
        options, rank, 50, tried, [&](const ModelState& model, const TrainingRows& changed) {
          for (std::size_t t = 0; t < model.nodes.size(); ++t) {
            for (std::size_t r = 0; r < changed.size(); ++r) {
              if (!model.params.in_subsample(t, changed.ids()[r])) continue;
              for (const NodeIndex node : path_of(model, t, changed, r)) {
                const Node& it = model.nodes.tree(t)[node];
                if (it.is_leaf()) continue;
                const std::vector<Totals> histogram = naive_histogram(model, t, node);
                std::int64_t n_better = 0;
                for (std::size_t f = 0; f < model.layout().size(); ++f) {
                  const FeatureLayout& feature = model.layout()[f];
                  const auto begin = histogram.begin() + feature.offset;
                  for (const auto& candidate : naive_candidates(
                           model.gain_params(), it.sums, feature, {begin, begin + feature.n_codes}))
                    n_better += candidate.gain > it.gain;
                }
                CHECK(n_better < rank.n_top);
              }
            }
          }
        });
  }
  CHECK(tried.in_place > 5);
}

}  // namespace
}  // namespace graftboost
