#include <cstdint>
#include <vector>

#include "model/rows_by_node.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/row_changes.hpp"

namespace graftboost {
namespace {

using testing::append_rows;
using testing::check_histogram;
using testing::fit_state;
using testing::for_each_row;
using testing::ModelOptions;
using testing::naive_histogram;
using testing::naive_total;
using testing::random_rows;
using testing::TrainingRows;

// Compares all nodes of all trees with a naive count.
void check_nodes(const ModelState& model, const ModelState& counted_from) {
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    const RowsByNode rows(model, t);
    for (std::size_t i = 0; i < model.nodes.tree(t).nodes.size(); ++i) {
      const auto node = static_cast<NodeIndex>(i);
      std::vector<std::vector<Slot>> expected(model.shards.size());
      for_each_row(counted_from, t, node,
                   [&](std::size_t s, Slot row) { expected[s].push_back(row); });
      for (std::size_t s = 0; s < model.shards.size(); ++s) {
        const auto found = rows.rows_of(s, node);
        std::vector<Slot> sorted(found.begin(), found.end());
        std::sort(sorted.begin(), sorted.end());
        CHECK(sorted == expected[s]);
      }
      CHECK(rows.total(node) == naive_total(counted_from, t, node));
      const auto histogram = naive_histogram(counted_from, t, node);
      check_histogram(model.layout(), rows.count<WideSums>(node).data(), histogram);
      if (!model.loss.weighted)
        check_histogram(model.layout(), rows.count<PackedSums>(node).data(), histogram);
    }
  }
}

std::vector<ModelOptions> all_options() {
  ModelOptions subsampled, weighted, sparse;
  subsampled.training.subsample = 0.6;
  subsampled.n_shards = 3;
  weighted.weighted = true;
  weighted.loss = LossKind::squared;
  sparse.many_columns = true;
  sparse.n_shards = 2;
  return {subsampled, weighted, sparse};
}

TEST_CASE("rows arranged by node are those that are routed there") {
  for (const ModelOptions& options : all_options()) {
    const ModelState model = fit_state(random_rows(options, 150, 1), options);
    check_nodes(model, model);
  }
}

TEST_CASE("rows that an update adds are left out, and rows that it removes are not") {
  for (const ModelOptions& options : all_options()) {
    const TrainingRows rows = random_rows(options, 160, 2);
    ModelState model = fit_state(rows.slice(0, 150), options);
    const ModelState before = model;
    for (RowShard& shard : model.shards) shard.begin_update({1, 5, 6});
    const TrainingRows added = rows.slice(150, 160);
    append_rows(model, added,
                [](RowShard& shard, std::size_t t, Slot slot) { shard.place(t, slot, 0, 1000); });
    check_nodes(model, before);
  }
}

}  // namespace
}  // namespace graftboost
