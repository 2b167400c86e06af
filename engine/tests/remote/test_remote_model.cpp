#include <cstdint>
#include <vector>

#include "model/model.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/random_changes.hpp"
#include "tests/remote/shards_in_process.hpp"

namespace graftboost {
namespace {

using testing::bins_of;
using testing::change;
using testing::check_same;
using testing::check_same_counts;
using testing::contents_of;
using testing::fit_model;
using testing::fit_remote;
using testing::ModelOptions;
using testing::never_regrow;
using testing::random_rows;
using testing::RandomChanges;
using testing::ShardsInProcess;
using testing::state_of;
using testing::TrainingRows;
using testing::Tried;

// Fits a model here and one to rows behind messages, and changes both alike.
void check_remote(const ModelOptions& options, const UpdateRule& rule, std::size_t n_shards,
                  std::uint64_t seed, Tried& tried) {
  RandomChanges changes(options, seed);
  const TrainingRows fitted = changes.fitted();
  const auto bins = bins_of(fitted, options);
  ShardsInProcess shards(fitted, options, bins, n_shards);
  const auto local = fit_model(fitted, options, bins);
  const auto remote = fit_remote(shards, options, bins);
  const auto compare = [&] {
    check_same(contents_of(state_of(*local)), contents_of(*remote, shards));
    remote->check_state(1);
  };
  compare();
  for (int step = 0; step < 6; ++step) {
    if (changes.random.chance(0.2)) {
      local->refresh(1);
      remote->refresh(1);
      compare();
    }
    if (changes.random.chance(0.1)) {
      local->refit(1);
      remote->refit(1);
      compare();
    }
    const RandomChanges::Change next = changes.next();
    if (next.empty()) continue;
    const UpdateCounts here = change(*local, next.added, next.removed, rule);
    check_same_counts(here, change(*remote, next.added, next.removed, rule));
    compare();
    if (rule.defers && changes.random.chance(0.5)) {
      UpdateRule regrows = rule;
      regrows.defers = false;
      check_same_counts(local->regrow(regrows, 1, 1), remote->regrow(regrows, 1, 1));
      compare();
    }
    tried.note(here);
  }
}

TEST_CASE("a model whose rows other processes hold is the same, bit for bit") {
  Tried tried;
  const UpdateRule regret{UpdateRule::Kind::regret, 3, 1}, strict{UpdateRule::Kind::regret, 0.3, 1},
      rank{UpdateRule::Kind::rank, 0.2, 20}, mild{UpdateRule::Kind::regret, 20, 1},
      fidelity{UpdateRule::Kind::fidelity, 0, 1, 0.8, 0.01};
  UpdateRule defers = fidelity;
  defers.defers = true;
  std::uint64_t seed = 1;
  for (const std::size_t n_shards : {1, 2, 5}) {
    for (const UpdateRule& rule : {regret, strict, rank, mild, fidelity, defers, never_regrow}) {
      for (int variant = 0; variant < 6; ++variant) {
        ModelOptions options;
        options.weighted = variant == 1 || variant == 4;
        options.many_columns = variant == 2;
        if (variant == 3 || variant == 4) options.loss = LossKind::squared;
        if (variant == 5) options.loss = LossKind::softmax, options.n_classes = 3;
        if (variant == 4 || variant == 5) options.training.subsample = 0.7;
        if (variant == 3) options.histogram_memory = 20'000;
        check_remote(options, rule, n_shards, seed++, tried);
      }
    }
  }
  CHECK(tried.in_place >= 50);
  CHECK(tried.refitted >= 10);
  CHECK(tried.regrown > 50);
  CHECK(tried.shifted > 10);
}

// Nodes of one depth are counted together: a tree takes no more rounds than it is deep.
TEST_CASE("a tree takes as many rounds of messages as it is deep") {
  for (const int max_leaf_nodes : {4, 31}) {
    ModelOptions options;
    options.training.max_leaf_nodes = max_leaf_nodes;
    options.training.min_samples_leaf = 2;
    const TrainingRows rows = random_rows(options, 2000, 1);
    const auto bins = bins_of(rows, options);
    ShardsInProcess shards(rows, options, bins, 2);
    const auto model = fit_remote(shards, options, bins);
    std::size_t n_rounds = 0;
    for (const TreeNodes& nodes : state_of(*model).nodes) {
      std::size_t deepest = 0;
      for (NodeIndex leaf : nodes.tree.leaves) {
        std::size_t depth = 0;
        for (; leaf != no_node; leaf = nodes.tree[leaf].parent) ++depth;
        deepest = std::max(deepest, depth);
      }
      n_rounds += deepest + 1;
    }
    constexpr std::size_t before_and_after = 10;
    CHECK(shards.n_messages <= n_rounds + before_and_after);
  }
}

// A round that fails, at any shard, leaves the model and all shards as they were.
TEST_CASE("an operation during which a shard is lost changes nothing") {
  int n_failed = 0;
  for (std::size_t failing = 0; failing < 60; failing += 1 + failing / 8) {
    ModelOptions options;
    if (failing % 2 == 1) options.loss = LossKind::softmax, options.n_classes = 3;
    const TrainingRows rows = random_rows(options, 300, failing);
    const TrainingRows fitted = rows.slice(0, 260);
    const auto bins = bins_of(fitted, options);
    ShardsInProcess shards(fitted, options, bins, 3);
    const auto model = fit_remote(shards, options, bins);
    const auto before = contents_of(*model, shards);
    shards.failing_message = shards.n_messages + failing;
    shards.failing_shard = failing % 3;
    const std::vector<RowId> ids(fitted.ids().begin(), fitted.ids().begin() + 2);
    const UpdateRule strict{UpdateRule::Kind::regret, 0.3, 1};
    TrainingRows added = rows.slice(260, 263);
    // The first weights let all trees be grown again, with histograms of another kind.
    if (failing % 4 == 1) added.weight = {2, 1, 1};
    bool failed = false;
    try {
      failing % 3 == 0 ? model->refit(1) : static_cast<void>(change(*model, added, ids, strict));
    } catch (const std::runtime_error&) {
      failed = true;
    }
    if (!failed) continue;
    ++n_failed;
    check_same(before, contents_of(*model, shards));
    model->check_state(1);
    change(*model, rows.slice(260, 263), ids, strict);
    model->check_state(1);
  }
  CHECK(n_failed >= 10);
}

}  // namespace
}  // namespace graftboost
