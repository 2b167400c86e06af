#include <limits>
#include <random>

#include "remote/packed_sums.hpp"
#include "tests/check.hpp"

namespace graftboost {
namespace {

WipedVector<std::uint64_t> random_sums(std::mt19937_64& random, std::size_t n) {
  WipedVector<std::uint64_t> sums(n);
  for (std::uint64_t& sum : sums) {
    const auto bits = random() % 66;
    sum = bits == 0 ? 0 : random() >> (bits == 65 ? 0 : 64 - bits);
    if (random() % 2 == 0) sum = ~sum + 1;
  }
  return sums;
}

TEST_CASE("packed sums are unpacked and added, modulo 2^64") {
  std::mt19937_64 random(1);
  for (std::size_t n = 0; n < 200; ++n) {
    const auto a = random_sums(random, n), b = random_sums(random, n);
    WipedVector<std::uint64_t> found;
    add_packed_sums(found, pack_sums(a));
    CHECK(found == a);
    if (n == 0) continue;
    add_packed_sums(found, pack_sums(b));
    for (std::size_t i = 0; i < n; ++i) CHECK(found[i] == a[i] + b[i]);
  }
}

TEST_CASE("zeros take half a byte, and small numbers one more") {
  CHECK(pack_sums(WipedVector<std::uint64_t>(1000)).size() == 8 + 500 + 8);
  CHECK(pack_sums(WipedVector<std::uint64_t>(1000, ~std::uint64_t{0})).size() == 8 + 1500 + 8);
}

TEST_CASE("packed sums that are cut off or of another number are refused") {
  std::mt19937_64 random(2);
  for (std::size_t n = 1; n < 40; ++n) {
    const Bytes packed = pack_sums(random_sums(random, n));
    for (std::size_t size = 0; size < packed.size(); ++size) {
      WipedVector<std::uint64_t> found;
      CHECK_THROWS_AS(add_packed_sums(found, std::span(packed).first(size)), std::invalid_argument);
    }
    WipedVector<std::uint64_t> others(n + 1);
    CHECK_THROWS_AS(add_packed_sums(others, packed), std::invalid_argument);
    Bytes changed = packed;
    for (std::size_t i = 0; i < changed.size(); ++i) {
      changed[i] ^= static_cast<std::uint8_t>(1 + random() % 255);
      WipedVector<std::uint64_t> found;
      try {
        add_packed_sums(found, changed);
      } catch (const std::invalid_argument&) {
      }
    }
  }
}

}  // namespace
}  // namespace graftboost
