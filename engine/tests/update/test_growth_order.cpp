#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/hand_made_trees.hpp"
#include "update/growth_order.hpp"
#include "update/node_undo.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::never_regrow;
using testing::Random;
using testing::random_rows;
using testing::random_tree;

// A model in whose first tree the growth order is replayed.
class Replay {
 public:
  Replay() : model_(make()), undo_(model_), noise_(model_.variance_in(0)) { undo_.commit(); }

  GrowthSwap find(const Tree& tree, int max_leaf_nodes, const UpdateRule& rule) {
    model_.params.max_leaf_nodes = max_leaf_nodes;
    UpdateContext context(model_, rule, undo_, 1);
    context.variance[0] = noise_;
    model_.nodes[0].tree = tree;
    return find_growth_swap(context, 0);
  }
  double order_slack() const { return model_.nodes[0].order_slack; }
  double noise() const { return noise_; }
  double n_rows() const { return static_cast<double>(model_.n_rows()); }

 private:
  static ModelState make() {
    ModelOptions options;
    options.training.n_estimators = 1;
    return fit_state(random_rows(options, 100, 1), options);
  }

  ModelState model_;
  NodeUndo undo_;
  double noise_;  // of the tree as fitted; rows have no weights
};

constexpr double least_gain = 1e-6;  // of the model, which is logistic and has no weights

double key(const Tree& tree, NodeIndex i) {
  double least = tree[i].gain;
  for (; i != no_node; i = tree[i].parent) least = std::min(least, tree[i].gain);
  return least;
}

// Grows the tree again, best first: the nodes that would be split, in order. What is below a leaf
// is not known.
std::vector<NodeIndex> grow(const Tree& tree, std::int32_t n_leaves) {
  std::vector<NodeIndex> split;
  std::set<NodeIndex> open{0};
  while (static_cast<std::int32_t>(split.size()) + 1 < n_leaves && !open.empty()) {
    const NodeIndex next =
        *std::ranges::max_element(open, {}, [&](NodeIndex i) { return tree[i].gain; });
    if (!(tree[next].gain > least_gain)) break;
    open.erase(next);
    split.push_back(next);
    if (tree[next].is_leaf()) continue;
    open.insert(tree[next].left);
    open.insert(tree[next].right);
  }
  return split;
}

const UpdateRule always{UpdateRule::Kind::regret, 0, 1};

TEST_CASE("a swap is found if and only if growth would split a leaf first") {
  Replay replay;
  Random random(1);
  int n_swapped = 0;
  for (int i = 0; i < 400; ++i) {
    const std::int32_t n_leaves = static_cast<std::int32_t>(2 + random.below(7));
    Tree tree = random_tree(n_leaves, random);
    // Gains fall along every path, so that the least gain on it is the node's own. Mostly leaves
    // have small gains, or none.
    for (Node& node : tree.nodes) {
      if (node.parent != no_node)
        node.gain = tree[node.parent].gain * (0.3 + 0.7 * random.fraction());
      if (node.is_leaf() && random.chance(0.7)) node.gain *= 0.2;
      if (node.is_leaf() && random.chance(0.2)) node.gain = no_gain;
    }
    const GrowthSwap swap = replay.find(tree, n_leaves, always);
    const std::vector<NodeIndex> grown = grow(tree, n_leaves);
    NodeIndex leaf = no_node, split = no_node;
    for (const NodeIndex node : grown)
      if (tree[node].is_leaf() && leaf == no_node) leaf = node;
    // Growth that ends before a split of the tree has undone the one with the least key.
    for (std::size_t j = 0; j < tree.nodes.size(); ++j) {
      const auto node = static_cast<NodeIndex>(j);
      const Node& it = tree[node];
      if (it.is_leaf() || !tree[it.left].is_leaf() || !tree[it.right].is_leaf()) continue;
      if (split == no_node || key(tree, node) < key(tree, split)) split = node;
    }
    // The only split that could be undone is the one that made the leaf.
    const bool is_own = leaf != no_node && tree[leaf].parent == split;
    if (leaf == no_node || is_own) {
      CHECK_EQ(swap.leaf, no_node);
    } else {
      ++n_swapped;
      CHECK_EQ(swap.leaf, leaf);
      CHECK_EQ(swap.split, split);
      CHECK(std::ranges::count(grown, split) == 0);
    }
    // While the slack is positive there is nothing to swap.
    CHECK(!(replay.order_slack() > 0) || swap.leaf == no_node);
    CHECK_EQ(replay.find(tree, n_leaves, never_regrow).leaf, no_node);
  }
  CHECK(n_swapped > 50);
}

TEST_CASE("a tree with room for leaves splits one without undoing a split") {
  Replay replay;
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    Tree tree = random_tree(5, random);
    const bool any = random.chance(0.7);
    for (Node& node : tree.nodes)
      if (node.is_leaf() && (!any || random.chance(0.5))) node.gain = no_gain;
    NodeIndex expected = no_node;
    for (const NodeIndex leaf : tree.leaves) {
      if (tree[leaf].gain == no_gain) continue;
      if (expected == no_node || key(tree, leaf) > key(tree, expected)) expected = leaf;
    }
    const GrowthSwap swap = replay.find(tree, 6, always);
    CHECK_EQ(swap.split, no_node);
    if (expected == no_node) {
      CHECK_EQ(swap.leaf, no_node);
    } else {
      CHECK_EQ(key(tree, swap.leaf), key(tree, expected));
      CHECK(tree[swap.leaf].is_leaf());
    }
    CHECK(!(replay.order_slack() > 0));
    CHECK_EQ(replay.find(tree, 6, never_regrow).leaf, no_node);
  }
}

TEST_CASE("gains that are rounding errors split no leaf") {
  Replay replay;
  Random random(3);
  Tree tree = random_tree(2, random);
  tree[1].gain = least_gain;
  tree[2].gain = no_gain;
  CHECK_EQ(replay.find(tree, 3, always).leaf, no_node);
  tree[1].gain = 2 * least_gain;
  CHECK_EQ(replay.find(tree, 3, always).leaf, 1);
}

TEST_CASE("the leaf with the largest key is exchanged for the last split with the least") {
  Replay replay;
  Random random(4);
  int n_swapped = 0;
  for (int i = 0; i < 400; ++i) {
    const std::int32_t n_leaves = static_cast<std::int32_t>(3 + random.below(7));
    const Tree tree = random_tree(n_leaves, random);
    const GrowthSwap swap = replay.find(tree, n_leaves, always);
    double largest = no_gain, least = -no_gain;
    for (std::size_t j = 0; j < tree.nodes.size(); ++j) {
      const auto node = static_cast<NodeIndex>(j);
      const Node& it = tree[node];
      if (it.is_leaf()) {
        largest = std::max(largest, key(tree, node));
      } else if (tree[it.left].is_leaf() && tree[it.right].is_leaf()) {
        least = std::min(least, key(tree, node));
      }
    }
    CHECK_EQ(replay.order_slack(), least - largest);
    if (!(largest > least)) {
      CHECK_EQ(swap.leaf, no_node);
      continue;
    }
    ++n_swapped;
    REQUIRE(swap.leaf != no_node);
    CHECK(tree[swap.leaf].is_leaf());
    CHECK_EQ(key(tree, swap.leaf), largest);
    CHECK(!tree[swap.split].is_leaf());
    CHECK_EQ(key(tree, swap.split), least);
  }
  CHECK(n_swapped > 100);
}

// Nodes with their gains:
//                    0 (10)
//          1 (2)               2 (9)
//     3 (1)     4 (1)     5 (5)     6 (1)
Tree seven_nodes() {
  Tree tree;
  tree.nodes.resize(7);
  const double gains[] = {10, 2, 9, 1, 1, 5, 1};
  for (NodeIndex i = 0; i < 7; ++i) {
    Node& node = tree[i];
    node.gain = gains[i];
    node.parent = i == 0 ? no_node : (i - 1) / 2;
    if (i < 3) {
      node.left = 2 * i + 1;
      node.right = 2 * i + 2;
    } else {
      node.leaf = i - 3;
    }
  }
  tree[5].sums.n = 30;
  tree[1].sums.n = 20;
  tree.index_leaves();
  return tree;
}

TEST_CASE("the regret rule tolerates a swap by the rows of both nodes") {
  Replay replay;
  const Tree tree = seven_nodes();
  // Leaf 5 has key 5, and split 1 has key 2.
  REQUIRE(replay.noise() != 1);
  const double regret = (5.0 - 2.0) / replay.noise() * replay.n_rows() / (30 + 20);
  UpdateRule rule{UpdateRule::Kind::regret, regret * 1.001, 1};
  CHECK_EQ(replay.find(tree, 4, rule).leaf, no_node);
  rule.tolerance = regret * 0.999;
  const GrowthSwap swap = replay.find(tree, 4, rule);
  CHECK_EQ(swap.leaf, 5);
  CHECK_EQ(swap.split, 1);
  CHECK_EQ(replay.order_slack(), 2.0 - 5.0);
  // With room for a leaf no split is undone, and only the rows of the leaf count.
  rule.tolerance = 5.0 / replay.noise() * replay.n_rows() / 30 * 0.999;
  CHECK_EQ(replay.find(tree, 5, rule).leaf, 5);
  CHECK_EQ(replay.find(tree, 5, rule).split, no_node);
  rule.tolerance *= 1.01;
  CHECK_EQ(replay.find(tree, 5, rule).leaf, no_node);
}

TEST_CASE("the rank rule tolerates a swap while few leaves come before the split") {
  Replay replay;
  Tree tree = seven_nodes();
  tree[6].gain = 4;  // two leaves come before split 1
  UpdateRule rule{UpdateRule::Kind::rank, 0.3, 1};
  CHECK_EQ(replay.find(tree, 4, rule).leaf, no_node);  // ceil(0.3 * 4) = 2
  rule.tolerance = 0.25;
  CHECK_EQ(replay.find(tree, 4, rule).leaf, 5);  // 1
  CHECK_EQ(replay.find(tree, 4, rule).split, 1);
}

}  // namespace
}  // namespace graftboost
