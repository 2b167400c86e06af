#include <algorithm>
#include <cstdint>
#include <list>
#include <set>
#include <variant>
#include <vector>

#include "model/rows_by_node.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "update/booking.hpp"

namespace graftboost {
namespace {

using testing::for_sums_of;
using testing::is_same;
using testing::ModelOptions;
using testing::naive_total;
using testing::Random;
using testing::StartedUpdate;
using testing::various_models;

// The nodes on the path of a changed row.
std::set<NodeIndex> path_of(const StartedUpdate& update, std::size_t t, std::size_t row) {
  const Tree& tree = update.model.nodes.tree(t);
  std::set<NodeIndex> path;
  for (NodeIndex i = tree.leaves[update.changed->leaf(t, row)]; i != no_node; i = tree[i].parent)
    path.insert(i);
  return path;
}

// Books the sums of each tree, and calls book(booker, tree, touched nodes) for its histograms.
template <class Book>
void book_trees(StartedUpdate& update, Random& random, UpdateCounts& counts, Book&& book) {
  const ModelState& model = update.model;
  const bool grouped = GainBounds::are_grouped(model.layout());
  for_sums_of(model, [&]<class Sums>(Sums) {
    HistogramBooker<Sums> booker(*update.context);
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      update.book_sums(t, random, counts);
      TouchedNodes touched;
      touched.reset(model.nodes.tree(t).nodes.size(), grouped);
      book(booker, t, touched);
    }
  });
}

TEST_CASE("booked sums are those of the rows that the model holds then") {
  for (const ModelOptions& options : various_models()) {
    Random random(1);
    StartedUpdate update(options, 150, 8, 0.05, 1);
    ModelState& model = update.model;
    UpdateCounts counts;
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      const auto scores = update.book_sums(t, random, counts);
      const Tree& tree = model.nodes.tree(t);
      for (std::size_t i = 0; i < tree.nodes.size(); ++i)
        CHECK(tree.nodes[i].sums == naive_total(model, t, static_cast<NodeIndex>(i)));
      for (std::size_t i = 0; i < update.changed->n_added(); ++i) {
        const std::size_t row = update.changed->n_removed() + i;
        const Node& leaf = tree[tree.leaves[update.changed->leaf(t, row)]];
        CHECK_EQ(scores[i], leaf.value);
        CHECK_EQ(leaf.value, model.leaf_value(leaf.sums));
        // The leaf is the one that the row's codes lead to.
        const auto [shard, slot] = update.changed->location(row);
        const RowTable& rows = model.shards[shard].rows;
        CHECK_EQ(leaf.leaf,
                 tree[tree.route([&](std::uint32_t c) { return rows.code(slot, c); })].leaf);
        const bool counts_here = model.params.in_subsample(t, rows.ids[slot]);
        CHECK(counts_here || model.shards[shard].trees[t].recorded[slot] == 0);
      }
    }
    CHECK(counts.work.amount() > 0);
  }
}

TEST_CASE("booked histograms are those of the rows that the model holds then") {
  for (const ModelOptions& options : various_models()) {
    Random random(2);
    StartedUpdate update(options, 150, 8, 0.05, 2);
    const ModelState& model = update.model;
    UpdateCounts counts;
    book_trees(update, random, counts, [&](auto& booker, std::size_t t, TouchedNodes& touched) {
      std::set<NodeIndex> expected;
      for (std::size_t row = 0; row < update.changed->size(); ++row) {
        if (model.params.in_subsample(t, update.changed->rows().ids[row]))
          expected.merge(path_of(update, t, row));
      }
      CHECK_EQ(booker.book_all(t, *update.changed, touched, counts), !expected.empty());
      for (std::size_t i = 0; i < touched.touched.size(); ++i)
        CHECK_EQ(touched[static_cast<NodeIndex>(i)], expected.contains(static_cast<NodeIndex>(i)));
    });
    CHECK(testing::check_sums(model) > 0);
  }
}

TEST_CASE("unbooking restores every histogram") {
  for (const ModelOptions& options : various_models()) {
    Random random(3);
    StartedUpdate update(options, 150, 8, 0.05, 3);
    ModelState& model = update.model;
    UpdateCounts counts;
    book_trees(
        update, random, counts,
        [&]<class Sums>(HistogramBooker<Sums>& booker, std::size_t t, TouchedNodes& touched) {
          TreeNodes& nodes = model.nodes[t];
          booker.book_all(t, *update.changed, touched, counts);
          booker.book_all(t, *update.changed, touched, counts, true);
          const auto& now = std::get<TreeHistograms<Sums>>(nodes.histograms);
          const auto& then = std::get<TreeHistograms<Sums>>(update.before.nodes[t].histograms);
          REQUIRE(now.size() == then.size());
          for (std::size_t i = 0; i < now.size(); ++i) {
            CHECK_EQ(now[i].cached, then[i].cached);
            CHECK(now[i] == then[i]);
          }
        });
  }
}

// Rows of the subsample that are in one of the leaves below `top` move to others of them: all rows of
// the first leaf, few of the others.
std::vector<MovedRow> move_rows(ModelState& model, std::size_t t, NodeIndex top, RowShard& shard) {
  const std::vector<std::int32_t> leaves = model.nodes.tree(t).leaf_ids_under(top);
  std::vector<MovedRow> moved;
  const RecordedGradients recorded = shard.recorded_in(t, model.loss.kind);
  for (Slot row = 0; row < shard.size(); ++row) {
    const auto found = std::ranges::find(leaves, std::int32_t{shard.trees[t].leaf_ids[row]});
    if (found == leaves.end() || !model.params.in_subsample(t, shard.rows.ids[row])) continue;
    if (found != leaves.begin() && row % 8 != 0) continue;
    const auto next = found + 1 == leaves.end() ? leaves.begin() : found + 1;
    const auto to = static_cast<std::uint16_t>(*next);
    moved.push_back({row, static_cast<std::uint16_t>(*found), to, recorded.of(row)});
    shard.place(t, row, to, recorded.gradient[row]);
  }
  return moved;
}

TEST_CASE("rows that move from leaf to leaf are booked, together and one by one") {
  std::size_t n_nodes = 0, n_bounded = 0;
  for (const ModelOptions& options : various_models()) {
    StartedUpdate update(options, 400, 0, 0, 6);
    ModelState& model = update.model;
    const bool grouped = GainBounds::are_grouped(model.layout());
    for_sums_of(model, [&]<class Sums>(Sums) {
      HistogramBooker<Sums> booker(*update.context);
      for (std::size_t t = 0; t < model.nodes.size(); ++t) {
        TreeNodes& nodes = model.nodes[t];
        for (NodeIndex top = 0; top < static_cast<NodeIndex>(nodes.tree.nodes.size()); ++top) {
          if (nodes.tree[top].is_leaf()) continue;
          for (RowShard& shard : model.shards) {
            const std::vector<MovedRow> moved = move_rows(model, t, top, shard);
            std::set<NodeIndex> expected;
            const auto change = [&](std::uint16_t leaf, const Totals& totals, bool enters) {
              for (NodeIndex i = nodes.tree.leaves[leaf]; i != top; i = nodes.tree[i].parent) {
                expected.insert(i);
                enters ? nodes.tree[i].sums += totals : nodes.tree[i].sums -= totals;
              }
            };
            for (const MovedRow& row : moved) {
              change(row.from, row.totals, false);
              change(row.to, row.totals, true);
            }
            TouchedNodes touched;
            touched.reset(nodes.tree.nodes.size(), grouped);
            UpdateCounts counts;
            std::list<WipedVector<std::uint32_t>> features;
            booker.book_moved(nodes, top, shard.rows, moved, features, touched, counts);
            for (std::size_t i = 0; i < touched.touched.size(); ++i)
              CHECK_EQ(touched[static_cast<NodeIndex>(i)],
                       expected.contains(static_cast<NodeIndex>(i)));
            n_nodes += expected.size();
            for (const NodeIndex i : expected)
              n_bounded += nodes.bounds[static_cast<std::size_t>(i)].known();
          }
        }
        // By leaf ids, because the rows are not in the leaves that their codes lead to.
        const RowsByNode by_node(model, t);
        const auto& histograms = std::get<TreeHistograms<Sums>>(nodes.histograms);
        for (std::size_t i = 0; i < histograms.size(); ++i) {
          const auto index = static_cast<NodeIndex>(i);
          CHECK(nodes.tree[index].sums == by_node.total(index));
          if (!histograms[i].cached) continue;
          Histogram<Sums> counted = by_node.count<Sums>(index);
          CHECK(histograms[i] == NodeHistogram<Sums>(model.layout(), counted));
        }
      }
    });
  }
  CHECK(n_bounded > 0);
  CHECK(n_bounded < n_nodes);
}

TEST_CASE("cells of columns that are laid out are booked for the rows that stay") {
  std::size_t n_laid_out = 0;
  for (const ModelOptions& options : various_models()) {
    Random random(4);
    StartedUpdate update(options, 150, 8, 0.05, 4, true);
    n_laid_out += update.n_laid_out;
    UpdateCounts counts;
    book_trees(update, random, counts, [&](auto& booker, std::size_t t, TouchedNodes& touched) {
      booker.book_new_cells(t, *update.changed, false);
      booker.book_all(t, *update.changed, touched, counts);
    });
    CHECK(testing::check_sums(update.model) > 0);
  }
  CHECK(n_laid_out > 8);
}

TEST_CASE("rows that are added and removed again leave every node and histogram as it was") {
  for (ModelOptions options : various_models()) {
    // Enough rows for a leaf never have the rare columns: a layout would not shrink back.
    options.training.min_samples_leaf = 12;
    const auto rows = testing::random_rows(options, 208, 5);
    const auto model = testing::fit_model(rows.slice(0, 200), options);
    const ModelState before = testing::state_of(*model);
    const auto added = rows.slice(200, 208);
    testing::change(*model, added, {}, testing::never_regrow);
    CHECK(!is_same(before.nodes.tree(0).nodes, testing::state_of(*model).nodes.tree(0).nodes));
    testing::change(*model, rows.slice(0, 0), added.ids(), testing::never_regrow);
    const ModelState after = testing::state_of(*model);
    testing::check_same(before, after);
    CHECK_EQ(after.layout().histogram_size(), before.layout().histogram_size());
    for (std::size_t t = 0; t < before.nodes.size(); ++t) {
      for_sums_of(before, [&]<class Sums>(Sums) {
        const auto& a = std::get<TreeHistograms<Sums>>(before.nodes[t].histograms);
        const auto& b = std::get<TreeHistograms<Sums>>(after.nodes[t].histograms);
        CHECK(std::ranges::equal(a, b));
      });
    }
  }
}

}  // namespace
}  // namespace graftboost
