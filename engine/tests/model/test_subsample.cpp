#include <cstdint>
#include <vector>

#include "core/hashing.hpp"
#include "model/subsample.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

using testing::Random;

TEST_CASE("a row is in a subsample if its hash, as a fraction, is below the share of rows") {
  Random random(1);
  std::vector<RowId> ids;
  for (int i = 0; i < 500; ++i) ids.push_back(static_cast<RowId>(random.bits() >> (i % 60)));
  for (const std::uint64_t seed : {std::uint64_t{0}, random.bits()}) {
    for (const std::size_t tree : {0, 1, 700}) {
      std::vector<double> shares{1e-300, 0.1, 0.5, 0.7, 1 - 0x1p-53, 1.0};
      // The rows at the limit, too.
      for (int i = 0; i < 5; ++i)
        shares.push_back(as_fraction(hash(seed, tree, static_cast<std::uint64_t>(ids[i]))));
      for (const double share : shares) {
        const Subsample subsample(seed, tree, share);
        std::vector<std::int32_t> found(ids.size(), 7);
        subsample.find(ids.data(), ids.size(), found.data());
        for (std::size_t i = 0; i < ids.size(); ++i) {
          const bool inside =
              as_fraction(hash(seed, tree, static_cast<std::uint64_t>(ids[i]))) < share;
          CHECK_EQ(subsample.contains(ids[i]), inside);
          CHECK_EQ(found[i], inside ? -1 : 0);
        }
      }
    }
  }
}

TEST_CASE("slots are divided in order") {
  Random random(2);
  for (const std::size_t n : {0, 1, 5, 64, 333}) {
    for (const double share : {0.0, 0.3, 1.0}) {
      std::vector<std::int32_t> inside;
      std::vector<Slot> expected_in, expected_out;
      for (std::size_t i = 0; i < n; ++i) {
        inside.push_back(random.chance(share) ? -1 : 0);
        (inside[i] != 0 ? expected_in : expected_out).push_back(static_cast<Slot>(100 + i));
      }
      std::vector<Slot> in(n), out(n);
      const std::size_t n_inside = divide(inside.data(), 100, n, in.data(), out.data());
      REQUIRE(n_inside == expected_in.size());
      in.resize(n_inside);
      out.resize(n - n_inside);
      CHECK(in == expected_in);
      CHECK(out == expected_out);
    }
  }
}

}  // namespace
}  // namespace graftboost
