#include <cstdint>
#include <map>
#include <vector>

#include "data/column_index.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

TEST_CASE("columns in their own order are found without a table") {
  const ColumnIndex index(std::vector<std::uint32_t>{0, 1, 2, 3});
  for (std::uint32_t column = 0; column < 4; ++column) CHECK_EQ(index.find(column), column);
  CHECK_EQ(index.find(4), ColumnIndex::none);
  CHECK_EQ(index.find(0xfffffffe), ColumnIndex::none);
}

TEST_CASE("an empty index finds nothing") { CHECK_EQ(ColumnIndex().find(0), ColumnIndex::none); }

TEST_CASE("an index agrees with std::map whatever columns are added") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    testing::Random random(seed);
    const std::size_t n_columns = seed % 3 == 0 ? 300 : 500'000'000;
    std::map<std::uint32_t, std::uint32_t> expected;
    ColumnIndex index;
    for (std::uint32_t in_order = 0; in_order < seed % 5; ++in_order) {
      expected[in_order] = in_order;
      index.add(in_order);
    }
    for (int i = 0; i < 200; ++i) {
      const auto column = static_cast<std::uint32_t>(random.below(n_columns));
      const auto number = static_cast<std::uint32_t>(expected.size());
      if (!expected.emplace(column, number).second) continue;
      index.add(column);
      CHECK_EQ(index[number], column);
    }
    CHECK_EQ(index.size(), expected.size());
    for (const auto& [column, number] : expected) CHECK_EQ(index.find(column), number);
    for (int i = 0; i < 500; ++i) {
      const auto column = static_cast<std::uint32_t>(random.below(n_columns));
      const auto found = expected.find(column);
      CHECK_EQ(index.find(column), found == expected.end() ? ColumnIndex::none : found->second);
    }
  }
}

}  // namespace
}  // namespace graftboost
