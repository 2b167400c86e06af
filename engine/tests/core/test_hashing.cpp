#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "core/hashing.hpp"
#include "tests/check.hpp"

namespace graftboost {
namespace {

TEST_CASE("fractions lie in [0, 1)") {
  CHECK_EQ(as_fraction(0), 0.0);
  const double largest = as_fraction(std::numeric_limits<std::uint64_t>::max());
  CHECK(largest < 1.0);
  CHECK_EQ(largest, 1 - 0x1p-53);
}

TEST_CASE("fractions are ordered like the upper 53 bits of the hash") {
  CHECK_EQ(as_fraction(std::uint64_t{1} << 63), 0.5);
  CHECK_EQ(as_fraction((std::uint64_t{1} << 11) - 1), 0.0);
  CHECK_EQ(as_fraction(std::uint64_t{1} << 11), 0x1p-53);
}

TEST_CASE("fractions of consecutive ids are spread evenly") {
  constexpr int n = 100000, n_bins = 10;
  std::vector<int> counts(n_bins);
  for (std::uint64_t id = 0; id < n; ++id)
    ++counts[static_cast<std::size_t>(as_fraction(hash(7, 1, id)) * n_bins)];
  for (const int count : counts) CHECK(count > n / n_bins * 0.95 && count < n / n_bins * 1.05);
}

TEST_CASE("hashes depend on every argument, and on their order") {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint64_t a = 0; a < 8; ++a) {
      for (std::uint64_t b = 0; b < 8; ++b) hashes.insert(hash(seed, a, b));
    }
  }
  CHECK_EQ(hashes.size(), 8 * 8 * 8);
}

// Models are reproducible across versions only while these stay the same.
TEST_CASE("hashes have known values") {
  CHECK_EQ(mix(0), 0xe220a8397b1dcdafu);
  CHECK_EQ(mix(1), 0x910a2dec89025cc1u);
}

}  // namespace
}  // namespace graftboost
