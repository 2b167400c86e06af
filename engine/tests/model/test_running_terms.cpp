#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "model/running_terms.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::Random;
using testing::random_rows;

double naive_score(const ModelState& model, std::size_t shard, Slot row, std::size_t k,
                   std::size_t first_tree) {
  const auto k_trees = static_cast<std::size_t>(model.trees_per_iteration());
  double score = model.base_scores[k];
  for (std::size_t t = k; t < first_tree; t += k_trees) {
    const Tree& tree = model.nodes.tree(t);
    score += tree[tree.leaves[model.shards[shard].trees[t].leaf_ids[row]]].value;
  }
  return score;
}

double naive_term(const ModelState& model, std::size_t shard, Slot row, std::size_t k,
                  std::size_t first_tree) {
  const double score = naive_score(model, shard, row, k, first_tree);
  if (model.loss.kind == LossKind::squared) return score;
  return std::exp(model.loss.kind == LossKind::softmax ? score : -score);
}

bool is_near(double a, double b) { return std::abs(a - b) <= 0x1p-48 * std::abs(b); }

TEST_CASE(
    "gathered terms are those of the sums of leaf values, before and after they are carried") {
  for (const LossKind loss : {LossKind::logistic, LossKind::softmax, LossKind::squared}) {
    ModelOptions options;
    options.loss = loss;
    options.n_classes = loss == LossKind::softmax ? 3 : loss == LossKind::logistic ? 2 : 1;
    options.n_shards = 2;
    options.training.n_estimators = 8;
    const ModelState model = fit_state(random_rows(options, 120, 1), options);
    const auto k_trees = static_cast<std::size_t>(model.trees_per_iteration());
    for (const double share : {0.05, 1.0}) {
      Random random(1);
      RunningTerms terms(model, 2);
      std::size_t fewest = 1000;
      for (std::size_t first = 0; first < model.nodes.size(); first += k_trees) {
        if (random.chance(0.3)) continue;
        const double left = share * 120 * static_cast<double>(model.nodes.size() - first);
        terms.begin_iteration(first, static_cast<std::size_t>(left / 10));
        fewest = std::min(fewest, first == 0 ? 1000 : terms.n_looked_up(1));
        for (std::size_t s = 0; s < 2; ++s) {
          for (int times = 0; times < 3; ++times) {
            std::vector<Slot> slots;
            for (Slot row = 0; row < model.shards[s].size(); ++row)
              if (random.chance(share)) slots.push_back(row);
            const auto gathered = terms.gather(s, slots);
            REQUIRE(gathered.size() == k_trees);
            for (std::size_t k = 0; k < k_trees; ++k) {
              REQUIRE(gathered[k].size() == slots.size());
              for (std::size_t i = 0; i < slots.size(); ++i)
                CHECK(is_near(gathered[k][i], naive_term(model, s, slots[i], k, first)));
            }
          }
        }
      }
      // Scores of all rows are carried if enough rows are still to come; scores of few rows never.
      CHECK_EQ(fewest < k_trees, share == 1.0);
    }
  }
}

TEST_CASE("exact scores are the sums of leaf values") {
  ModelOptions options;
  options.loss = LossKind::softmax;
  options.n_classes = 3;
  options.n_shards = 2;
  options.training.n_estimators = 5;
  const ModelState model = fit_state(random_rows(options, 60, 1), options);
  for (std::size_t s = 0; s < 2; ++s) {
    const std::vector<Slot> slots = {4, 1};
    for (const std::size_t first : {0, 9}) {
      const ScoresFromLeaves of_rows(model, s, first), of_slots(model, s, first, slots);
      for (std::size_t i = 0; i < slots.size(); ++i) {
        std::vector<double> a(3), b(3);
        of_rows.of(slots[i], a.data());
        of_slots.of(i, b.data());
        for (std::size_t k = 0; k < 3; ++k)
          CHECK_EQ(a[k], naive_score(model, s, slots[i], k, first));
        CHECK(a == b);
      }
    }
  }
}

TEST_CASE("terms are scores where exponentials could leave their range or lack exact scores") {
  ModelOptions options;
  options.loss = LossKind::logistic;
  options.n_classes = 2;
  options.training.n_estimators = 3;
  ModelState model = fit_state(random_rows(options, 60, 1), options);
  CHECK(ScoreTerms(model, 100, true).are_products());
  CHECK(!ScoreTerms(model, 100, false).are_products());
  CHECK(!ScoreTerms(model, 100'000, true).are_products());
  model.params.learning_rate = 2;
  CHECK(!ScoreTerms(model, 100, true).are_products());
  CHECK_EQ(ScoreTerms(model, 100, true).of(1.5), 1.5);
}

TEST_CASE("terms of some rows pass a tree") {
  ModelOptions options;
  const ModelState model = fit_state(random_rows(options, 60, 1), options);
  const ScoreTerms terms(model, 1, true);
  LeafIds ids(6, 31);
  for (std::size_t r = 0; r < 6; ++r) ids.narrow[r] = static_cast<std::uint8_t>(r % 3);
  std::vector<double> of_rows(6, 3.0);
  terms.pass(ids, {0.5, 2, 4}, of_rows.data(), 1, 5);
  for (std::size_t r = 0; r < 6; ++r) {
    const double by = std::vector<double>{0.5, 2, 4}[r % 3];
    CHECK_EQ(of_rows[r], r == 0 || r == 5 ? 3.0 : terms.combine(3.0, by));
  }
}

}  // namespace
}  // namespace graftboost
