#include <cstdint>
#include <vector>

#include "predict/scorer.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/tables.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::naive_code;
using testing::OwnedTable;
using testing::Random;
using testing::random_rows;
using testing::TrainingRows;

template <class Value>
OwnedTable<Value> converted(const OwnedTable<double>& table) {
  std::vector<Value> cells;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    for (std::size_t c = 0; c < table.columns(); ++c)
      cells.push_back(static_cast<Value>(table.at(r, c)));
  }
  return {table.columns(), cells, {table.ids().begin(), table.ids().end()}};
}

template <class Table>
void check_scores(const ModelState& model, const OwnedTable<double>& of_doubles) {
  using Value = typename Table::Value;
  const OwnedTable<Value> table = converted<Value>(of_doubles);
  const auto k_trees = static_cast<std::size_t>(model.trees_per_iteration());
  const std::size_t n_trees = model.nodes.size(), n = table.rows();
  const Scorer scorer(*model.bins, model.nodes, model.trees_per_iteration());
  CHECK_EQ(scorer.n_trees(), n_trees);
  // The leaf of every row in every tree, routed by the codes of a naive encoder.
  std::vector<NodeIndex> leaves;
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t t = 0; t < n_trees; ++t) {
      leaves.push_back(model.nodes.tree(t).route(
          [&](std::uint32_t c) { return naive_code((*model.bins)[c], table.at(r, c)); }));
    }
  }
  for (const int n_threads : {1, 3}) {
    std::vector<std::int32_t> ids(n * n_trees, -1);
    scorer.leaf_ids(table.template as<Table>(), ids.data(), n_threads);
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t t = 0; t < n_trees; ++t)
        CHECK_EQ(ids[r * n_trees + t], model.nodes.tree(t)[leaves[r * n_trees + t]].leaf);
    }
    for (const auto& [first, last] : std::vector<std::pair<std::size_t, std::size_t>>{
             {0, n_trees}, {k_trees, n_trees}, {0, 2 * k_trees}, {k_trees, k_trees}}) {
      // Scores are added to what is there.
      std::vector<double> expected(n * k_trees, 0.5), scores(n * k_trees, 0.5);
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t t = first; t < last; ++t)
          expected[r * k_trees + t % k_trees] += model.nodes.tree(t)[leaves[r * n_trees + t]].value;
      }
      scorer.add_scores(table.template as<Table>(), first, last, scores.data(), n_threads);
      CHECK(scores == expected);
    }
  }
}

void check_all_tables(const ModelState& model, const OwnedTable<double>& table) {
  check_scores<DenseTable<double>>(model, table);
  check_scores<DenseTable<float>>(model, table);
  check_scores<SparseTable<double>>(model, table);
  check_scores<SparseTable<float>>(model, table);
}

// 300 rows: two blocks and a part of one.
void check_model(const ModelOptions& options, std::size_t n_fitted) {
  const TrainingRows rows = random_rows(options, n_fitted + 300, 1);
  const ModelState model = fit_state(rows.slice(0, n_fitted), options);
  check_all_tables(model, rows.slice(n_fitted, n_fitted + 300).table);
  check_all_tables(model, rows.slice(0, 0).table);
  check_all_tables(model, rows.slice(0, 1).table);
}

TEST_CASE("scores and leaf ids are those of rows that are routed") {
  ModelOptions plain, softmax, sparse;
  plain.max_bins = 600;  // some codes take two bytes
  softmax.loss = LossKind::softmax;
  softmax.n_classes = 3;
  sparse.many_columns = true;
  sparse.loss = LossKind::squared;
  for (const ModelOptions& options : {plain, softmax, sparse}) check_model(options, 700);
}

TEST_CASE("trees of any number of leaves are scored alike") {
  for (const int n_leaves : {2, 9, 33, 64, 65, 120}) {
    ModelOptions options;
    options.loss = LossKind::squared;
    options.training.max_leaf_nodes = n_leaves;
    options.training.min_samples_leaf = 1;
    options.training.n_estimators = 2;
    options.max_bins = 60;
    const TrainingRows rows = random_rows(options, 900, 2);
    const ModelState model = fit_state(rows.slice(0, 700), options);
    CHECK_EQ(model.nodes.tree(0).n_leaves(), n_leaves);
    check_all_tables(model, rows.slice(700, 900).table);
  }
}

TEST_CASE("leaf ids that grafting left unused do no harm") {
  ModelOptions options;
  ModelState model = fit_state(random_rows(options, 200, 3), options);
  // The last split of a tree is undone: the leaf keeps the id of its right child.
  Tree& tree = model.nodes[0].tree;
  const auto n = static_cast<NodeIndex>(tree.nodes.size());
  Node& parent = tree[tree[n - 1].parent];
  parent.left = parent.right = no_node;
  parent.leaf = tree[n - 1].leaf;
  tree.nodes.resize(tree.nodes.size() - 2);
  tree.index_leaves();
  check_all_tables(model, random_rows(options, 100, 4).table);
}

}  // namespace
}  // namespace graftboost
