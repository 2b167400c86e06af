#include <cmath>
#include <cstdint>
#include <vector>

#include "data/code_layout.hpp"
#include "model/model_state.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::random_rows;
using testing::TrainingRows;

bool has(const ModelState& model, FeatureLayout::Kind kind) {
  for (std::size_t f = 0; f < model.layout().size(); ++f)
    if (model.layout()[f].kind == kind) return true;
  return false;
}

TEST_CASE("the models of these tests have features of all kinds") {
  using Kind = FeatureLayout::Kind;
  ModelOptions mixed, wide, grouped;
  wide.max_bins = 1024;
  grouped.many_columns = true;
  for (const std::size_t n_rows : {150, 260}) {
    const ModelState a = fit_state(random_rows(mixed, n_rows + 120, 1), mixed);
    CHECK(has(a, Kind::narrow));
    CHECK(has(a, Kind::bundled));
    CHECK(!GainBounds::are_grouped(a.layout()));
    const ModelState c = fit_state(random_rows(grouped, n_rows, 1), grouped);
    CHECK(has(c, Kind::narrow));
    CHECK(has(c, Kind::sparse));
    CHECK(GainBounds::are_grouped(c.layout()));
  }
  CHECK(has(fit_state(random_rows(wide, 300, 1), wide), Kind::wide));
  CHECK(has(fit_state(random_rows(mixed, 300, 1), mixed), Kind::sparse));
}

TEST_CASE("target sums and base scores are those of all rows") {
  for (const LossKind loss : {LossKind::logistic, LossKind::softmax, LossKind::squared}) {
    for (const bool weighted : {false, true}) {
      ModelOptions options;
      options.loss = loss;
      options.n_classes = loss == LossKind::softmax ? 4 : 2;
      options.weighted = weighted;
      options.n_shards = 3;
      ModelState model = fit_state(random_rows(options, 120, 2), options);
      TargetSums sums(model.loss.n_classes);
      for (const RowShard& shard : model.shards) {
        CHECK_EQ(shard.rows.weight.empty(), !weighted);
        for (Slot row = 0; row < shard.size(); ++row)
          sums.add(shard.rows.target[row], weighted ? shard.rows.weight[row] : 1);
      }
      CHECK(model.target_sums == sums);
      CHECK(model.base_scores == model.loss.base_scores(sums));
      model.put_on_grids();
      CHECK(model.target_sums == sums);
    }
  }
}

TEST_CASE("weights are multiples of one unit, whatever shard a row is in") {
  ModelOptions options;
  options.weighted = true;
  options.loss = LossKind::squared;
  const TrainingRows rows = random_rows(options, 120, 3);
  options.n_shards = 3;
  ModelState model = fit_state(rows, options);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto at = model.shards.find(rows.ids()[r]);
    REQUIRE(at.has_value());
    const RowTable& of_shard = model.shards[at->shard].rows;
    CHECK_EQ(of_shard.raw_weight[at->slot], rows.weight[r]);
    CHECK_EQ(of_shard.raw_target[at->slot], rows.y[r]);
    const double weight =
        model.loss.weight_scale * model.loss.weight_unit * of_shard.weight[at->slot];
    CHECK(std::abs(weight - rows.weight[r]) <= 1e-6);
    const double target =
        model.loss.centre + model.loss.scale * Loss::target_grid * of_shard.target[at->slot];
    CHECK(std::abs(target - rows.y[r]) <= model.loss.scale * Loss::target_grid);
  }
}

TEST_CASE("parameters of gains follow from the loss and the largest weight of any shard") {
  ModelOptions options;
  options.training.min_samples_leaf = 7;
  options.training.min_hessian = 0.25;
  options.training.l2_regularization = 3;
  options.weighted = true;
  options.n_shards = 4;
  const ModelState model = fit_state(random_rows(options, 120, 4), options);
  std::int64_t largest = 0;
  for (const RowShard& shard : model.shards)
    for (const Weight weight : shard.rows.weight) largest = std::max<std::int64_t>(largest, weight);
  const GainParams params = model.gain_params();
  CHECK_EQ(params.largest_of_row, largest * model.loss.largest_of_row());
  CHECK_EQ(params.min_samples_leaf, 7);
  CHECK_EQ(params.l2, 3 / model.loss.weight_scale);
  CHECK_EQ(params.least_hessian, 0.25 * model.loss.typical_weight);
  CHECK_EQ(params.least_gain, 1e-6 * model.loss.typical_weight);
  CHECK_EQ(params.gradient_unit, model.loss.gradient_unit());
  CHECK_EQ(params.hessian_unit, model.loss.hessian_unit());
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    const Tree& tree = model.nodes.tree(t);
    for (const Node& node : tree.nodes) {
      CHECK_EQ(node.value, model.leaf_value(node.sums));
      if (!node.is_leaf()) CHECK_EQ(node.gain, model.gain_of_split(params, tree, node));
    }
  }
}

}  // namespace
}  // namespace graftboost
