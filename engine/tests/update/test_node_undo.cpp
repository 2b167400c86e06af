#include <cstdint>
#include <vector>

#include "model/state_check.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "update/node_undo.hpp"
#include "update/restore_histograms.hpp"

namespace graftboost {
namespace {

using testing::check_same;
using testing::fit_state;
using testing::is_same;
using testing::ModelOptions;
using testing::Random;
using testing::random_rows;
using testing::StartedUpdate;
using testing::various_models;

TEST_CASE("nodes that were booked are restored") {
  std::size_t n_changed = 0;
  for (const ModelOptions& options : various_models()) {
    // A single changed row touches few nodes; many touch all of them.
    for (const double share_removed : {0.0, 0.3}) {
      Random random(1);
      StartedUpdate update(options, 150, 1, share_removed, 1);
      ModelState& model = update.model;
      UpdateCounts counts;
      for (std::size_t t = 0; t < model.nodes.size(); ++t) {
        update.book_sums(t, random, counts);
        n_changed += !is_same(model.nodes.tree(t).nodes, update.before.nodes.tree(t).nodes);
      }
      update.undo.reset();
      for (RowShard& shard : model.shards) shard.undo();
      check_same(update.before, model);
      CHECK(!find_difference(model, 1));
      for (const TreeNodes& nodes : model.nodes) CHECK(!nodes.counted);
      // Histograms that were dropped are counted again when they are needed.
      restore_histograms(model, 1);
      check_same(update.before, model);
      CHECK(testing::check_sums(model) > 0);
    }
  }
  CHECK(n_changed > 20);
}

TEST_CASE("nodes that were replaced after they were booked are restored") {
  for (const ModelOptions& options : various_models()) {
    Random random(2);
    StartedUpdate update(options, 150, 3, 0.02, 2);
    ModelState& model = update.model;
    UpdateCounts counts;
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      update.book_sums(t, random, counts);
      if (t % 2 == 0) continue;
      update.undo->save_tree(t);
      TreeNodes& nodes = model.nodes[t];
      AnyTreeHistograms histograms = std::move(nodes.histograms);
      std::vector<GainBounds> bounds = std::move(nodes.bounds);
      Tree stump;
      stump.nodes.emplace_back().leaf = 0;
      stump.index_leaves();
      nodes.tree = stump;
      nodes.histograms = model.nodes.holds_packed_sums()
                             ? AnyTreeHistograms(TreeHistograms<PackedSums>(1))
                             : AnyTreeHistograms(TreeHistograms<WideSums>(1));
      nodes.bounds.resize(1);
      update.undo->keep_replaced(t, std::move(histograms), std::move(bounds));
    }
    update.undo.reset();
    for (RowShard& shard : model.shards) shard.undo();
    check_same(update.before, model);
    for (const TreeNodes& nodes : model.nodes) {
      CHECK_EQ(nodes.bounds.size(), nodes.tree.nodes.size());
      std::visit([&](const auto& all) { CHECK_EQ(all.size(), nodes.tree.nodes.size()); },
                 nodes.histograms);
    }
    restore_histograms(model, 1);
    CHECK(testing::check_sums(model) > 0);
  }
}

TEST_CASE("committed changes stay, and trees that were not saved keep their histograms") {
  ModelOptions options;
  const ModelState before = fit_state(random_rows(options, 150, 3), options);
  ModelState model = before;
  {
    NodeUndo undo(model);
    const NodeIndex leaf = model.nodes.tree(1).leaves[0];
    undo.save_paths(1, 1, [&](std::size_t) { return leaf; });
    model.nodes[1].tree[leaf].value = 5;
    model.base_scores[0] = 3;
    undo.commit();
  }
  CHECK_EQ(model.nodes.tree(1)[model.nodes.tree(1).leaves[0]].value, 5);
  CHECK_EQ(model.base_scores[0], 3);
  CHECK(model.nodes[1].counted);
  model = ModelState(before);
  {
    NodeUndo undo(model);
    const NodeIndex leaf = model.nodes.tree(1).leaves[0];
    undo.save_paths(1, 1, [&](std::size_t) { return leaf; });
    model.nodes[1].tree[leaf].value = 5;
    model.base_scores[0] = 3;
    ++model.target_sums.weight;
  }
  check_same(before, model);
  CHECK(model.nodes[0].counted);
  CHECK(!model.nodes[1].counted);
}

}  // namespace
}  // namespace graftboost
