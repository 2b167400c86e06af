#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "tests/update/surveys.hpp"
#include "update/flip_shifts.hpp"
#include "update/row_memory.hpp"

namespace graftboost {
namespace {

using testing::fidelity_rule;
using testing::ModelOptions;
using testing::Random;
using testing::StartedUpdate;
using testing::various_models;

// The leaf that a changed row reaches by its codes.
NodeIndex leaf_of(const Tree& tree, const ChangedRows& changed, std::size_t row) {
  return tree.route(
      [&](std::uint32_t c) { return changed.rows().code(static_cast<Slot>(row), c); });
}

// The scores of a changed row by the trees of a model; value_of(tree, leaf) is added for each.
template <class ValueOf>
std::vector<double> naive_scores(const ModelState& model, const ChangedRows& changed,
                                 std::size_t row, ValueOf&& value_of) {
  std::vector<double> scores = model.base_scores;
  for (std::size_t t = 0; t < model.nodes.size(); ++t)
    scores[t % scores.size()] += value_of(t, leaf_of(model.nodes.tree(t), changed, row));
  return scores;
}

std::vector<double> scores_of(const ChangedScores& scores, std::size_t row, std::size_t k) {
  const auto begin = scores.begin() + static_cast<std::ptrdiff_t>(row * k);
  return {begin, begin + static_cast<std::ptrdiff_t>(k)};
}

TEST_CASE("scores of changed rows are those that their codes lead to") {
  for (const ModelOptions& options : various_models()) {
    Random random(1);
    StartedUpdate update(options, 150, 5, 0.05, 1, false, fidelity_rule(1));
    ModelState& model = update.model;
    const ChangedRows& changed = *update.changed;
    const std::size_t k = model.base_scores.size();
    CHECK(model.base_scores != update.before.base_scores);
    const ChangedScores before = scores_before(*update.context, changed);
    UpdateCounts counts;
    for (std::size_t t = 0; t < model.nodes.size(); ++t) update.book_sums(t, random, counts);
    const ChangedScores booked = scores_when_booked(*update.context, changed);
    CHECK_EQ(before.size(), changed.size() * k);
    CHECK_EQ(booked.size(), changed.size() * k);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      CHECK(scores_of(before, i, k) ==
            naive_scores(update.before, changed, i, [&](std::size_t t, NodeIndex leaf) {
              return update.before.nodes.tree(t)[leaf].value;
            }));
      CHECK(scores_of(booked, i, k) ==
            naive_scores(model, changed, i, [&](std::size_t t, NodeIndex leaf) {
              return model.leaf_value(testing::naive_total(model, t, leaf));
            }));
    }
    // Some trees get other splits at their roots; values follow from sums again.
    std::vector<bool> restructured;
    for (TreeNodes& nodes : model.nodes) {
      for (Node& node : nodes.tree.nodes) node.value = model.leaf_value(node.sums);
      restructured.push_back(restructured.size() % 2 == 0);
      if (restructured.back()) std::swap(nodes.tree[0].left, nodes.tree[0].right);
    }
    const ChangedScores now = scores_now(*update.context, changed, restructured);
    CHECK(now != booked);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      CHECK(scores_of(now, i, k) ==
            naive_scores(model, changed, i, [&](std::size_t t, NodeIndex leaf) {
              return model.nodes.tree(t)[leaf].value;
            }));
    }
  }
}

TEST_CASE("scores of changed rows do not depend on threads") {
  ModelOptions options;
  options.n_shards = 2;
  Random random(2);
  StartedUpdate update(options, 900, 100, 0.4, 2, false, fidelity_rule(1));
  const std::vector<TreeFlips> flips = testing::survey_all(update, random);
  const FlipShifts shifts(*update.context, *update.changed, flips, 1);
  REQUIRE(update.changed->size() > 300);
  const ChangedScores before = scores_before(*update.context, *update.changed);
  const ChangedScores booked = scores_when_booked(*update.context, *update.changed);
  const auto [shifted, sizes] = shifts.of_rows();
  update.context->n_threads = 3;
  CHECK(before == scores_before(*update.context, *update.changed));
  CHECK(booked == scores_when_booked(*update.context, *update.changed));
  CHECK(shifted == shifts.of_rows().shifts);
  CHECK(sizes == shifts.of_rows().sizes);
}

// --- shifts --------------------------------------------------------------------------------------

// A model whose only tree is made by hand, with some removed and some added rows. By the codes of
// the first column:
//
//                 0 (<= 8)
//             1 (<= 4)    2
//         3 (<= 2)   4
//         5   6
//
// All nodes have sums of their own, so that all values differ.
class HandMade {
 public:
  explicit HandMade(LossKind loss = LossKind::squared)
      : update_(options(loss), 120, 30, 0.2, 3, false, fidelity_rule(1)) {
    ModelState& model = update_.model;
    Tree& tree = model.nodes[0].tree;
    tree.nodes.assign(7, {});
    const Code codes[] = {8, 4, 0, 2};
    for (const NodeIndex i : {0, 1, 3}) {
      tree[i].split = {0, 1, static_cast<Code>(codes[i] - 1)};
      tree[i].left = i == 0 ? 1 : i + 2;
      tree[i].right = tree[i].left + 1;
      tree[tree[i].left].parent = tree[tree[i].right].parent = i;
    }
    std::int32_t n_leaves = 0;
    for (NodeIndex i = 0; i < 7; ++i) {
      if (tree[i].is_leaf()) tree[i].leaf = n_leaves++;
      tree[i].sums = {(i % 2 == 0 ? 1 : -1) * (3'000'000 + 1'700'000 * i), (40 - 5 * i) << 18,
                      40 - 5 * i};
      tree[i].value = model.leaf_value(tree[i].sums);
    }
    tree.index_leaves();
    for (RowShard& shard : model.shards) {
      for (Slot row = 0; row < shard.size(); ++row) {
        const NodeIndex leaf = tree.route([&](std::uint32_t c) { return shard.rows.code(row, c); });
        shard.trees[0].leaf_ids.narrow[row] = static_cast<std::uint8_t>(tree[leaf].leaf);
      }
    }
    changed_ = std::make_unique<ChangedRows>(model, 1);
  }

  const UpdateContext& context() const { return *update_.context; }
  UpdateContext& context() { return *update_.context; }
  const ChangedRows& changed() const { return *changed_; }
  const ModelState& model() const { return update_.model; }
  const Tree& tree() const { return update_.model.nodes.tree(0); }
  double value(const Totals& sums) const { return model().leaf_value(sums); }
  double value(NodeIndex i) const { return value(tree()[i].sums); }

  // The best candidate is an edge of another column.
  Flip flip(NodeIndex node, double weight) const {
    Flip flip;
    flip.node = node;
    flip.best = {testing::MixedColumns::integers, 1, 2};
    flip.left = {5'000'000 * (node + 1), (7 + node) << 18, 7 + node};
    flip.weight = weight;
    return flip;
  }
  // Of a row at a node, without the optimism: 0 at the root.
  double difference(const Flip& flip, std::size_t row) const {
    if (flip.node == 0) return 0;
    const Slot slot = static_cast<Slot>(row);
    const RowTable& rows = changed().rows();
    const Node& node = tree()[flip.node];
    const NodeIndex child =
        node.split.goes_left(rows.code(slot, node.split.feature)) ? node.left : node.right;
    Totals other = node.sums;
    if (flip.splits) {
      const bool best_left = flip.best.goes_left(rows.code(slot, flip.best.feature));
      other = best_left ? flip.left : node.sums - flip.left;
    }
    return 0.7 * flip.weight * (value(other) - value(child));
  }
  // What is lost below the child of a flip's node.
  double optimism(const Flip& flip, std::size_t row) const {
    NodeIndex at = leaf_of(tree(), changed(), row);
    const double of_leaf = value(at);
    while (tree()[at].parent != flip.node) at = tree()[at].parent;
    return 0.08 * (of_leaf - value(at));
  }
  bool passes(NodeIndex node, std::size_t row) const {
    NodeIndex at = tree()[leaf_of(tree(), changed(), row)].parent;
    while (at != node && at != no_node) at = tree()[at].parent;
    return at == node;
  }

 private:
  static ModelOptions options(LossKind loss) {
    ModelOptions options;
    options.loss = loss;
    options.training.n_estimators = 1;
    return options;
  }

  StartedUpdate update_;
  std::unique_ptr<ChangedRows> changed_;
};

// Three roundings to the grid.
bool is_close(double a, double b) { return std::abs(a - b) <= 2 * leaf_value_grid; }

// Checks the shifts of flips whose nodes lie on one path, topmost first.
void check_shifts(const HandMade& made, const std::vector<Flip>& flips, double scale) {
  const std::vector<TreeFlips> of_trees{{flips, {}}};
  const FlipShifts shifts(made.context(), made.changed(), of_trees, scale);
  const auto [sums, sizes] = shifts.of_rows();
  REQUIRE(sizes.size() == made.changed().size());
  std::map<std::size_t, int> n_with;  // by the number of flips on the path of a row
  for (std::size_t row = 0; row < made.changed().size(); ++row) {
    std::map<std::uint32_t, double> expected, found;
    for (std::uint32_t f = 0; f < flips.size(); ++f) {
      if (!made.passes(flips[f].node, row)) continue;
      // Only the topmost flip on the path carries what is lost below it.
      const double lost = expected.empty() ? made.optimism(flips[f], row) : 0;
      expected[f] = scale * (made.difference(flips[f], row) - lost);
    }
    double sum = 0, size = 0;
    shifts.for_each(row, [&](std::size_t t, std::uint32_t f, double shift) {
      CHECK_EQ(t, 0);
      CHECK(found.emplace(f, shift).second);
      sum += shift;
      size += shift < 0 ? -shift : shift;
      // Sums of multiples of the grid are exact.
      CHECK_EQ(std::nearbyint(shift / leaf_value_grid) * leaf_value_grid, shift);
    });
    REQUIRE(found.size() == expected.size());
    for (const auto& [f, shift] : expected) {
      REQUIRE(found.contains(f));
      CHECK(is_close(found[f], shift));
    }
    CHECK_EQ(sums[row], sum);
    CHECK_EQ(sizes[row], size);
    ++n_with[found.size()];
  }
  for (std::size_t n = 1; n <= flips.size(); ++n) CHECK(n_with[n] > 0);
}

TEST_CASE("the loss of a row counts for no more than a limit, that of several for so many more") {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  CHECK_EQ(in_memory_units(2.5), 2);
  CHECK_EQ(in_memory_units(1e300), most);
  CHECK_EQ(in_memory_units(-1e300), -most);
  CHECK_EQ(in_memory_units(1e300, 3), 3 * most);
  CHECK_EQ(in_memory_units(static_cast<double>(2 * most), 3), 2 * most);
  CHECK_EQ(in_memory_units(1e300, std::int64_t{1} << 60), std::int64_t{1} << 60);
}

TEST_CASE("a flip shifts scores by the difference of children, and by what is lost below") {
  const HandMade made;
  for (const double scale : {1.0, 3.0}) {
    check_shifts(made, {made.flip(3, 1)}, scale);
    check_shifts(made, {made.flip(1, 0.8)}, scale);
    check_shifts(made, {made.flip(0, 0.6)}, scale);
    Flip unsplittable = made.flip(1, 0.8);
    unsplittable.splits = false;
    check_shifts(made, {unsplittable}, scale);
  }
}

TEST_CASE("of two flips on a path the topmost carries what is lost below") {
  const HandMade made;
  check_shifts(made, {made.flip(1, 0.8), made.flip(3, 1)}, 1);
  check_shifts(made, {made.flip(0, 0.7), made.flip(3, 1)}, 1);
  check_shifts(made, {made.flip(0, 0.7), made.flip(1, 0.8), made.flip(3, 1)}, 2);
  // A flip at the root leaves no difference, but what was found below it is lost.
  const std::vector<TreeFlips> at_root{{{made.flip(0, 0.7)}, {}}};
  const FlipShifts shifts(made.context(), made.changed(), at_root, 1);
  const double lost = 0.08 * (made.value(5) - made.value(1));
  int n_below = 0;
  for (std::size_t row = 0; row < made.changed().size(); ++row) {
    if (leaf_of(made.tree(), made.changed(), row) != 5) continue;
    ++n_below;
    shifts.for_each(
        row, [&](std::size_t, std::uint32_t, double shift) { CHECK(is_close(shift, -lost)); });
  }
  CHECK(n_below > 0);
}

TEST_CASE("trees without flips shift nothing") {
  const HandMade made;
  const std::vector<TreeFlips> none(1);
  const FlipShifts shifts(made.context(), made.changed(), none, 1);
  const auto [sums, sizes] = shifts.of_rows();
  CHECK_EQ(sums.size(), made.changed().size());
  for (const double sum : sums) CHECK_EQ(sum, 0);
  for (const double size : sizes) CHECK_EQ(size, 0);
  CHECK_EQ(shifts.error(sums), 0);
}

TEST_CASE("the size of shifts is that in all trees and classes, whatever their signs") {
  int n_cancelling = 0;
  for (const ModelOptions& options : various_models()) {
    Random random(6);
    StartedUpdate update(options, 200, 5, 0.1, 6, false, fidelity_rule(1));
    const std::vector<TreeFlips> flips = testing::survey_all(update, random);
    const FlipShifts shifts(*update.context, *update.changed, flips, 1);
    const WipedVector<double> sizes = shifts.of_rows().sizes;
    REQUIRE(sizes.size() == update.changed->size());
    for (std::size_t row = 0; row < sizes.size(); ++row) {
      double risen = 0, fallen = 0;
      shifts.for_each(row, [&](std::size_t, std::uint32_t, double shift) {
        (shift > 0 ? risen : fallen) += shift;
      });
      CHECK_EQ(sizes[row], risen - fallen);
      n_cancelling += risen > 0 && fallen < 0;
    }
  }
  CHECK(n_cancelling > 20);
}

TEST_CASE("the more of its flips are settled, the less is left of those that stay") {
  CHECK_EQ(part_left(0, 0), 1);  // no flip at all
  CHECK_EQ(part_left(0, 2), 1);
  CHECK_EQ(part_left(1, 3), 0.875);
  CHECK_EQ(part_left(2, 2), 0.75);
  CHECK_EQ(part_left(0x1p-20, 0x1p-20), 0.75);  // only relative sizes matter
  CHECK_EQ(part_left(6, 2), 0.625);
  CHECK_EQ(part_left(5, 0), 0.5);
}

// --- memory --------------------------------------------------------------------------------------

// In units; for squared error relative to the residual variance.
double naive_loss(const HandMade& made, std::size_t row, double score) {
  const Loss& loss = made.model().loss;
  const double units = loss.of_row(made.changed().rows().target[row], {&score, 1}) * 0x1p28;
  return loss.kind == LossKind::squared ? units / made.context().variance.back() : units;
}

TEST_CASE("memory is the rise of a removed row's loss, and the fall of an added row's") {
  for (const LossKind kind : {LossKind::squared, LossKind::logistic}) {
    HandMade made(kind);
    made.context().variance.back() = 0.375;
    const ChangedRows& changed = made.changed();
    Random random(4);
    ChangedScores scores, shifts, towards;
    for (std::size_t row = 0; row < changed.size(); ++row) {
      scores.push_back(on_leaf_grid(random.normal()));
      shifts.push_back(on_leaf_grid(random.normal() / 4));
      const std::int32_t target = changed.rows().target[row];
      const double aim = kind == LossKind::squared ? target * Loss::target_grid
                         : target == 1             ? 10
                                                   : -10;
      towards.push_back(on_leaf_grid((aim - scores[row]) / 8));
    }
    const ChangedLosses memory = memory_of(made.context(), changed, scores, shifts);
    const ChangedLosses of_towards = memory_of(made.context(), changed, scores, towards);
    ChangedScores now;
    for (std::size_t row = 0; row < changed.size(); ++row) now.push_back(scores[row] + shifts[row]);
    CHECK(achieved(made.context(), changed, scores, now) == memory);
    REQUIRE(memory.size() == changed.size());
    REQUIRE(changed.n_removed() > 5 && changed.n_added() > 5);
    for (std::size_t row = 0; row < changed.size(); ++row) {
      const double rise = naive_loss(made, row, now[row]) - naive_loss(made, row, scores[row]);
      const double expected = changed.enters(row) ? -rise : rise;
      CHECK(std::abs(static_cast<double>(memory[row]) - expected) <= 1.001);
      // A retrain without a row moves its score away from the target; with it, towards the target.
      CHECK(changed.enters(row) ? of_towards[row] > 0 : of_towards[row] < 0);
    }
  }
}

TEST_CASE("slopes are those of the memory, and the standard error follows from them") {
  for (const LossKind kind : {LossKind::squared, LossKind::logistic}) {
    HandMade made(kind);
    made.context().variance.back() = 0.375;
    const ChangedRows& changed = made.changed();
    RowLoss loss(made.context(), changed);
    Random random(5);
    ChangedScores scores;
    std::vector<double> slopes;
    for (std::size_t row = 0; row < changed.size(); ++row) {
      scores.push_back(on_leaf_grid(random.normal()));
      double slope = 0;
      loss.slopes(row, {&scores[row], 1}, &slope);
      constexpr double step = 0x1p-12;
      double numeric =
          (naive_loss(made, row, scores[row] + step) - naive_loss(made, row, scores[row] - step)) /
          (2 * step);
      if (changed.enters(row)) numeric = -numeric;
      // Slopes of squared error lie on a grid of 2^-24, and losses on a grid as well.
      CHECK(std::abs(slope - numeric) <= 1e-6 * std::abs(numeric) + 0x1p9);
      slopes.push_back(slope);
    }
    const std::vector<Flip> flips{made.flip(0, 0.7), made.flip(1, 0.8), made.flip(3, 1)};
    const std::vector<TreeFlips> of_trees{{flips, {}}};
    const FlipShifts shifts(made.context(), changed, of_trees, 1);
    std::vector<double> of_flips(flips.size());
    for (std::size_t row = 0; row < changed.size(); ++row) {
      shifts.for_each(row, [&](std::size_t, std::uint32_t f, double shift) {
        of_flips[f] += std::nearbyint(slopes[row] * shift);  // in whole units
      });
    }
    double variance = 0;
    for (const double of_flip : of_flips) variance += of_flip * of_flip;
    CHECK(variance > 0);
    CHECK(std::abs(shifts.error(scores) / std::sqrt(variance) - 1) < 1e-14);
  }
}

TEST_CASE("a loss counts for no more than the largest") {
  HandMade made;
  made.context().variance.back() = 0x1p-20;
  const RowLoss loss(made.context(), made.changed());
  const double far = 100;
  CHECK_EQ(loss(0, {&far, 1}), std::int64_t{1} << 40);
}

TEST_CASE("a row is remembered if its memory is positive and reaches the floor") {
  const std::int64_t one = std::int64_t{1} << 28;  // in units
  CHECK(reaches_floor(1, 0));
  CHECK(!reaches_floor(0, 0));
  CHECK(!reaches_floor(-one, 0));
  CHECK(reaches_floor(one, 1));
  CHECK(!reaches_floor(one - 1, 1));
}

}  // namespace
}  // namespace graftboost
