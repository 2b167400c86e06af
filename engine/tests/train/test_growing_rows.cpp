#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/check.hpp"
#include "tests/train/encoded_rows.hpp"
#include "train/growing_rows.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::Random;
using testing::random_rows;
using testing::random_split;
using testing::recorded;

// The counted cells by their number in the layout, without those that nobody reads: implied ones.
template <class Sums>
std::map<std::size_t, Totals> by_layout(const ActiveCells& active,
                                        const Histogram<Sums>& histogram) {
  std::map<std::size_t, Totals> cells;
  for (std::size_t i = 0; i < active.size(); ++i) {
    const Totals totals(histogram[i]);
    if (std::ranges::count(active.layout().implied_cells(), active.cell(i)) == 0 &&
        totals != Totals{})
      cells[active.cell(i)] = totals;
  }
  return cells;
}

// What the rows that `belongs` selects add to each cell of the layout.
template <class Belongs>
std::map<std::size_t, Totals> naive_cells(const ModelState& model, std::size_t t,
                                          Belongs&& belongs) {
  std::map<std::size_t, Totals> cells;
  for (std::size_t s = 0; s < model.shards.size(); ++s) {
    const RowTable& rows = model.shards[s].rows;
    for (Slot row = 0; row < rows.size(); ++row) {
      if (!belongs(rows, row)) continue;
      for (std::size_t f = 0; f < model.layout().size(); ++f) {
        const FeatureLayout& feature = model.layout()[f];
        const Code code = rows.code(row, feature.column);
        if (feature.counts_only_differing() && code == feature.common_code) continue;
        cells[feature.offset + code] += recorded(model, t, s, row);
      }
    }
  }
  std::erase_if(cells, [](const auto& cell) { return cell.second == Totals{}; });
  return cells;
}

template <class Sums>
void check_counts(const ModelState& model, bool of_layout, int n_threads) {
  const GrowingCells cells =
      of_layout ? GrowingCells::of_layout(model.shards) : GrowingCells::of_rows(model.shards);
  GrowingRows<Sums> rows(model.shards, cells, n_threads);
  for (std::size_t t = 0; t < 2; ++t) {
    Random random(t);
    // All rows, or some.
    const auto is_in_root = [&](const RowTable& table, Slot row) {
      return t == 0 || table.ids[row] % 3 != 0;
    };
    rows.begin(t, model.loss.kind);
    Totals total;
    for (std::size_t s = 0; s < model.shards.size(); ++s) {
      const RowTable& table = model.shards[s].rows;
      Slot* slots = rows.start(s, table.size());
      std::size_t n = 0;
      for (Slot row = 0; row < table.size(); ++row) {
        if (!is_in_root(table, row)) continue;
        slots[n++] = row;
        total += recorded(model, t, s, row);
      }
      rows.start(s, n);
    }
    Histogram<Sums> root(cells.active().size()), counted(cells.active().size());
    // What was there before does not matter.
    root.fill(Sums(Totals{5, 5, 5}));
    rows.count_root(root);
    CHECK(by_layout(cells.active(), root) == naive_cells(model, t, is_in_root));
    CHECK(rows.total() == total);
    const Split split = random_split(model.layout()[random.below(model.layout().size())], random);
    rows.split(0, split, 1, 2);
    for (const NodeIndex node : {1, 2}) {
      const auto is_in_node = [&](const RowTable& table, Slot row) {
        return is_in_root(table, row) &&
               split.goes_left(table.code(row, split.feature)) == (node == 1);
      };
      int n_calls = 0;
      counted.fill(Sums(Totals{7, 7, 7}));
      rows.count(node, counted, [&] { ++n_calls; });
      CHECK_EQ(n_calls, 1);
      CHECK(by_layout(cells.active(), counted) == naive_cells(model, t, is_in_node));
    }
  }
}

TEST_CASE("histograms are those of a naive count, for any number of shards and threads") {
  ModelOptions mixed, weighted, sparse;
  weighted.weighted = true;
  weighted.loss = LossKind::squared;
  weighted.max_bins = 300;
  sparse.many_columns = true;
  for (ModelOptions options : {mixed, weighted, sparse}) {
    options.training.n_estimators = 2;
    for (const std::size_t n_shards : {1, 2, 3, 7}) {
      options.n_shards = n_shards;
      const ModelState model = fit_state(random_rows(options, 250, 1), options);
      for (const bool of_layout : {false, true}) {
        for (const int n_threads : {1, 3}) {
          check_counts<WideSums>(model, of_layout, n_threads);
          if (!options.weighted) check_counts<PackedSums>(model, of_layout, n_threads);
        }
      }
    }
  }
}

TEST_CASE("threads share the rows of large nodes") {
  ModelOptions mixed, sparse;
  sparse.many_columns = true;
  for (ModelOptions options : {mixed, sparse}) {
    options.training.n_estimators = 2;
    options.training.max_leaf_nodes = 3;
    options.n_shards = 2;
    const ModelState model = fit_state(random_rows(options, 3000, 2), options);
    check_counts<PackedSums>(model, true, 3);
    check_counts<PackedSums>(model, false, 3);
  }
}

}  // namespace
}  // namespace graftboost
