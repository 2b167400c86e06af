// Measures the operations whose costs engine/update/update_cost.hpp states: make update-cost
//
// Times depend on the machine and on what else it does; what matters are the proportions. The
// model is of a common shape: 200,000 rows, 20 columns, 100 candidates each.
#include "update/update_cost.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "core/hashing.hpp"
#include "data/table.hpp"
#include "model/model.hpp"
#include "model/running_terms.hpp"
#include "train/growing_rows.hpp"
#include "train/row_partition.hpp"
#include "train/split_evaluation.hpp"
#include "update/path_histogram.hpp"

namespace {

using namespace graftboost;

constexpr std::size_t n_rows = 200'000, n_columns = 20;
constexpr int n_trees = 20;

// The least time of several runs, in nanoseconds per operation.
double time_of(double n_operations, const std::function<void()>& run) {
  double best = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 7; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / n_operations);
  }
  return best;
}

void report(const char* name, double measured, double stated) {
  std::printf("%-16s %8.2f ns %8.2f stated\n", name, measured, stated);
}

std::unique_ptr<Model> fit() {
  std::vector<double> x(n_rows * n_columns), y(n_rows);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = as_fraction(hash(1, 0, i));
  for (std::size_t r = 0; r < n_rows; ++r)
    y[r] = x[r * n_columns] + x[r * n_columns + 1] * x[r * n_columns + 2] +
                       0.3 * as_fraction(hash(2, 0, r)) >
                   0.9
               ? 1
               : 0;
  const DenseTable<double> table{x.data(), n_rows, n_columns, n_columns, 1};
  BinningParams binning;
  binning.max_bins = 1024;
  binning.split_sample = 0.1;
  auto bins = std::make_shared<const BinMap>(BinMap::fit(table, {}, {}, binning, 1));
  FitParams params;
  params.loss = LossKind::logistic;
  params.n_classes = 2;
  params.training.n_estimators = n_trees;
  const Sample<DenseTable<double>> sample{table, y, {}, {}};
  return Model::fit<DenseTable<double>>(std::move(bins), sample, nullptr, params, {}, 1);
}

// Every other row, which is about as regular as the rows of a node.
std::vector<Slot> half_of_rows() {
  std::vector<Slot> slots;
  for (Slot row = 0; row < n_rows; ++row)
    if (hash(3, 0, row) % 2 == 0) slots.push_back(row);
  slots.resize(slots.size() + slots_read_ahead);
  return slots;
}

void measure(const ModelState& model) {
  const RowShard& shard = model.shards[0];
  const CodeLayout& layout = model.layout();
  const std::size_t n_cells = layout.histogram_size();
  const std::vector<Slot> slots = half_of_rows();
  const std::span<const Slot> rows(slots.data(), slots.size() - slots_read_ahead);
  const auto n = static_cast<double>(rows.size());
  const RecordedGradients recorded = shard.recorded_in(0, model.loss.kind);
  const GainParams gain = model.gain_params();

  Histogram<PackedSums> histogram(n_cells);
  histogram.fill(PackedSums(Totals{}));
  report("counted_cell",
         time_of(n * n_columns, [&] { accumulate(shard.rows, recorded, rows, histogram.data()); }),
         cost::counted_cell);

  NodeHistogram<PackedSums> node(layout, histogram);
  std::vector<std::uint32_t> cells;
  report("booked_cell",
         time_of(20'000.0 * n_columns,
                 [&] {
                   for (Slot row = 0; row < 20'000; ++row) {
                     cells.clear();
                     shard.rows.for_each_cell(row,
                                              [&](std::uint32_t cell) { cells.push_back(cell); });
                     node.book(cells, PackedSums(recorded.of(row)), row % 2 == 0);
                   }
                 }),
         cost::booked_cell);

  const Tree& tree = model.nodes.tree(0);
  std::int64_t sum = 0;
  report("booked_row",
         time_of(20'000,
                 [&] {
                   for (Slot row = 0; row < 20'000; ++row) {
                     const NodeIndex leaf = tree.route(
                         [&](std::uint32_t column) { return shard.rows.code(row, column); });
                     const Totals totals = recorded.of(row);
                     for (NodeIndex i = leaf; i != no_node; i = tree[i].parent) sum += totals.g;
                   }
                 }),
         cost::booked_row);

  PathHistogram<PackedSums> path(layout);
  double best = 0;
  report("evaluated_cell",
         time_of(static_cast<double>(n_cells),
                 [&] {
                   path.set_cached(0, tree[0].sums, node, false);
                   path.set_cached(1, tree[0].sums, node, true);
                   SplitEvaluator<PackedSums> evaluator(gain, tree[0].sums);
                   for (const std::uint32_t number : layout.by_offset())
                     best += evaluator.best(layout[number], path.of_feature(0, number)).gain;
                   for (const std::uint32_t number : layout.by_offset())
                     best += path.of_feature(1, number).sums == nullptr ? 1 : 0;
                 }),
         cost::evaluated_cell);

  const GrowingCells active = GrowingCells::of_layout(model.shards);
  RowPartition partition(shard.rows, active.entries(0), 1);
  report("partitioned_row",
         time_of(n,
                 [&] {
                   std::copy(rows.begin(), rows.end(), partition.start(rows.size()));
                   partition.split(0, tree[0].split, 1, 2);
                 }),
         cost::partitioned_row);

  const ScoreTerms score_terms(model, n_trees, true);
  std::vector<double> terms(n_rows, score_terms.of(0.1));
  GradientArray gradients(model.loss.records_wide(), n_rows);
  RecordScratch scratch(1);
  report("recorded_row",
         time_of(n_rows,
                 [&] {
                   score_terms.record(model.recording_rows(0, 0), {terms.data()},
                                      {gradients.data()}, 0, n_rows, ScoresFromLeaves(model, 0, 0),
                                      scratch);
                 }),
         cost::recorded_row);

  const std::vector<double> of_leaves = score_terms.of_leaves(tree);
  report("carried_value",
         time_of(n_rows,
                 [&] {
                   score_terms.pass(shard.trees[0].leaf_ids, of_leaves, terms.data(), 0, n_rows);
                   best += terms[0];
                 }),
         cost::carried_value);

  RunningTerms running(model, 1);
  running.begin_iteration(n_trees, 0);  // few rows are asked for, so terms are not carried
  report("gathered_value",
         time_of(4096.0 * n_trees,
                 [&] {
                   for (std::size_t begin = 0; begin < 4096; begin += 2048)
                     best += running.gather(0, rows.subspan(begin, 2048))[0][0];
                 }),
         cost::gathered_value);

  Array<Slot> found(n_rows);
  report("looked_up_row",
         time_of(n_rows,
                 [&] {
                   sum += static_cast<std::int64_t>(
                       select_rows(shard.trees[0].leaf_ids, n_rows, {1, 2}, found.data()));
                 }),
         cost::looked_up_row);

  const Split& split = tree[0].split;
  report("compared_row",
         time_of(n,
                 [&] {
                   for (const Slot row : rows)
                     sum += split.goes_left(shard.rows.code(row, split.feature));
                 }),
         cost::compared_row);

  std::printf("%s\n", sum == 42 && best == 42 ? "" : " ");  // keeps the results alive
}

}  // namespace

int main() {
  fit()->read([](const ModelState& model) {
    measure(model);
    return 0;
  });
}
