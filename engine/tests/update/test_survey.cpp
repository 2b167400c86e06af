#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/naive_candidates.hpp"
#include "tests/update/started_update.hpp"
#include "tests/update/surveys.hpp"
#include "update/flip.hpp"
#include "update/split_check.hpp"

namespace graftboost {
namespace {

using testing::for_sums_of;
using testing::ModelOptions;
using testing::naive_best;
using testing::naive_candidates;
using testing::naive_histogram;
using testing::NaiveCandidate;
using testing::Random;
using testing::StartedUpdate;
using testing::various_models;

constexpr double infinite = std::numeric_limits<double>::infinity();

// The candidates of a touched node, evaluated one by one.
struct NaiveNode {
  struct Best {
    std::uint32_t column = 0;
    NaiveCandidate candidate;
  };
  std::vector<Totals> histogram;
  double present = no_gain;
  std::optional<Best> best, best_own;

  NaiveNode(const ModelState& model, std::size_t t, NodeIndex i)
      : histogram(naive_histogram(model, t, i)) {
    const Tree& tree = model.nodes.tree(t);
    const GainParams params = model.gain_params();
    present = model.gain_of_split(params, tree, tree[i]);
    for (std::size_t f = 0; f < model.layout().size(); ++f) {
      const FeatureLayout& feature = model.layout()[f];
      const auto begin = histogram.begin() + feature.offset;
      const auto found = naive_best(
          naive_candidates(params, tree[i].sums, feature, {begin, begin + feature.n_codes}));
      if (!found) continue;
      const Best here{feature.column, *found};
      if (feature.column == tree[i].split.feature) best_own = here;
      const double gain = best ? best->candidate.gain : no_gain;
      if (found->gain > gain || (found->gain == gain && feature.column < best->column)) best = here;
    }
  }
};

bool is_close(double a, double b) { return a == b || std::abs(a - b) <= 1e-12 * std::abs(b); }

// Whether a split sends the same rows left as a candidate.
bool is_same_split(const ModelState& model, const NaiveNode& naive, const Split& split,
                   const NaiveNode::Best& best) {
  if (split.feature != best.column) return false;
  const FeatureLayout& feature = model.layout().of(split.feature);
  for (std::uint32_t c = 0; c < feature.n_codes; ++c) {
    if (naive.histogram[feature.offset + c] == Totals{}) continue;
    if (split.goes_left(static_cast<Code>(c)) != best.candidate.goes_left[c]) return false;
  }
  return true;
}

struct Found {
  int flips = 0, kept = 0, voids = 0, unsplittable = 0, own = 0, shiftable = 0;
};

// Compares what a survey says about a touched split with a naive evaluation.
void check_node(const StartedUpdate& update, std::size_t t, NodeIndex i, const Flip* flip,
                Found& found) {
  const ModelState& model = update.model;
  const Tree& tree = model.nodes.tree(t);
  const Node& node = tree[i];
  const NaiveNode naive(model, t, i);
  const bool is_void = naive.present == no_gain;
  const bool is_better = naive.best && naive.best->candidate.gain > naive.present;
  CHECK_EQ(flip != nullptr, is_void || is_better);
  CHECK(is_void || node.gain == naive.present);
  if (flip == nullptr) {
    ++found.kept;
    return;
  }
  ++found.flips;
  found.voids += is_void;
  found.unsplittable += !flip->splits;
  CHECK_EQ(flip->is_void, is_void);
  // The weight, from the leaves below.
  int n_leaves = 0;
  for (const NodeIndex leaf : tree.leaves) {
    NodeIndex at = leaf;
    while (at != i && at != no_node) at = tree[at].parent;
    n_leaves += at == i;
  }
  CHECK(is_close(flip->weight, std::pow(n_leaves - 1, -1.0 / 3)));
  CHECK_EQ(flip->splits, naive.best.has_value());
  if (is_void) {
    CHECK_EQ(flip->regrown_below, infinite);
    CHECK_EQ(flip->shifted_below, infinite);
  }
  if (!naive.best || !flip->splits) {
    CHECK_EQ(flip->n_moving, 0);
    return;
  }
  CHECK(is_same_split(model, naive, flip->best, *naive.best));
  CHECK(flip->left == naive.best->candidate.left);
  // A better threshold of the same feature.
  std::int64_t n_moving = -1;
  const bool is_own = naive.best->column == node.split.feature;
  if (naive.best_own && (is_own || is_void)) {
    n_moving = 0;
    const FeatureLayout& feature = model.layout().of(node.split.feature);
    for (std::uint32_t c = 0; c < feature.n_codes; ++c) {
      if (node.split.goes_left(static_cast<Code>(c)) != naive.best_own->candidate.goes_left[c])
        n_moving += naive.histogram[feature.offset + c].n;
    }
  }
  const bool can_shift = n_moving >= 0 && 4 * n_moving <= node.sums.n;
  CHECK_EQ(flip->n_moving, can_shift ? std::max<std::int64_t>(n_moving, 1) : 0);
  if (can_shift) CHECK(is_same_split(model, naive, flip->shifted, *naive.best_own));
  found.own += is_own;
  found.shiftable += can_shift;
  if (is_void) return;
  const auto regret = [&](std::int64_t n_worked_on) {
    const double difference = naive.best->candidate.gain - naive.present;
    const auto n_rows = static_cast<double>(update.context->n_rows);
    double weight = 0;  // the mean of the rows that the model holds now
    for (const RowShard& shard : model.shards) {
      for (Slot row = 0; row < shard.size(); ++row) {
        if (!std::ranges::binary_search(shard.removed(), row))
          weight += static_cast<double>(shard.weight_of(row)) * model.loss.weight_unit / n_rows;
      }
    }
    const double noise = model.variance_in(t) * weight;
    return flip->weight * flip->weight * difference / noise * n_rows /
           static_cast<double>(n_worked_on);
  };
  CHECK(flip->regrown_below > 0);
  CHECK(is_close(flip->regrown_below, regret(node.sums.n)));
  CHECK(is_close(flip->shifted_below,
                 regret(can_shift ? std::min(node.sums.n, 5 * flip->n_moving) : node.sums.n)));
}

// The nodes on the paths of the changed rows that count in a tree.
std::set<NodeIndex> touched_nodes(const StartedUpdate& update, std::size_t t) {
  const Tree& tree = update.model.nodes.tree(t);
  const RowTable& rows = update.changed->rows();
  std::set<NodeIndex> touched;
  for (Slot row = 0; row < rows.size(); ++row) {
    if (!update.model.params.in_subsample(t, rows.ids[row])) continue;
    NodeIndex at = tree.route([&](std::uint32_t c) { return rows.code(row, c); });
    for (; at != no_node; at = tree[at].parent) touched.insert(at);
  }
  return touched;
}

void check_surveys(const ModelOptions& options, double share_removed, std::uint64_t seed,
                   Found& found) {
  Random random(seed);
  StartedUpdate update(options, 170, 4, share_removed, seed, false, testing::fidelity_rule(1));
  ModelState& model = update.model;
  for_sums_of(model, [&]<class Sums>(Sums) {
    SplitChecker<Sums> checker(*update.context);
    TreeCheck<Sums> check;
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      UpdateCounts counts;
      update.book_sums(t, random, counts);
      const std::vector<Node> before = model.nodes.tree(t).nodes;
      const std::set<NodeIndex> touched = touched_nodes(update, t);
      CHECK_EQ(testing::survey(update, checker, t, check), !touched.empty());
      if (touched.empty()) continue;
      // No structure changes, nothing is moved, nothing fails.
      const std::vector<Node>& now = model.nodes.tree(t).nodes;
      REQUIRE(now.size() == before.size());
      for (std::size_t i = 0; i < now.size(); ++i) {
        CHECK(std::tie(now[i].left, now[i].right, now[i].parent, now[i].leaf) ==
              std::tie(before[i].left, before[i].right, before[i].parent, before[i].leaf));
        CHECK(now[i].is_leaf() || now[i].split == before[i].split);
        CHECK(now[i].sums == before[i].sums);
      }
      CHECK(check.failed.empty());
      CHECK(!check.has_shifted);
      CHECK_EQ(check.counts.nodes_shifted, 0);
      CHECK_EQ(check.counts.nodes_checked, touched.size());
      std::set<NodeIndex> flipped;
      for (const Flip& flip : check.flips) {
        CHECK(touched.contains(flip.node));
        CHECK(flipped.insert(flip.node).second);
      }
      for (const NodeIndex i : touched) {
        if (model.nodes.tree(t)[i].is_leaf()) continue;
        const auto flip = std::ranges::find(check.flips, i, &Flip::node);
        check_node(update, t, i, flip == check.flips.end() ? nullptr : &*flip, found);
      }
    }
  });
}

TEST_CASE("a survey finds the flips that a naive evaluation of all candidates does") {
  Found found;
  std::uint64_t seed = 1;
  for (const ModelOptions& options : various_models()) {
    for (const double share_removed : {0.0, 0.02, 0.2})
      check_surveys(options, share_removed, seed++, found);
  }
  CHECK(found.flips > 100);
  CHECK(found.kept > 100);
  CHECK(found.own > 20);
  CHECK(found.shiftable > 10);
}

TEST_CASE("splits that leave a child too little are void") {
  Found found;
  std::uint64_t seed = 50;
  for (ModelOptions options : various_models()) {
    options.training.min_samples_leaf = 12;
    for (const double share_removed : {0.1, 0.3, 0.5})
      check_surveys(options, share_removed, seed++, found);
  }
  CHECK(found.voids > 50);
  CHECK(found.unsplittable > 10);
}

TEST_CASE("less is left of a flip with more leaves below") {
  Tree tree;
  tree.nodes.resize(7);
  for (NodeIndex i = 0; i < 7; ++i) {
    tree[i].parent = i == 0 ? no_node : (i - 1) / 2;
    tree[i].left = i < 3 ? 2 * i + 1 : no_node;
    tree[i].right = i < 3 ? 2 * i + 2 : no_node;
    tree[i].leaf = i < 3 ? -1 : i - 3;
  }
  tree.index_leaves();
  CHECK_EQ(flip_weight(tree, 1), 1);
  CHECK(is_close(flip_weight(tree, 0), 1 / std::cbrt(3.0)));
}

}  // namespace
}  // namespace graftboost
