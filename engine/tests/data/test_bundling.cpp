#include <cstdint>
#include <set>
#include <vector>

#include "data/bundling.hpp"
#include "tests/check.hpp"
#include "tests/tables.hpp"

namespace graftboost {
namespace {

using testing::mixed_categories;
using testing::mixed_table;

TEST_CASE("conflicts are symmetric, and those of shards add up") {
  BundleConflicts a(70), b(70);
  a.add({1, 65});
  b.add({2, 69, 64});
  a |= b;
  for (std::size_t i = 0; i < 70; ++i) {
    for (std::size_t j = 0; j < 70; ++j) {
      const auto both_in = [&](const std::set<std::size_t>& row) {
        return row.contains(i) && row.contains(j);
      };
      CHECK_EQ(a.has(i, j), both_in({1, 65}) || both_in({2, 64, 69}));
    }
  }
}

TEST_CASE("the differing candidates of a row are those whose code is not the common one") {
  const auto table = mixed_table<double>(600, 3);
  BinningParams params;
  params.max_bins = 64;
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), mixed_categories(), params, 1);
  const BundleCandidates candidates(bins.cut().columns(), bins.features());
  REQUIRE(candidates.size() > 12);
  for (std::size_t r = 0; r < table.rows(); ++r) {
    std::multiset<std::size_t> expected, dense, sparse;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::uint32_t column = bins.cut()[candidates[i]];
      if (bins[column].code(table.at(r, column)) != bins[column].common_code) expected.insert(i);
    }
    candidates.for_each_differing(table.dense(), r, [&](std::size_t i) { dense.insert(i); });
    candidates.for_each_differing(table.sparse(), r, [&](std::size_t i) { sparse.insert(i); });
    CHECK(dense == expected);
    CHECK(sparse == expected);
  }
}

TEST_CASE("features of a bundle have no conflicts and fit into a byte") {
  constexpr std::size_t n = 40;
  testing::Random random(4);
  std::vector<Feature> features(n);
  std::vector<std::uint32_t> columns;
  for (std::uint32_t f = 0; f < n; ++f) {
    columns.push_back(f);
    features[f].common_share = 0.95;
    features[f].common_code = 1;
    const std::size_t n_edges = 1 + random.below(60);
    for (std::size_t e = 0; e < n_edges; ++e) features[f].edges.push_back(static_cast<double>(e));
  }
  const BundleCandidates candidates(columns, features);
  CHECK_EQ(candidates.size(), n);
  CHECK(candidates.worth_bundling(100000));
  CHECK(!candidates.worth_bundling(50));
  BundleConflicts conflicts(n);
  for (int i = 0; i < 60; ++i) conflicts.add({random.below(n), random.below(n)});
  choose_bundles(candidates, conflicts, features);
  std::size_t n_bundled = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (features[i].bundle < 0) continue;
    ++n_bundled;
    std::uint32_t n_codes = 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (features[j].bundle != features[i].bundle) continue;
      n_codes += BundledCodes(features[j]).n;
      CHECK(i == j || !conflicts.has(i, j));
    }
    CHECK(n_codes <= most_bundled_codes);
    CHECK(n_codes > BundledCodes(features[i]).n);
  }
  CHECK(n_bundled > n / 2);
}

}  // namespace
}  // namespace graftboost
