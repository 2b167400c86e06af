#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "data/bin_edges.hpp"
#include "data/bins.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"
#include "tests/tables.hpp"

namespace graftboost {
namespace {

using testing::naive_code;
using testing::Random;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Feature with_edges(std::vector<double> edges) {
  Feature feature;
  feature.edges = std::move(edges);
  feature.edges_single = single_edges(feature.edges);
  return feature;
}
Feature with_random_edges(std::size_t n, Random& random) {
  std::vector<double> edges;
  for (std::size_t i = 0; i < n; ++i) edges.push_back(random.normal());
  std::ranges::sort(edges);
  return with_edges(edges);
}

TEST_CASE("codes of numbers agree with std::lower_bound for any number of edges") {
  Random random(5);
  for (std::size_t n = 0; n < 70; ++n) {
    const Feature feature = with_random_edges(n, random);
    std::vector<double> values{0.0, -0.0, infinity, -infinity};
    for (int i = 0; i < 30; ++i) values.push_back(random.normal());
    for (const double edge : feature.edges) {
      values.push_back(edge);
      values.push_back(std::nextafter(edge, infinity));
      values.push_back(std::nextafter(edge, -infinity));
    }
    for (const double value : values) {
      const auto found = std::lower_bound(feature.edges.begin(), feature.edges.end(), value);
      CHECK_EQ(feature.code(value), 1 + (found - feature.edges.begin()));
      CHECK_EQ(feature.code(value), naive_code(feature, value));
    }
  }
}

TEST_CASE("a float has the code of the same number as a double") {
  Random random(6);
  for (std::size_t n = 1; n < 40; ++n) {
    const Feature feature = with_random_edges(n, random);
    for (const double edge : feature.edges) {
      const auto near = static_cast<float>(edge);
      for (const float value : {near, std::nextafter(near, 10.0f), std::nextafter(near, -10.0f)})
        CHECK_EQ(feature.code(value), feature.code(static_cast<double>(value)));
    }
  }
}

TEST_CASE("missing values have a code of their own") {
  const Feature feature = with_edges({-1, 0, 1});
  CHECK_EQ(feature.code(not_a_number), missing_code);
  CHECK_EQ(feature.code(std::numeric_limits<float>::quiet_NaN()), missing_code);
  CHECK_EQ(feature.n_codes(), 5);
}

TEST_CASE("categories have their codes in order, unknown ones share the last code") {
  Feature feature;
  feature.n_categories = 3;
  CHECK_EQ(feature.n_codes(), 5);
  for (const double value : {0.0, 1.0, 2.0, 3.0, 4.0, 1e9, -1.0, infinity, -infinity}) {
    CHECK_EQ(feature.code(value), naive_code(feature, value));
    CHECK_EQ(feature.code(static_cast<float>(value)), feature.code(value));
  }
  CHECK_EQ(feature.code(2.0), 3);
  CHECK_EQ(feature.code(3.0), 4);
  CHECK_EQ(feature.code(not_a_number), missing_code);
}

TEST_CASE("single edges are the largest floats that are not above the edges") {
  Random random(8);
  for (int i = 0; i < 1000; ++i) {
    const double edge = random.normal();
    const float single = single_edges({edge})[0];
    CHECK(static_cast<double>(single) <= edge);
    CHECK(static_cast<double>(std::nextafter(single, 10.0f)) > edge);
  }
  CHECK(single_edges({1e300})[0] == std::numeric_limits<float>::max());
}

TEST_CASE("codes of rare columns are those of the feature of rare columns") {
  for (const double value : {-2.0, -5e-324, -0.0, 0.0, 5e-324, 3.0, infinity, not_a_number}) {
    CHECK_EQ(BinMap::rare_code(value), BinMap::rare().code(value));
    const auto single = static_cast<float>(value);
    CHECK_EQ(BinMap::rare_code(single), BinMap::rare().code(single));
  }
}

TEST_CASE("a bin map gives the feature of rare columns for columns without bins") {
  std::vector<Feature> features{with_edges({1}), with_edges({2, 3})};
  const BinMap bins(100, {4, 90}, std::move(features));
  CHECK_EQ(bins.n_features(), 100);
  CHECK_EQ(bins[4].n_codes(), 3);
  CHECK_EQ(bins[90].n_codes(), 4);
  CHECK(&bins[5] == &BinMap::rare());
}

TEST_CASE("an edge between two values is the shortest decimal well inside") {
  CHECK_EQ(edge_between(1, 2), 1.5);
  CHECK_EQ(edge_between(0.1, 0.9), 0.5);
  CHECK_EQ(edge_between(3.14159, 3.1416), 3.141595);
  CHECK_EQ(edge_between(-10, 10), 0.0);
  CHECK_EQ(edge_between(100, 120), 110.0);
  const double next = std::nextafter(1.0, 2.0);
  CHECK_EQ(edge_between(1, next), 1.0);
  const double huge = std::numeric_limits<double>::max();
  CHECK_EQ(edge_between(-huge, huge), 0.0);
}

TEST_CASE("an edge separates any two values") {
  Random random(9);
  for (int i = 0; i < 20000; ++i) {
    const double scale = std::exp2(static_cast<double>(random.below(600)) - 300);
    double low = random.normal() * scale, high = random.normal() * scale;
    if (i % 3 == 0) high = std::nextafter(low, infinity);
    if (low > high) std::swap(low, high);
    if (low == high) continue;
    const double edge = edge_between(low, high);
    CHECK(low <= edge && edge < high);
  }
}

}  // namespace
}  // namespace graftboost
