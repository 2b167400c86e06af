#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "data/distribution.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

using testing::Random;

// Values with ties, both zeros, infinities and neighbours in the last bit.
template <class Value>
Value random_value(Random& random) {
  switch (random.below(6)) {
    case 0:
      return static_cast<Value>(random.below(5)) - 2;
    case 1:
      return random.chance(0.5) ? Value{0} : -Value{0};
    case 2:
      return std::nextafter(Value{1}, random.chance(0.5) ? Value{2} : Value{0});
    case 3:
      return (random.chance(0.5) ? 1 : -1) * std::numeric_limits<Value>::infinity();
    default:
      return static_cast<Value>(random.normal());
  }
}

template <class Value>
Distribution distribution_of_values(const std::vector<Value>& values, std::size_t n_zeros,
                                    std::size_t n_missing) {
  Array<decltype(ordered_key(Value{}))> keys, scratch;
  for (const Value value : values) keys.push_back(ordered_key(value));
  return distribution_of(keys, n_zeros, n_missing, scratch);
}

void check_same(const Distribution& a, const Distribution& b) {
  CHECK(a.values == b.values);
  CHECK(a.first == b.first);
  CHECK_EQ(a.size, b.size);
  CHECK_EQ(a.n_zeros, b.n_zeros);
  CHECK_EQ(a.n_missing, b.n_missing);
}

template <class Value>
void check_distribution(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<Value> values;
  std::map<double, std::size_t> counts;
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(random_value<Value>(random));
    ++counts[values.back()];
  }
  const Distribution distribution = distribution_of_values(values, 0, 3);
  REQUIRE(distribution.values.size() == counts.size());
  std::size_t i = 0, first = 0;
  for (const auto& [value, count] : counts) {
    CHECK_EQ(distribution.values[i], value);
    CHECK_EQ(distribution.first[i], first);
    CHECK_EQ(distribution.count(i), count);
    first += count;
    ++i;
  }
  CHECK_EQ(distribution.size, n);
  CHECK_EQ(distribution.n_zeros, counts.contains(0) ? counts[0] : 0);
  CHECK_EQ(distribution.n_rows(), n + 3);
}

TEST_CASE("a distribution counts distinct values in ascending order") {
  for (const std::size_t n : {0, 1, 2, 100, 1024, 1025, 5000}) {
    check_distribution<float>(n, n);
    check_distribution<double>(n, n + 1);
  }
}

TEST_CASE("zeros that are counted apart are the same as zeros among the values") {
  const std::vector<double> without{-3, -1, 2, 2}, with{-3, 0, -1, -0.0, 2, 0, 2};
  check_same(distribution_of_values(without, 3, 1), distribution_of_values(with, 0, 1));
  check_same(distribution_of_values<double>({}, 2, 0),
             distribution_of_values<double>({0, 0}, 0, 0));
  check_same(distribution_of_values<double>({-1}, 1, 0),
             distribution_of_values<double>({0, -1}, 0, 0));
}

TEST_CASE("merged distributions are those of all rows together") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    std::vector<double> a, b, all;
    for (std::size_t i = random.below(60); i > 0; --i) a.push_back(random_value<double>(random));
    for (std::size_t i = random.below(60); i > 0; --i) b.push_back(random_value<double>(random));
    all = a;
    all.insert(all.end(), b.begin(), b.end());
    const Distribution together = distribution_of_values(all, 0, 7);
    check_same(merge(distribution_of_values(a, 0, 5), distribution_of_values(b, 0, 2)), together);
    check_same(merge(distribution_of_values(b, 0, 7), distribution_of_values(a, 0, 0)), together);
  }
}

}  // namespace
}  // namespace graftboost
