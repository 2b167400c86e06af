#include <cstdint>
#include <limits>

#include "core/sums.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

using testing::Random;

constexpr std::int64_t most_rows = PackedSums::most_rows;
constexpr std::int64_t most_hessian = PackedSums::most_hessian_of_row;

Totals round_trip(const Totals& totals) { return Totals(PackedSums(totals)); }

TEST_CASE("totals add and subtract component by component") {
  const Totals a{3, 5, 7}, b{-10, 2, 1};
  CHECK(a + b == Totals{-7, 7, 8});
  CHECK(a - b == Totals{13, 3, 6});
  Totals c = a;
  c += b;
  c -= b;
  CHECK(c == a);
  CHECK(c != b);
}

TEST_CASE("packed sums represent the largest number of rows and the largest hessians") {
  CHECK_EQ(most_rows, (std::int64_t{1} << 23) - 1);
  const std::int64_t hessian_limit = std::int64_t{1} << 41;
  CHECK(most_rows * most_hessian < hessian_limit);
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, most_rows - 1, most_rows}) {
    for (const std::int64_t h : {std::int64_t{0}, std::int64_t{1}, most_hessian,
                                 most_rows * most_hessian, hessian_limit - 1}) {
      for (const std::int64_t g :
           {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
            std::numeric_limits<std::int64_t>::max()}) {
        CHECK(round_trip({g, h, n}) == Totals{g, h, n});
      }
    }
  }
}

TEST_CASE("adding the last possible row fills both fields without a carry between them") {
  PackedSums sums(Totals{0, (most_rows - 1) * most_hessian, most_rows - 1});
  sums += PackedSums(Totals{-7, most_hessian, 1});
  CHECK(Totals(sums) == Totals{-7, most_rows * most_hessian, most_rows});
}

TEST_CASE("packed sums are exact after wrapping around") {
  const Totals small{5, 3, 1}, large{-900, most_rows * most_hessian, most_rows};
  PackedSums sums(small);
  sums -= PackedSums(large);  // borrows from the hessian, and wraps around
  sums += PackedSums(large);
  CHECK(Totals(sums) == small);
  sums += PackedSums(large);  // one row too many
  CHECK(Totals(sums - PackedSums(small)) == large);
}

TEST_CASE("gradients wrap around without undefined behaviour") {
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  PackedSums sums(Totals{largest, 0, 0});
  sums += PackedSums(Totals{1, 0, 0});
  sums -= PackedSums(Totals{1, 0, 0});
  CHECK(Totals(sums) == Totals{largest, 0, 0});
}

TEST_CASE("the difference of a random set and a random subset is the sum of the rest") {
  Random random(1);
  for (int repetition = 0; repetition < 200; ++repetition) {
    Totals subset, rest;
    PackedSums all_packed, subset_packed;
    for (int i = 0; i < 50; ++i) {
      const Totals row{static_cast<std::int64_t>(random.below(1 << 20)) - (1 << 19),
                       static_cast<std::int64_t>(random.below(most_hessian + 1)), 1};
      all_packed += PackedSums(row);
      if (random.chance(0.5)) {
        subset += row;
        subset_packed += PackedSums(row);
      } else {
        rest += row;
      }
    }
    CHECK(Totals(subset_packed) == subset);
    CHECK(Totals(all_packed - subset_packed) == rest);
    CHECK(all_packed - subset_packed == PackedSums(rest));
  }
}

TEST_CASE("stored lanes hold the gradient, and the hessian beside the row count") {
  std::uint64_t lanes[2];
  PackedSums(Totals{-3, most_rows * most_hessian, most_rows}).store(lanes);
  CHECK_EQ(static_cast<std::int64_t>(lanes[0]), -3);
  CHECK_EQ(PackedSums::hessian_in(lanes[1]), most_rows * most_hessian);
  CHECK_EQ(PackedSums::rows_in(lanes[1]), most_rows);
}

}  // namespace
}  // namespace graftboost
