#include <cstdint>
#include <numeric>
#include <vector>

#include "model/running_scores.hpp"
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

TEST_CASE("gathered scores are the sums of leaf values, before and after they are carried") {
  for (const LossKind loss : {LossKind::logistic, LossKind::softmax}) {
    ModelOptions options;
    options.loss = loss;
    options.n_classes = loss == LossKind::softmax ? 3 : 2;
    options.n_shards = 2;
    options.training.n_estimators = 8;
    const ModelState model = fit_state(random_rows(options, 120, 1), options);
    const auto k_trees = static_cast<std::size_t>(model.trees_per_iteration());
    for (const double share : {0.05, 1.0}) {
      Random random(1);
      RunningScores scores(model, 2);
      std::size_t fewest = 1000;
      for (std::size_t first = 0; first < model.nodes.size(); first += k_trees) {
        if (random.chance(0.3)) continue;
        const double left = share * 120 * static_cast<double>(model.nodes.size() - first);
        scores.begin_iteration(first, static_cast<std::size_t>(left / 10));
        fewest = std::min(fewest, first == 0 ? 1000 : scores.n_looked_up(1));
        for (std::size_t s = 0; s < 2; ++s) {
          for (int times = 0; times < 3; ++times) {
            std::vector<Slot> slots;
            for (Slot row = 0; row < model.shards[s].size(); ++row)
              if (random.chance(share)) slots.push_back(row);
            const auto gathered = scores.gather(s, slots);
            REQUIRE(gathered.size() == k_trees);
            for (std::size_t k = 0; k < k_trees; ++k) {
              REQUIRE(gathered[k].size() == slots.size());
              for (std::size_t i = 0; i < slots.size(); ++i)
                CHECK_EQ(gathered[k][i], naive_score(model, s, slots[i], k, first));
            }
          }
        }
      }
      // Scores of all rows are carried if enough rows are still to come; scores of few rows never.
      CHECK_EQ(fewest < k_trees, share == 1.0);
    }
  }
}

TEST_CASE("the values of one tree's leaves are added to the scores of some rows") {
  LeafIds ids(6, 31);
  for (std::size_t r = 0; r < 6; ++r) ids.narrow[r] = static_cast<std::uint8_t>(r % 3);
  std::vector<double> scores(6, 1.0);
  add_leaf_values(ids, {0.5, 2, 4}, scores.data(), 1, 5);
  CHECK(scores == (std::vector<double>{1, 3, 5, 1.5, 3, 1}));
}

}  // namespace
}  // namespace graftboost
