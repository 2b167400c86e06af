#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/leaf_ids.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

using testing::Random;

LeafIds random_ids(std::size_t n, int max_leaf_nodes, int n_used, Random& random) {
  LeafIds ids(n, max_leaf_nodes);
  ids.visit([&]<class LeafId>(LeafId* array) {
    for (std::size_t r = 0; r < n; ++r)
      array[r] = static_cast<LeafId>(random.below(static_cast<std::size_t>(n_used)));
  });
  return ids;
}

TEST_CASE("leaf ids take one byte up to 256 leaves, and two beyond") {
  const LeafIds narrow(10, 256), wide(10, 257);
  CHECK_EQ(narrow.narrow.size(), 10);
  CHECK(narrow.wide.empty());
  CHECK_EQ(wide.wide.size(), 10);
  CHECK(wide.narrow.empty());
  LeafIds grown = wide;
  grown.resize(15);
  CHECK_EQ(grown.wide.size(), 15);
  CHECK(grown.narrow.empty());
  // Also if a shard has had no rows in between.
  grown.resize(0);
  const LeafIds copy = grown;
  for (LeafIds ids : {grown, copy, LeafIds(0, 257)}) {
    ids.resize(3);
    CHECK_EQ(ids.wide.size(), 3);
    CHECK(ids.narrow.empty());
  }
}

TEST_CASE("rows are selected by leaf, ascending") {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const int max_leaf_nodes = random.chance(0.5) ? 256 : 1000;
    const int n_used = static_cast<int>(1 + random.below(random.chance(0.5) ? 6 : 250));
    // Few and many rows, of which few and many are wanted.
    const std::size_t n = random.below(random.chance(0.3) ? 6000 : 200);
    const std::size_t n_given = n - random.below(n + 1) / 4;
    const LeafIds ids = random_ids(n, max_leaf_nodes, n_used, random);
    const double share = random.chance(0.5) ? 0.2 : 0.01;
    std::vector<std::int32_t> leaves;
    for (std::int32_t leaf = 0; leaf < n_used; ++leaf)
      if (random.chance(share)) leaves.push_back(leaf);
    std::vector<Slot> expected, found(n_given);
    for (Slot row = 0; row < n_given; ++row)
      if (std::ranges::count(leaves, ids[row]) != 0) expected.push_back(row);
    found.resize(select_rows(ids, n_given, leaves, found.data()));
    CHECK(found == expected);
  }
}

TEST_CASE("rows are sorted by leaf in a given order") {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const int n_used = static_cast<int>(1 + random.below(12));
    const std::size_t n = random.below(200);
    const LeafIds ids = random_ids(n, i % 2 == 0 ? 31 : 300, n_used, random);
    std::vector<std::int32_t> order;
    for (std::int32_t leaf = 0; leaf < n_used; ++leaf)
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(random.below(order.size() + 1)),
                   leaf);
    const auto belongs = [](Slot row) { return row % 5 != 2; };
    const RowsByLeaf sorted = sort_by_leaf(ids, n, order, belongs);
    REQUIRE(sorted.begin.size() == order.size() + 1);
    CHECK_EQ(sorted.slots.size(), sorted.begin.back() + slots_read_ahead);
    for (std::size_t first = 0; first < order.size(); ++first) {
      std::vector<Slot> expected;
      for (std::size_t last = first; last < order.size(); ++last) {
        for (Slot row = 0; row < n; ++row)
          if (belongs(row) && ids[row] == order[last]) expected.push_back(row);
        CHECK(std::ranges::equal(sorted.of_leaves(first, last + 1), expected));
      }
    }
    for (std::size_t j = sorted.begin.back(); j < sorted.slots.size(); ++j)
      CHECK(n == 0 || sorted.slots[j] < n);
  }
}

}  // namespace
}  // namespace graftboost
