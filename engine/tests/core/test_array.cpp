#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "core/array.hpp"
#include "tests/check.hpp"
#include "tests/freed_memory.hpp"

namespace graftboost {
namespace {

using testing::check_freed;
using testing::FreedMemory;

Array<std::uint64_t> numbered(std::size_t n) {
  Array<std::uint64_t> array(n);
  for (std::size_t i = 0; i < n; ++i) array[i] = i + 1;
  return array;
}
bool is_numbered(const Array<std::uint64_t>& array, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    if (array[i] != i + 1) return false;
  return array.size() >= n;
}

// Memory that an array borrows. The test can read it whatever the array does.
struct Lender {
  std::shared_ptr<std::array<std::uint64_t, 16>> memory =
      std::make_shared<std::array<std::uint64_t, 16>>();

  Array<std::uint64_t> lend(std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) (*memory)[i] = i + 1;
    return {memory->data(), size, memory->size(), memory};
  }
  bool is_zero_from(std::size_t i) const {
    return std::all_of(memory->begin() + static_cast<std::ptrdiff_t>(i), memory->end(),
                       [](std::uint64_t value) { return value == 0; });
  }
};

TEST_CASE("the inspection of freed memory notices content") {
  FreedMemory::reset();
  auto* memory = static_cast<char*>(std::malloc(8));
  REQUIRE(memory != nullptr);
  std::fill_n(memory, 8, 'x');
  FreedMemory::watch(memory, 8);
  std::free(memory);
  CHECK_EQ(FreedMemory::n_freed(), 1);
  CHECK_EQ(FreedMemory::n_freed_with_content(), 1);
  FreedMemory::reset();
}

TEST_CASE("an array keeps its elements when it grows, and leaves none behind") {
  Array<std::uint64_t> array = numbered(100);
  FreedMemory::watch(array);
  array.resize(5000);
  check_freed(1);
  CHECK(is_numbered(array, 100));
  FreedMemory::watch(array);
  array.reserve(20000);
  check_freed(1);
  CHECK_EQ(array.size(), 5000);
  CHECK(is_numbered(array, 100));
}

TEST_CASE("push_back moves elements without leaving a copy") {
  FreedMemory::reset();
  Array<std::uint64_t> array = numbered(16);
  FreedMemory::watch(array);
  for (std::uint64_t i = 16; i < 1000; ++i) array.push_back(i + 1);
  check_freed(1);
  CHECK(is_numbered(array, 1000));
}

TEST_CASE("an array that shrinks overwrites the elements it drops, and does not move") {
  Lender lender;
  Array<std::uint64_t> array = lender.lend(12);
  array.resize(5);
  CHECK(array.data() == lender.memory->data());
  CHECK(is_numbered(array, 5));
  CHECK(lender.is_zero_from(5));
  array.resize(0);
  CHECK(array.empty());
  CHECK(lender.is_zero_from(0));
}

TEST_CASE("an array that outgrows borrowed memory overwrites it") {
  Lender lender;
  Array<std::uint64_t> array = lender.lend(16);
  array.resize(17);
  CHECK(array.data() != lender.memory->data());
  CHECK(is_numbered(array, 16));
  CHECK(lender.is_zero_from(0));
  CHECK_EQ(lender.memory.use_count(), 1);
}

TEST_CASE("an array keeps borrowed memory alive and does not free it") {
  Lender lender;
  {
    const Array<std::uint64_t> array = lender.lend(4);
    CHECK_EQ(lender.memory.use_count(), 2);
  }
  CHECK_EQ(lender.memory.use_count(), 1);
  CHECK_EQ((*lender.memory)[3], 4);
}

TEST_CASE("a destroyed array leaves no copy") {
  FreedMemory::reset();
  {
    const Array<std::uint64_t> array = numbered(50);
    FreedMemory::watch(array);
  }
  check_freed(1);
}

TEST_CASE("a moved array takes its memory along") {
  FreedMemory::reset();
  {
    Array<std::uint64_t> from = numbered(50);
    const auto* memory = from.data();
    FreedMemory::watch(from);
    const Array<std::uint64_t> to = std::move(from);
    CHECK(to.data() == memory);
    CHECK(is_numbered(to, 50));
    CHECK_EQ(FreedMemory::n_freed(), 0);
  }
  check_freed(1);
}

TEST_CASE("assignment overwrites the elements that were there") {
  FreedMemory::reset();
  Array<std::uint64_t> array = numbered(50);
  FreedMemory::watch(array);
  array = numbered(3);
  check_freed(1);
  CHECK_EQ(array.size(), 3);
  const Array<std::uint64_t> other = numbered(7);
  FreedMemory::watch(array);
  array = other;
  check_freed(1);
  CHECK(is_numbered(array, 7));
  CHECK(is_numbered(other, 7));
  CHECK(array.data() != other.data());
}

TEST_CASE("a large array keeps its elements when its pages move") {
  constexpr std::size_t n = (std::size_t{64} << 20) / sizeof(std::uint64_t);
  Array<std::uint64_t> array;
  array.reserve(n);
  array.resize(1000);
  for (std::size_t i = 0; i < 1000; ++i) array[i] = i + 1;
  array.reserve(n + 1);
  CHECK(is_numbered(array, 1000));
}

TEST_CASE("a size that cannot be allocated throws and changes nothing") {
  Array<std::uint64_t> array = numbered(10);
  CHECK_THROWS_AS(array.resize(std::numeric_limits<std::size_t>::max() / 16), std::bad_alloc);
  CHECK_EQ(array.size(), 10);
  CHECK(is_numbered(array, 10));
}

}  // namespace
}  // namespace graftboost
