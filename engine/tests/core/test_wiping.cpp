#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/wiping.hpp"
#include "tests/check.hpp"
#include "tests/freed_memory.hpp"

namespace graftboost {
namespace {

using testing::check_freed;
using testing::FreedMemory;

WipedVector<std::uint32_t> ones(std::size_t n) { return WipedVector<std::uint32_t>(n, 1); }

TEST_CASE("wipe overwrites exactly the given bytes") {
  std::vector<unsigned char> bytes(32, 0xff);
  wipe(bytes.data() + 8, 16);
  for (std::size_t i = 0; i < bytes.size(); ++i) CHECK_EQ(bytes[i] == 0, i >= 8 && i < 24);
  wipe(nullptr, 0);
}

TEST_CASE("an ordinary vector leaves its elements in freed memory") {
  FreedMemory::reset();
  {
    const std::vector<std::uint32_t> values(20, 1);
    FreedMemory::watch(values.data(), 80);
  }
  CHECK_EQ(FreedMemory::n_freed_with_content(), 1);
  FreedMemory::reset();
}

TEST_CASE("a wiped vector leaves no copy when it is destroyed or grows") {
  FreedMemory::reset();
  {
    WipedVector<std::uint32_t> values = ones(20);
    FreedMemory::watch(values);
    values.resize(1000, 1);
    check_freed(1);
    CHECK(std::ranges::count(values, 1u) == 1000);
    FreedMemory::watch(values);
  }
  check_freed(1);
}

TEST_CASE("a wiped vector leaves no copy of elements that were dropped before") {
  FreedMemory::reset();
  {
    WipedVector<std::uint32_t> values = ones(20);
    // All twenty, of which fifteen are past the end when the memory is freed.
    FreedMemory::watch(values);
    values.resize(5);
  }
  check_freed(1);
}

TEST_CASE("a wiped vector leaves no copy when it is moved, swapped or assigned to") {
  FreedMemory::reset();
  WipedVector<std::uint32_t> a = ones(20), b = ones(300);
  FreedMemory::watch(a);
  const auto* memory = b.data();
  a = std::move(b);
  check_freed(1);
  CHECK(a.data() == memory);
  FreedMemory::watch(a);
  a = ones(1000);
  check_freed(1);
  FreedMemory::watch(a);
  WipedVector<std::uint32_t>().swap(a);
  check_freed(1);
}

}  // namespace
}  // namespace graftboost
