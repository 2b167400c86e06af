#include <cmath>
#include <cstdint>

#include "core/rounding.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

TEST_CASE("round_to_even agrees with std::nearbyint") {
  for (const double x : {0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 0x1p51 - 0.5})
    CHECK_EQ(round_to_even(x), std::nearbyint(x));
  testing::Random random(3);
  for (int i = 0; i < 10000; ++i) {
    const double x = (random.fraction() - 0.5) * std::exp2(static_cast<double>(random.below(51)));
    CHECK_EQ(round_to_even(x), std::nearbyint(x));
  }
}

TEST_CASE("shifted_to_double is exact below its limit") {
  for (const std::int64_t x : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1},
                               most_shiftable - 1, -(most_shiftable - 1)})
    CHECK_EQ(shifted_to_double(x), static_cast<double>(x));
}

}  // namespace
}  // namespace graftboost
