#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "model/loss.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

using testing::Random;

Loss weighted_loss(LossKind kind, const std::vector<double>& weights) {
  Loss loss;
  loss.kind = kind;
  loss.n_classes = kind == LossKind::squared ? 1 : 2;
  const std::vector<std::span<const double>> parts{std::span(weights).first(weights.size() / 2),
                                                   std::span(weights).subspan(weights.size() / 2)};
  loss.set_weight_scale(WeightsInMemory(parts));
  return loss;
}

std::vector<double> random_weights(Random& random, std::size_t n, double orders) {
  std::vector<double> weights;
  for (std::size_t i = 0; i < n; ++i)
    weights.push_back(random.chance(0.1) ? 0 : std::exp2(orders * random.fraction()));
  weights[0] = 1;
  return weights;
}

TEST_CASE("weights times a power of two lie at the same places of the grid") {
  Random random(1);
  for (const LossKind kind : {LossKind::logistic, LossKind::squared}) {
    for (const double orders : {0.0, 3.0, 20.0, 90.0}) {
      const std::vector<double> weights = random_weights(random, 101, orders);
      const Loss loss = weighted_loss(kind, weights);
      for (const int power : {-900, -40, 1, 700}) {
        std::vector<double> scaled = weights;
        for (double& weight : scaled) weight = std::ldexp(weight, power);
        const Loss other = weighted_loss(kind, scaled);
        CHECK_EQ(other.weight_scale, std::ldexp(loss.weight_scale, power));
        CHECK_EQ(other.weight_unit, loss.weight_unit);
        CHECK_EQ(other.typical_weight, loss.typical_weight);
        for (std::size_t i = 0; i < weights.size(); ++i)
          CHECK_EQ(other.weight_on_grid(scaled[i]), loss.weight_on_grid(weights[i]));
      }
    }
  }
}

TEST_CASE("the typical weight is the median and lies between one and two units of the scale") {
  Random random(2);
  for (const double orders : {0.0, 1.0, 10.0, 60.0}) {
    const std::vector<double> weights = random_weights(random, 201, orders);
    const Loss loss = weighted_loss(LossKind::logistic, weights);
    CHECK(loss.typical_weight >= 1 && loss.typical_weight < 2);
    const double typical = loss.typical_weight / loss.weight_unit;
    std::size_t n_below = 0, n_above = 0;
    for (const double weight : weights) {
      n_below += weight > 0 && loss.weight_on_grid(weight) < typical;
      n_above += loss.weight_on_grid(weight) > typical;
    }
    const std::size_t n = weights.size() - static_cast<std::size_t>(std::ranges::count(weights, 0));
    CHECK(2 * n_below <= n && 2 * n_above <= n);
  }
}

TEST_CASE("the largest and the smallest doubles are weights") {
  const std::vector<double> tiny(5, 0x1p-1074);
  const Loss of_tiny = weighted_loss(LossKind::logistic, tiny);
  CHECK(of_tiny.weight_scale > 0 && of_tiny.weight_on_grid(tiny[0]) > 0);
  const Loss of_both = weighted_loss(LossKind::squared, {0x1p-1074, 0x1p-1074, 0x1p1023});
  CHECK(std::isfinite(of_both.weight_scale) && of_both.typical_weight == 1);
  CHECK_EQ(of_both.weight_on_grid(0x1p-1074), 1);
}

TEST_CASE("a class without weight counts a fraction of the typical weight") {
  const Loss loss = weighted_loss(LossKind::logistic, {0.25, 0.25, 3, 0.25});
  TargetSums sums(2);
  sums.classes = {loss.weight_on_grid(4), 0};
  CHECK_EQ(loss.base_scores(sums)[0], on_leaf_grid(std::log(0.25 * 0x1p-25 / 4)));
}

}  // namespace
}  // namespace graftboost
