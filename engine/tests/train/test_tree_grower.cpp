#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/naive_candidates.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::naive_best;
using testing::naive_candidates;
using testing::NaiveCandidate;
using testing::random_rows;
using testing::recorded;

// Grows a tree best first from what the rows of a model recorded in it, by definition.
class NaiveGrower {
 public:
  struct RowRef {
    std::size_t shard;
    Slot slot;
  };
  struct GrownNode {
    Node node;
    std::vector<RowRef> rows;
    std::optional<NaiveCandidate> best;
  };

  NaiveGrower(const ModelState& model, std::size_t t)
      : model_(model), t_(t), params_(model.gain_params()) {
    GrownNode& root = nodes.emplace_back();
    for (std::size_t s = 0; s < model.shards.size(); ++s) {
      for (Slot row = 0; row < model.shards[s].size(); ++row)
        if (model.params.in_subsample(t, model.shards[s].rows.ids[row]))
          root.rows.push_back({s, row});
    }
    root.node.leaf = 0;
    evaluate(root);
    while (static_cast<int>(nodes.size() + 1) / 2 < model.params.max_leaf_nodes) {
      std::size_t next = nodes.size();
      double best = model.loss.least_gain();
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i].node.is_leaf() || !(nodes[i].node.gain > best)) continue;
        best = nodes[i].node.gain;
        next = i;
      }
      if (next == nodes.size()) break;
      split(next);
    }
  }

  std::vector<GrownNode> nodes;

 private:
  void evaluate(GrownNode& grown) {
    Totals& sums = grown.node.sums;
    for (const RowRef& row : grown.rows) sums += recorded(model_, t_, row.shard, row.slot);
    grown.node.gain = no_gain;
    for (std::uint32_t f = 0; f < model_.layout().size(); ++f) {
      const FeatureLayout& feature = model_.layout()[f];
      std::vector<Totals> cells(feature.n_codes);
      for (const RowRef& row : grown.rows)
        cells[model_.shards[row.shard].rows.code(row.slot, feature.column)] +=
            recorded(model_, t_, row.shard, row.slot);
      const auto best = naive_best(naive_candidates(params_, sums, feature, cells));
      if (!best) continue;
      const std::uint32_t column = feature.column;
      if (best->gain > grown.node.gain ||
          (best->gain == grown.node.gain && column < grown.node.split.feature)) {
        grown.node.gain = best->gain;
        grown.node.split.feature = column;
        grown.best = best;
        // Rows of weight 0 do not count. Missing ones go with the larger child if there are no
        // others.
        if (cells[missing_code].n == 0 && !feature.categorical)
          grown.best->goes_left[missing_code] = 2 * best->left.n >= sums.n;
      }
    }
  }

  void split(std::size_t parent) {
    const auto left = static_cast<NodeIndex>(nodes.size());
    nodes[parent].node.left = left;
    nodes[parent].node.right = left + 1;
    GrownNode children[2];
    const std::uint32_t column = nodes[parent].node.split.feature;
    for (const RowRef& row : nodes[parent].rows) {
      const Code code = model_.shards[row.shard].rows.code(row.slot, column);
      children[nodes[parent].best->goes_left[code] ? 0 : 1].rows.push_back(row);
    }
    children[0].node.leaf = nodes[parent].node.leaf;
    children[1].node.leaf = static_cast<std::int32_t>((nodes.size() + 1) / 2);
    nodes[parent].node.leaf = -1;
    for (GrownNode& child : children) {
      child.node.parent = static_cast<NodeIndex>(parent);
      evaluate(child);
      nodes.push_back(std::move(child));
    }
  }

  const ModelState& model_;
  std::size_t t_;
  GainParams params_;
};

// Which histograms are cached: the root's, and of two siblings that are not both too small the
// smaller one's.
bool is_cached(const ModelState& model, const Tree& tree, NodeIndex i) {
  if (i == 0) return true;
  const NodeIndex sibling = tree.sibling(i);
  const GainParams params = model.gain_params();
  if (!params.may_split(tree[i].sums) && !params.may_split(tree[sibling].sums)) return false;
  const std::int64_t n = tree[i].sums.n, n_sibling = tree[sibling].sums.n;
  return n < n_sibling || (n == n_sibling && tree[tree[i].parent].left == i);
}

void check_trees(const ModelState& model) {
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    const Tree& tree = model.nodes.tree(t);
    const NaiveGrower naive(model, t);
    REQUIRE(tree.nodes.size() == naive.nodes.size());
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const Node &found = tree.nodes[i], &expected = naive.nodes[i].node;
      CHECK_EQ(found.left, expected.left);
      CHECK_EQ(found.right, expected.right);
      CHECK_EQ(found.parent, expected.parent);
      CHECK_EQ(found.leaf, expected.leaf);
      CHECK(found.sums == expected.sums);
      CHECK_EQ(found.value, model.leaf_value(expected.sums));
      CHECK_EQ(found.gain, expected.gain);
      if (expected.gain != no_gain) {
        CHECK_EQ(found.split.feature, expected.split.feature);
        const NaiveCandidate& best = *naive.nodes[i].best;
        for (const auto& [shard, slot] : naive.nodes[i].rows) {
          const Code code = model.shards[shard].rows.code(slot, expected.split.feature);
          CHECK_EQ(found.split.goes_left(code), bool{best.goes_left[code]});
        }
      }
      if (!found.is_leaf()) continue;
      CHECK_EQ(tree.leaves[static_cast<std::size_t>(found.leaf)], i);
      for (const auto& [shard, slot] : naive.nodes[i].rows)
        CHECK_EQ(model.shards[shard].trees[t].leaf_ids[slot], found.leaf);
    }
    std::visit(
        [&](const auto& histograms) {
          for (std::size_t i = 0; i < tree.nodes.size(); ++i)
            CHECK_EQ(histograms[i].cached, is_cached(model, tree, static_cast<NodeIndex>(i)));
        },
        model.nodes[t].histograms);
  }
  CHECK(testing::check_sums(model) >= model.nodes.size());
}

TEST_CASE("trees are those of a naive best-first grower") {
  ModelOptions plain, small, squared, weighted, grouped, regularized;
  small.training.min_samples_leaf = 1;
  small.training.max_leaf_nodes = 40;
  squared.loss = LossKind::squared;
  squared.training.subsample = 0.6;
  squared.max_bins = 300;
  weighted.weighted = true;
  weighted.loss = LossKind::softmax;
  weighted.n_classes = 3;
  weighted.n_shards = 3;
  weighted.training.n_estimators = 2;
  grouped.many_columns = true;
  grouped.n_shards = 2;
  regularized.training.l2_regularization = 5;
  regularized.training.min_samples_leaf = 12;
  regularized.training.learning_rate = 0.5;
  for (const ModelOptions& options : {plain, small, squared, weighted, grouped, regularized})
    check_trees(fit_state(random_rows(options, 140, 1), options));
}

TEST_CASE("threads do not change trees") {
  ModelOptions options;
  options.max_bins = 200;
  for (const bool many_columns : {false, true}) {
    options.many_columns = many_columns;
    const auto rows = random_rows(options, 800, 2);
    const auto bins = testing::bins_of(rows, options);
    const ModelState one = testing::state_of(*fit_model(rows, options, bins, 1));
    const ModelState many = testing::state_of(*fit_model(rows, options, bins, 5));
    testing::check_same(one, many);
  }
}

TEST_CASE("nothing is split if no candidate leaves enough rows") {
  ModelOptions options;
  options.training.min_samples_leaf = 30;
  const ModelState model = fit_state(random_rows(options, 50, 3), options);
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    CHECK_EQ(model.nodes.tree(t).nodes.size(), 1);
    CHECK_EQ(model.nodes.tree(t)[0].sums.n, 50);
  }
}

}  // namespace
}  // namespace graftboost
