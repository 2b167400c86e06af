#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "update/row_answers.hpp"

namespace graftboost {
namespace {

Array<Slot> slots;  // memory to work in

using testing::check_histogram;
using testing::contents_of;
using testing::fit_state;
using testing::for_sums_of;
using testing::ModelOptions;
using testing::naive_histogram;
using testing::Random;
using testing::random_rows;
using testing::recorded;
using testing::StartedUpdate;
using testing::various_models;

TEST_CASE("counted nodes have the rows of all shards, added ones in and removed ones left out") {
  for (const ModelOptions& options : various_models()) {
    for (const double share_removed : {0.03, 0.4}) {
      Random random(1);
      StartedUpdate update(options, 150, 8, share_removed, 1);
      ModelState& model = update.model;
      UpdateCounts counts;
      for (std::size_t t = 0; t < model.nodes.size(); ++t) {
        update.book_sums(t, random, counts);
        for (std::size_t i = 0; i < model.nodes.tree(t).nodes.size(); ++i) {
          const auto node = static_cast<NodeIndex>(i);
          for_sums_of(model, [&]<class Sums>(Sums) {
            const Histogram<Sums> counted =
                count_nodes<Sums>(*update.context, t, {&node, 1}, slots)[0];
            REQUIRE(counted.size() == model.layout().histogram_size());
            check_histogram(model.layout(), counted.data(), naive_histogram(model, t, node));
          });
        }
      }
    }
  }
}

// Another edge of the same feature, or another category.
Split other_split(const ModelState& model, const Split& split, Random& random) {
  const FeatureLayout& feature = model.layout().of(split.feature);
  Split other = split;
  while (other == split) {
    if (feature.categorical) {
      other.low = static_cast<Code>(random.below(feature.n_codes));
    } else {
      other.low = static_cast<Code>(random.below(2));
      other.span = static_cast<Code>(random.below(feature.n_codes - 1u));
      if (other.low == 0 && other.span == 0) other.span = 1;
    }
  }
  return other;
}

TEST_CASE("a shift moves exactly the rows between the two splits, and reports those that count") {
  std::size_t n_reported = 0, n_silent = 0;
  for (const ModelOptions& options : various_models()) {
    Random random(2);
    StartedUpdate update(options, 150, 8, 0.05, 2);
    ModelState& model = update.model;
    UpdateCounts counts;
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      update.book_sums(t, random, counts);
      Tree& tree = model.nodes[t].tree;
      std::vector<NodeIndex> splits;
      for (std::size_t i = 0; i < tree.nodes.size(); ++i)
        if (!tree.nodes[i].is_leaf()) splits.push_back(static_cast<NodeIndex>(i));
      const NodeIndex top = splits[random.below(splits.size())];
      const Split before = tree[top].split, after = other_split(model, before, random);

      struct Expected {
        std::uint16_t from, to;
        Totals totals;
      };
      std::vector<std::map<Slot, Expected>> expected(model.shards.size());
      std::vector<std::vector<std::uint16_t>> leaves(model.shards.size());
      const Tree old = tree;
      tree[top].split = after;
      for (std::size_t s = 0; s < model.shards.size(); ++s) {
        const RowShard& shard = model.shards[s];
        for (Slot row = 0; row < shard.size(); ++row) {
          const auto code_of = [&](std::uint32_t c) { return shard.rows.code(row, c); };
          const std::uint16_t from = shard.trees[t].leaf_ids[row];
          const auto to = static_cast<std::uint16_t>(tree[tree.route(code_of)].leaf);
          const bool is_removed = std::ranges::binary_search(shard.removed(), row);
          leaves[s].push_back(is_removed ? from : to);
          NodeIndex at = old.route(code_of);
          while (at != top && at != no_node) at = old[at].parent;
          const Code code = code_of(before.feature);
          const bool moves = at == top && before.goes_left(code) != after.goes_left(code);
          CHECK(moves || from == to);
          if (!moves || is_removed) continue;
          if (model.params.in_subsample(t, shard.rows.ids[row])) {
            expected[s][row] = {from, to, recorded(model, t, s, row)};
          } else {
            ++n_silent;
          }
        }
      }
      for (std::size_t s = 0; s < model.shards.size(); ++s) {
        RowShard& shard = model.shards[s];
        const auto moved = shard.shift(t, tree, top, before, model.params, model.loss.kind, slots);
        CHECK_EQ(moved.size(), expected[s].size());
        for (const MovedRow& row : moved) {
          REQUIRE(expected[s].contains(row.row));
          CHECK_EQ(row.from, expected[s][row.row].from);
          CHECK_EQ(row.to, expected[s][row.row].to);
          CHECK(row.totals == expected[s][row.row].totals);
        }
        n_reported += moved.size();
        for (Slot row = 0; row < shard.size(); ++row)
          CHECK_EQ(shard.trees[t].leaf_ids[row], leaves[s][row]);
      }
    }
    // An update that does not complete leaves no row where it was moved to.
    update.undo.reset();
    for (RowShard& shard : model.shards) shard.undo();
    CHECK(contents_of(model).rows == contents_of(update.before).rows);
  }
  CHECK(n_reported > 100);
  CHECK(n_silent > 10);
}

TEST_CASE("a check is answered with the histograms and the rows that it asks for") {
  ModelOptions options;
  options.n_shards = 2;
  Random random(3);
  StartedUpdate update(options, 150, 8, 0.05, 3);
  ModelState& model = update.model;
  UpdateCounts counts;
  update.book_sums(1, random, counts);
  Tree& tree = model.nodes[1].tree;
  TreeCheck<PackedSums> check;
  check.reset(1, tree.nodes.size(), false);
  check.to_count = {4, 2, 4};
  answer(*update.context, check, slots);
  REQUIRE(check.counted.size() == 2);
  for (const auto& [node, histogram] : check.counted)
    check_histogram(model.layout(), histogram.data(), naive_histogram(model, 1, node));
  CHECK(check.moved.empty());

  const Split before = tree[0].split;
  tree[0].split = other_split(model, before, random);
  check.to_count.clear();
  check.shifts = {{0, before}};
  answer(*update.context, check, slots);
  REQUIRE(check.moved.size() == 1);
  REQUIRE(check.moved[0].size() == 2);
  for (std::size_t s = 0; s < 2; ++s) CHECK(check.moved[0][s].rows == &model.shards[s].rows);
}

TEST_CASE("recounted trees have the histograms that they were grown with") {
  for (ModelOptions options : various_models()) {
    options.histogram_memory = std::numeric_limits<std::size_t>::max();
    const ModelState before = fit_state(random_rows(options, 200, 4), options);
    ModelState model = before;
    for (TreeNodes& nodes : model.nodes) nodes.drop_histograms();
    for_sums_of(model, [&]<class Sums>(Sums) {
      for (std::size_t t = 0; t < model.nodes.size(); ++t) {
        recount_tree<Sums>(model, t, model.gain_params());
        const auto& a = std::get<TreeHistograms<Sums>>(before.nodes[t].histograms);
        const auto& b = std::get<TreeHistograms<Sums>>(model.nodes[t].histograms);
        REQUIRE(a.size() == b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          CHECK_EQ(a[i].cached, b[i].cached);
          CHECK(a[i] == b[i]);
        }
      }
    });
  }
}

}  // namespace
}  // namespace graftboost
