#include "data/bins.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace graftboost {
namespace {

template <class Value>
Code category_code(std::uint32_t n_categories, Value value) {
  const bool known = value >= 0 && value < static_cast<Value>(n_categories);
  return static_cast<Code>(known ? static_cast<std::uint32_t>(value) + 1 : n_categories + 1);
}

}  // namespace

Code Feature::code(double value) const {
  if (std::isnan(value)) return missing_code;
  if (categorical()) return category_code(n_categories, value);
  return static_cast<Code>(1 + n_below(edges.data(), edges.size(), value));
}

Code Feature::code(float value) const {
  if (std::isnan(value)) return missing_code;
  if (categorical()) return category_code(n_categories, value);
  return static_cast<Code>(1 + n_below(edges_single.data(), edges_single.size(), value));
}

BinMap::BinMap(std::size_t n_features, std::vector<std::uint32_t> columns,
               std::vector<Feature> features)
    : n_features_(n_features), cut_(std::move(columns)), features_(std::move(features)) {}

const Feature& BinMap::rare() {
  static const Feature feature = [] {
    Feature made;
    made.edges = {-std::numeric_limits<double>::denorm_min(), 0.0};
    made.edges_single = {-std::numeric_limits<float>::denorm_min(), 0.0f};
    made.common_code = rare_code(0);
    made.common_share = 1;
    return made;
  }();
  return feature;
}

std::vector<float> single_edges(const std::vector<double>& edges) {
  std::vector<float> singles;
  for (const double edge : edges) {
    auto single = static_cast<float>(edge);
    if (static_cast<double>(single) > edge) {
      single = std::nextafter(single, -std::numeric_limits<float>::infinity());
    }
    singles.push_back(single);
  }
  return singles;
}

}  // namespace graftboost
