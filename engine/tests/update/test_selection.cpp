#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "tests/update/surveys.hpp"
#include "update/selection.hpp"

namespace graftboost {
namespace {

using testing::fidelity_rule;
using testing::ModelOptions;
using testing::Random;
using testing::StartedUpdate;
using testing::various_models;

constexpr double infinite = std::numeric_limits<double>::infinity();

struct Selected {
  double tolerance = 0;
  MemoryWhenBooked booked;
  std::vector<TreeFlips> flips;
};

// A flip by tree and number.
using Key = std::pair<std::size_t, std::size_t>;

// Selects what is done about the flips of an update whose rows are booked. `before` are the scores
// before that.
Selected select(StartedUpdate& update, const UpdateRule& rule, const ChangedScores& before,
                std::vector<TreeFlips> flips) {
  UpdateContext context(update.model, rule, *update.undo, 1);
  context.variance = update.context->variance;
  const ChangedRows& changed = *update.changed;
  const FlipShifts shifts(context, changed, flips, 1);
  Selected selected;
  MemoryWhenBooked& booked = selected.booked;
  booked.scores = scores_when_booked(context, changed);
  booked.achieved = achieved(context, changed, before, booked.scores);
  booked.memory = memory_of(context, changed, booked.scores, shifts.of_rows().shifts);
  selected.flips = flips;
  selected.tolerance = select_actions(context, changed, shifts, booked, selected.flips);
  return selected;
}

double sum_of(const ChangedLosses& losses) {
  return static_cast<double>(std::accumulate(losses.begin(), losses.end(), std::int64_t{0}));
}

// What settling some flips recovers and leaves, in units of memory.
struct Outcome {
  double recovered = 0, left = 0;

  bool is_enough(double achieved, double fidelity) const {
    const double total = achieved + recovered;
    return total >= fidelity * (total + left);
  }
};

// The shifts of one row by all flips on its paths.
class Shifts {
 public:
  explicit Shifts(std::size_t k_trees) : settled_(k_trees), staying_(k_trees) {}

  void add(std::size_t k, double shift, bool is_settled) {
    (is_settled ? settled_ : staying_)[k] += shift;
    (is_settled ? size_settled_ : size_staying_) += std::abs(shift);
  }
  // Settling shifts scores 1.3 times as far as a retrain would, and leaves less of what flips that
  // stay tell: half of it if these are few.
  void add_outcome(RowLoss& loss, std::size_t row, std::span<const double> booked,
                   Outcome& outcome) const {
    const double size = size_settled_ + size_staying_;
    const double part = size > 0 ? 1 - 0.5 * (size_settled_ / size) : 1;
    std::vector<double> moved, now, stay;
    for (std::size_t k = 0; k < settled_.size(); ++k) {
      moved.push_back(1.3 * settled_[k]);
      now.push_back(booked[k] + moved[k]);
      stay.push_back(part * staying_[k]);
    }
    outcome.recovered += static_cast<double>(loss.memory(row, booked, moved));
    outcome.left += static_cast<double>(loss.memory(row, now, stay));
  }

 private:
  std::vector<double> settled_, staying_;  // per tree of an iteration
  double size_settled_ = 0, size_staying_ = 0;
};

// --- flips made by hand --------------------------------------------------------------------------

// One row is added. In each tree where it lies deep enough, there is a flip just above its leaf, by
// which a retrain would learn it better.
class OneRow {
 public:
  explicit OneRow(std::uint64_t seed, bool with_shifts)
      : update(options(), 150, 1, 0, seed, false, fidelity_rule(1)),
        before(scores_before(*update.context, *update.changed)),
        flips(update.model.nodes.size()) {
    Random random(seed);
    ModelState& model = update.model;
    UpdateCounts counts;
    for (std::size_t t = 0; t < flips.size(); ++t) update.book_sums(t, random, counts);
    const bool is_one = update.changed->rows().target[0] == 1;
    for (std::size_t t = 0; t < flips.size(); ++t) {
      const Tree& tree = model.nodes.tree(t);
      const NodeIndex leaf = tree.leaves[update.changed->leaf(t, 0)], above = tree[leaf].parent;
      if (above == no_node || above == 0) continue;
      const Node& node = tree[above];
      // The same rows go left, but more of them have the target of the row.
      Flip flip;
      flip.node = above;
      flip.best = node.split;
      flip.left = tree[node.left].sums;
      const std::int64_t more = tree[leaf].sums.h / 5 * (is_one ? -1 : 1);
      flip.left.g += node.left == leaf ? more : -more;
      const Totals of_leaf = node.left == leaf ? flip.left : node.sums - flip.left;
      if (model.leaf_value(of_leaf) == tree[leaf].value) continue;  // the longest step already
      flip.weight = 0.5 + random.fraction();
      if (with_shifts && t % 2 == 0) {
        flip.n_moving = 2;
        flip.shifted = node.split;
      }
      flips[t].flips.push_back(flip);
      keys.push_back({t, 0});
    }
    std::ranges::sort(keys, std::greater{}, [&](const Key& key) { return value_of(key); });
  }

  const Flip& at(const Key& key) const { return flips[key.first].flips[key.second]; }

  // By how much a flip alone shifts the score of the row.
  double shift_of(const Key& key) const {
    std::vector<TreeFlips> one(flips.size());
    one[key.first] = flips[key.first];
    return FlipShifts(*update.context, *update.changed, one, 1).of_rows().shifts[0];
  }
  // The rows that cost as much to regrow as the flip costs to settle, in the cheapest way.
  double work_for(const Key& key) const {
    const auto n_rows = static_cast<double>(update.context->n_rows);
    const auto n = static_cast<double>(update.model.nodes.tree(key.first)[at(key).node].sums.n);
    const auto n_moving = static_cast<double>(at(key).n_moving);
    return n_rows / 256 + (n_moving > 0 ? 5 * n_moving + n / 8 : n);
  }
  // Of one row, all shifts have the same slope.
  double value_of(const Key& key) const { return std::abs(shift_of(key)) / work_for(key); }

  // What settling some flips recovers and leaves.
  Outcome outcome(const std::set<Key>& settled, const ChangedScores& scores) const {
    Shifts shifts(1);
    for (const Key& key : keys) shifts.add(0, shift_of(key), settled.contains(key));
    Outcome found;
    RowLoss loss(*update.context, *update.changed);
    shifts.add_outcome(loss, 0, {scores.data(), 1}, found);
    return found;
  }

  static ModelOptions options() {
    ModelOptions options;
    options.training.n_estimators = 14;
    return options;
  }

  StartedUpdate update;
  ChangedScores before;
  std::vector<TreeFlips> flips;
  std::vector<Key> keys;  // those settled first come first
};

void check_one_row(std::uint64_t seed, bool with_shifts, int& n_partial, int& n_more) {
  OneRow one(seed, with_shifts);
  for (const double fidelity : {0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0}) {
    const Selected selected = select(one.update, fidelity_rule(fidelity), one.before, one.flips);
    REQUIRE(!one.keys.empty() && sum_of(selected.booked.memory) > 0);
    const double done = std::max(sum_of(selected.booked.achieved), 0.0);
    // The most valuable flips are settled, and when that is enough, others for a quarter more work.
    std::set<Key> settled;
    double work = 0, most = infinite;
    for (const Key& key : one.keys) {
      if (most == infinite &&
          one.outcome(settled, selected.booked.scores).is_enough(done, fidelity))
        most = 1.25 * work;
      if (work + one.work_for(key) > most) continue;
      n_more += most < infinite;
      work += one.work_for(key);
      settled.insert(key);
    }
    n_partial += !settled.empty() && settled.size() < one.keys.size();
    CHECK_EQ(selected.tolerance,
             settled.empty()
                 ? infinite
                 : growth_order_tolerance(one.update.context->n_rows,
                                          sum_of(selected.booked.memory) * memory_unit));
    for (const Key& key : one.keys) {
      const FlipAction way = one.at(key).n_moving > 0 ? FlipAction::shift : FlipAction::regrow;
      CHECK(selected.flips[key.first].actions[0] ==
            (settled.contains(key) ? way : FlipAction::none));
    }
    // All of it is only achieved by settling all.
    if (fidelity == 1) CHECK_EQ(settled.size(), one.keys.size());
  }
}

TEST_CASE("flips are settled in the order of their value until the target is reached") {
  int n_partial = 0, n_more = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) check_one_row(seed, false, n_partial, n_more);
  CHECK(n_partial > 10);
  CHECK(n_more > 5);
}

TEST_CASE("a threshold is shifted where that takes less work than regrowing") {
  int n_partial = 0, n_more = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) check_one_row(seed, true, n_partial, n_more);
  CHECK(n_partial > 10);
}

TEST_CASE("a row below the floor is ignored") {
  OneRow one(1, false);
  const Selected all = select(one.update, fidelity_rule(1), one.before, one.flips);
  const double memory = sum_of(all.booked.memory) * memory_unit;
  const auto n_settled = [&](double fidelity, double floor) {
    const Selected selected =
        select(one.update, fidelity_rule(fidelity, floor), one.before, one.flips);
    std::size_t n = 0;
    for (const TreeFlips& of_tree : selected.flips)
      n += of_tree.actions.size() -
           static_cast<std::size_t>(std::ranges::count(of_tree.actions, FlipAction::none));
    return n;
  };
  CHECK_EQ(n_settled(1, memory), one.keys.size());
  CHECK_EQ(n_settled(1, memory * 1.0001), 0);
  // When it has fallen below the floor, it is ignored, too. A higher target asks for less.
  CHECK_EQ(n_settled(0.85, memory), 1);
  CHECK(n_settled(0.85, 0) > 1);
  CHECK(n_settled(0.95, memory) > 1);
}

// --- flips of surveys ----------------------------------------------------------------------------

// An update whose trees are surveyed.
class Surveyed {
 public:
  Surveyed(const ModelOptions& options, double share_removed, std::uint64_t seed)
      : update(options, 200, 5, share_removed, seed, false, fidelity_rule(1)),
        before(scores_before(*update.context, *update.changed)) {
    Random random(seed);
    flips = testing::survey_all(update, random);
  }

  // The flips on the paths of rows that are remembered.
  std::set<Key> eligible(const MemoryWhenBooked& booked, double floor) const {
    std::set<Key> found;
    for (std::size_t row = 0; row < update.changed->size(); ++row) {
      if (!(booked.memory[row] > 0) ||
          static_cast<double>(booked.memory[row]) * memory_unit < floor)
        continue;
      for (std::size_t t = 0; t < flips.size(); ++t) {
        const Tree& tree = update.model.nodes.tree(t);
        NodeIndex i = tree.leaves[update.changed->leaf(t, row)];
        for (; i != no_node; i = tree[i].parent) {
          for (std::size_t f = 0; f < flips[t].flips.size(); ++f)
            if (flips[t].flips[f].node == i) found.insert({t, f});
        }
      }
    }
    return found;
  }

  StartedUpdate update;
  ChangedScores before;
  std::vector<TreeFlips> flips;
};

struct Found {
  int settled = 0, kept = 0, shifted = 0, voids = 0;
};

void check_selection(const ModelOptions& options, double share_removed, double floor,
                     std::uint64_t seed, Found& found) {
  Surveyed surveyed(options, share_removed, seed);
  for (const double fidelity : {0.01, 0.3, 0.6, 0.8, 0.9, 0.95, 1.0}) {
    const Selected selected =
        select(surveyed.update, fidelity_rule(fidelity, floor), surveyed.before, surveyed.flips);
    const std::set<Key> eligible = surveyed.eligible(selected.booked, floor);
    bool any = false;
    for (std::size_t t = 0; t < selected.flips.size(); ++t) {
      const TreeFlips& of_tree = selected.flips[t];
      REQUIRE(of_tree.actions.size() == of_tree.flips.size());
      for (std::size_t f = 0; f < of_tree.flips.size(); ++f) {
        const Flip& flip = of_tree.flips[f];
        const FlipAction action = of_tree.actions[f];
        const bool can_shift = flip.n_moving > 0;
        any |= action != FlipAction::none;
        found.voids += flip.is_void;
        found.settled += action != FlipAction::none;
        found.kept += action == FlipAction::none;
        found.shifted += action == FlipAction::shift;
        if (flip.is_void) CHECK(action == (can_shift ? FlipAction::shift : FlipAction::regrow));
        if (!flip.is_void && !eligible.contains({t, f})) CHECK(action == FlipAction::none);
        if (action == FlipAction::shift) CHECK(can_shift);
      }
    }
    CHECK_EQ(selected.tolerance == infinite, !any);
    CHECK(selected.tolerance >= 1);
  }
}

TEST_CASE("only flips of remembered rows are settled") {
  Found found;
  std::uint64_t seed = 1;
  for (const ModelOptions& options : various_models()) {
    for (const double share_removed : {0.01, 0.1}) {
      check_selection(options, share_removed, 0, seed, found);
      check_selection(options, share_removed, 0.02, seed++, found);
    }
  }
  CHECK(found.settled > 100);
  CHECK(found.kept > 100);
  CHECK(found.shifted > 0);
}

TEST_CASE("splits that are void never stay, and with a huge floor nothing else is settled") {
  Found found;
  std::uint64_t seed = 30;
  for (ModelOptions options : various_models()) {
    options.training.min_samples_leaf = 12;
    check_selection(options, 0.3, 0, seed, found);
    Surveyed surveyed(options, 0.3, seed++);
    for (const double fidelity : {0.5, 1.0}) {
      const Selected selected =
          select(surveyed.update, fidelity_rule(fidelity, 1e9), surveyed.before, surveyed.flips);
      for (const TreeFlips& of_tree : selected.flips) {
        for (std::size_t f = 0; f < of_tree.flips.size(); ++f)
          CHECK_EQ(of_tree.actions[f] != FlipAction::none, of_tree.flips[f].is_void);
      }
    }
  }
  CHECK(found.voids > 50);
}

TEST_CASE("enough is recovered if all flips can recover it") {
  int n_enough = 0;
  std::uint64_t seed = 60;
  for (const ModelOptions& options : various_models()) {
    for (const double fidelity : {0.5, 0.8, 0.95}) {
      Surveyed surveyed(options, 0.03, seed++);
      const Selected selected =
          select(surveyed.update, fidelity_rule(fidelity), surveyed.before, surveyed.flips);
      std::vector<TreeFlips> settled(selected.flips.size());
      for (std::size_t t = 0; t < settled.size(); ++t) {
        const Tree& tree = surveyed.update.model.nodes.tree(t);
        const TreeFlips& of_tree = selected.flips[t];
        for (std::size_t f = 0; f < of_tree.flips.size(); ++f) {
          // Regrowing a node settles all flips below.
          bool is_settled = of_tree.actions[f] != FlipAction::none;
          NodeIndex i = tree[of_tree.flips[f].node].parent;
          for (; i != no_node; i = tree[i].parent) {
            for (std::size_t g = 0; g < of_tree.flips.size(); ++g)
              is_settled |= of_tree.flips[g].node == i && of_tree.actions[g] == FlipAction::regrow;
          }
          if (is_settled) settled[t].flips.push_back(of_tree.flips[f]);
        }
      }
      // The shifts of single flips depend on which is topmost: those of all flips are looked at.
      const FlipShifts shifts(*surveyed.update.context, *surveyed.update.changed, surveyed.flips,
                              1);
      RowLoss loss(*surveyed.update.context, *surveyed.update.changed);
      Outcome outcome;
      bool any_left = false;
      const std::size_t k = surveyed.update.model.base_scores.size();
      for (std::size_t row = 0; row < surveyed.update.changed->size(); ++row) {
        if (selected.booked.memory[row] <= 0) continue;
        Shifts of_row(k);
        shifts.for_each(row, [&](std::size_t t, std::uint32_t f, double shift) {
          const NodeIndex node = surveyed.flips[t].flips[f].node;
          const auto found = std::ranges::find(settled[t].flips, node, &Flip::node);
          of_row.add(t % k, shift, found != settled[t].flips.end());
        });
        Outcome of_one;
        of_row.add_outcome(loss, row, {selected.booked.scores.data() + row * k, k}, of_one);
        outcome.recovered += of_one.recovered;
        if (of_one.left > 0) outcome.left += of_one.left, any_left = true;
      }
      const double done = std::max(sum_of(selected.booked.achieved), 0.0);
      const bool is_enough = outcome.is_enough(done, fidelity);
      const std::set<Key> eligible = surveyed.eligible(selected.booked, 0);
      std::size_t n_settled = 0, n_eligible = 0;
      for (std::size_t t = 0; t < settled.size(); ++t) {
        for (std::size_t f = 0; f < surveyed.flips[t].flips.size(); ++f) {
          if (!eligible.contains({t, f})) continue;
          ++n_eligible;
          const NodeIndex node = surveyed.flips[t].flips[f].node;
          n_settled +=
              std::ranges::find(settled[t].flips, node, &Flip::node) != settled[t].flips.end();
        }
      }
      // Flips that shift nothing may stay.
      CHECK(is_enough || !any_left || n_settled * 10 >= n_eligible * 9);
      n_enough += is_enough;
    }
  }
  CHECK(n_enough >= 8);
}

}  // namespace
}  // namespace graftboost
