#include <cstddef>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "update/fresh_gradients.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::Random;
using testing::random_rows;

// The gradients of a row by the scores that the trees before `first_tree` give it.
std::vector<Gradient> naive_gradients(const ModelState& model, std::size_t shard, Slot row,
                                      std::size_t first_tree) {
  std::vector<double> scores = model.base_scores;
  for (std::size_t t = 0; t < first_tree; ++t) {
    const Tree& tree = model.nodes.tree(t);
    const std::size_t leaf = model.shards[shard].trees[t].leaf_ids[row];
    scores[t % scores.size()] += tree[tree.leaves[leaf]].value;
  }
  return testing::naive_gradients(model, shard, row, first_tree, scores);
}

TEST_CASE("fresh gradients are those of the scores so far, for few rows and for many") {
  constexpr std::size_t n_rows = 150;
  for (const LossKind loss : {LossKind::logistic, LossKind::softmax, LossKind::squared}) {
    ModelOptions options;
    options.loss = loss;
    options.n_classes = loss == LossKind::softmax ? 3 : loss == LossKind::logistic ? 2 : 1;
    options.n_shards = 2;
    options.training.n_estimators = 6;
    const ModelState model = fit_state(random_rows(options, n_rows, 1), options);
    const auto k_trees = static_cast<std::size_t>(model.trees_per_iteration());
    for (const double share : {0.05, 0.3, 1.0}) {
      Random random(2);
      FreshGradients fresh(model, 2);
      const auto n_asked = static_cast<std::size_t>(share * n_rows);
      for (std::size_t first = 0; first < model.nodes.size(); first += k_trees) {
        const std::size_t n_iterations_left = (model.nodes.size() - first) / k_trees;
        fresh.begin_iteration(first, n_asked, n_asked * n_iterations_left);
        for (std::size_t t = first; t < first + k_trees; ++t) {
          for (std::size_t s = 0; s < model.shards.size(); ++s) {
            std::vector<Slot> slots;
            for (Slot row = 0; row < model.shards[s].size(); ++row)
              if (random.chance(share)) slots.push_back(row);
            const GradientArray found = fresh.of(t, s, slots);
            REQUIRE(found.size() == slots.size());
            for (std::size_t i = 0; i < slots.size(); ++i)
              CHECK_EQ(found[i], naive_gradients(model, s, slots[i], first)[t % k_trees]);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace graftboost
