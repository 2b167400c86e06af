#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "data/bin_edges.hpp"
#include "data/bin_finder.hpp"
#include "tests/check.hpp"
#include "tests/tables.hpp"

namespace graftboost {
namespace {

using testing::mixed_categories;
using testing::mixed_table;
using testing::MixedColumns;
using testing::OwnedTable;
using testing::Random;

bool same(const Feature& a, const Feature& b) {
  return a.n_categories == b.n_categories && a.edges == b.edges &&
         a.edges_single == b.edges_single && a.common_code == b.common_code &&
         a.common_share == b.common_share && a.has_missing == b.has_missing && a.bundle == b.bundle;
}
void check_same(const BinMap& a, const BinMap& b) {
  CHECK_EQ(a.n_features(), b.n_features());
  REQUIRE(a.cut().columns() == b.cut().columns());
  for (std::size_t i = 0; i < a.features().size(); ++i)
    CHECK(same(a.features()[i], b.features()[i]));
}

BinningParams exact() {
  BinningParams params;
  params.split_sample = 1;
  return params;
}

TEST_CASE("few values are all separated, at decimals between them") {
  const OwnedTable<double> table(1, {3, 1, 2, 2, 1}, {0, 1, 2, 3, 4});
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), {}, exact(), 1);
  CHECK(bins[0].edges == std::vector<double>{1.5, 2.5});
  CHECK_EQ(bins[0].common_code, 1);
  CHECK_EQ(bins[0].common_share, 0.4);
}

TEST_CASE("an empty table has bins without edges") {
  const OwnedTable<double> table(3, {}, {});
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), {}, exact(), 1);
  CHECK_EQ(bins.n_features(), 3);
  for (const Feature& feature : bins.features()) CHECK(feature.edges.empty());
}

TEST_CASE("quantile bins hold about the same number of rows, and no edge lies on a value") {
  const auto table = mixed_table<double>(5000, 1);
  BinningParams params = exact();
  params.max_bins = 20;
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), mixed_categories(), params, 2);
  const Feature& feature = bins[MixedColumns::continuous];
  CHECK_EQ(feature.edges.size(), 19);
  std::map<Code, int> counts;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const double value = table.at(r, MixedColumns::continuous);
    ++counts[feature.code(value)];
    CHECK(!std::ranges::binary_search(feature.edges, value));
  }
  for (const auto& [code, count] : counts) CHECK(count >= 245 && count <= 255);
}

TEST_CASE("width bins are at most as many as allowed") {
  const auto table = mixed_table<double>(2000, 2);
  BinningParams params = exact();
  params.width = true;
  for (const int max_bins : {2, 10, 100}) {
    params.max_bins = max_bins;
    const BinMap bins = BinMap::fit(table.dense(), table.ids(), mixed_categories(), params, 1);
    const auto n_edges = bins[MixedColumns::continuous].edges.size();
    CHECK(n_edges >= 1 && n_edges < static_cast<std::size_t>(max_bins));
  }
}

TEST_CASE("drawn candidates are some of all edges") {
  const auto table = mixed_table<double>(3000, 3);
  BinningParams params = exact();
  params.max_bins = 200;
  const auto all = BinMap::fit(table.dense(), table.ids(), mixed_categories(), params, 1);
  params.split_sample = 0.1;
  const auto drawn = BinMap::fit(table.dense(), table.ids(), mixed_categories(), params, 1);
  const auto& edges = drawn[MixedColumns::continuous].edges;
  CHECK_EQ(edges.size(), 20);
  CHECK(std::ranges::includes(all[MixedColumns::continuous].edges, edges));
}

TEST_CASE("given edges and categories are used as they are") {
  const auto table = mixed_table<double>(500, 4);
  GivenColumns given = mixed_categories();
  given.edges[MixedColumns::continuous] = {-1, 0.25};
  given.edges[MixedColumns::rare] = {7};
  BinningParams params = exact();
  params.rare_below = 20;
  for (const bool dense : {true, false}) {
    const BinMap bins = dense ? BinMap::fit(table.dense(), table.ids(), given, params, 1)
                              : BinMap::fit(table.sparse(), table.ids(), given, params, 1);
    CHECK(bins[MixedColumns::continuous].edges == given.edges[MixedColumns::continuous]);
    CHECK(bins[MixedColumns::rare].edges == given.edges[MixedColumns::rare]);
    CHECK_EQ(bins[MixedColumns::category].n_categories, 4);
  }
}

TEST_CASE("columns with few values other than 0 are rare") {
  const auto table = mixed_table<double>(1000, 5);
  BinningParams params = exact();
  params.rare_below = 30;
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), mixed_categories(), params, 1);
  for (std::uint32_t c = 0; c < MixedColumns::n; ++c) {
    std::size_t n_other = 0;
    for (std::size_t r = 0; r < table.rows(); ++r) n_other += table.at(r, c) != 0;
    const bool is_rare = bins.cut().find(c) == ColumnIndex::none;
    CHECK_EQ(is_rare, c != MixedColumns::category && n_other < 30);
  }
}

TEST_CASE("common codes and shares are those of the rows") {
  const auto table = mixed_table<double>(800, 6);
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), mixed_categories(), exact(), 1);
  for (std::uint32_t c = 0; c < MixedColumns::n; ++c) {
    std::map<Code, std::size_t> counts;
    bool has_missing = false;
    for (std::size_t r = 0; r < table.rows(); ++r) {
      const Code code = bins[c].code(table.at(r, c));
      ++counts[code];
      has_missing |= code == missing_code;
    }
    std::size_t most = 0;
    for (const auto& [code, count] : counts) most = std::max(most, count);
    CHECK_EQ(counts[bins[c].common_code], most);
    CHECK_EQ(bins[c].common_share, static_cast<double>(most) / 800);
    CHECK_EQ(bins[c].has_missing, has_missing);
  }
}

TEST_CASE("one-hot columns share a bundle") {
  const auto table = mixed_table<double>(2000, 7);
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), mixed_categories(), exact(), 1);
  std::set<std::int32_t> bundles;
  for (std::size_t c = 0; c < 12; ++c) bundles.insert(bins[MixedColumns::one_hot + c].bundle);
  CHECK_EQ(bundles.size(), 1);
  CHECK(*bundles.begin() >= 0);
}

template <class Value>
void check_any_form(std::uint64_t seed) {
  const auto table = mixed_table<Value>(1500, seed);
  Random random(seed);
  const auto shuffled = table.deal(1, random)[0];
  BinningParams params;
  params.rare_below = 25;
  params.seed = seed;
  params.width = seed % 2 == 1;
  params.max_bins = 300;
  const GivenColumns given = mixed_categories();
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), given, params, 1);
  check_same(bins, BinMap::fit(table.dense(), table.ids(), given, params, 3));
  check_same(bins, BinMap::fit(table.sparse(), table.ids(), given, params, 1));
  check_same(bins, BinMap::fit(table.sparse(), table.ids(), given, params, 3));
  check_same(bins, BinMap::fit(shuffled.dense(), shuffled.ids(), given, params, 2));
  check_same(bins, BinMap::fit(shuffled.sparse(), shuffled.ids(), given, params, 2));
  if constexpr (std::is_same_v<Value, float>) {
    std::vector<double> cells;
    for (std::size_t r = 0; r < table.rows(); ++r) {
      for (std::size_t c = 0; c < table.columns(); ++c) cells.push_back(table.at(r, c));
    }
    const OwnedTable<double> doubles(table.columns(), cells,
                                     {table.ids().begin(), table.ids().end()});
    check_same(bins, BinMap::fit(doubles.dense(), doubles.ids(), given, params, 1));
  }
}

TEST_CASE("bins depend neither on the order of rows, the form of the table nor on threads") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    check_any_form<double>(seed);
    check_any_form<float>(seed);
  }
}

// Bins found from the rows of a table that are dealt to k shards.
template <class Table>
BinMap sharded_bins(const std::vector<OwnedTable<typename Table::Value>>& tables,
                    const GivenColumns& given, const BinningParams& params, int n_threads) {
  std::vector<TableShard<Table>> shards;
  for (const auto& table : tables) shards.push_back({table.template as<Table>(), table.ids()});
  return find_bins(std::span<const TableShard<Table>>(shards), given, params, n_threads);
}

template <class Table>
void check_sharded(std::size_t n_rows, std::uint64_t seed) {
  const auto table = mixed_table<typename Table::Value>(n_rows, seed);
  Random random(seed);
  BinningParams params;
  params.seed = seed;
  params.rare_below = n_rows / 40;
  params.width = seed % 3 == 1;
  params.max_bins = seed % 2 == 0 ? 1024 : 40;
  GivenColumns given = mixed_categories();
  given.edges[MixedColumns::continuous + 1] = {-0.5, 0.5};
  const BinMap bins = BinMap::fit(table.template as<Table>(), table.ids(), given, params, 1);
  CHECK(bins.features().size() > 20 && bins.features().size() < MixedColumns::n);
  for (const std::size_t k : {1, 2, 3, 7}) {
    const auto shards = table.deal(k, random);
    check_same(bins, sharded_bins<Table>(shards, given, params, 1 + static_cast<int>(k % 3)));
  }
}

TEST_CASE("bins do not depend on how rows are dealt to shards") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    check_sharded<DenseTable<double>>(1200, seed);
    check_sharded<SparseTable<double>>(1200, seed);
  }
  check_sharded<DenseTable<float>>(800, 10);
  check_sharded<SparseTable<float>>(800, 11);
}

TEST_CASE("shards may be empty, or hold a single row") {
  const auto table = mixed_table<double>(300, 20);
  const BinningParams params = exact();
  const GivenColumns given = mixed_categories();
  const std::vector<OwnedTable<double>> shards{table.slice(0, 0), table.slice(0, 299),
                                               table.slice(5, 5), table.slice(299, 300)};
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), given, params, 1);
  check_same(bins, sharded_bins<DenseTable<double>>(shards, given, params, 2));
  check_same(bins, sharded_bins<SparseTable<double>>(shards, given, params, 2));
  const std::vector<OwnedTable<double>> empty{table.slice(0, 0), table.slice(0, 0)};
  check_same(BinMap::fit(empty[0].dense(), {}, given, params, 1),
             sharded_bins<DenseTable<double>>(empty, given, params, 1));
}

// More rows than are read without sampling. Most values are integers, so that the least value above
// an edge often comes from a row outside the sample.
OwnedTable<float> large_table() {
  constexpr std::size_t n_rows = (std::size_t{1} << 18) + 40000, n_columns = 6;
  Random random(50);
  std::vector<float> cells(n_rows * n_columns);
  std::vector<RowId> ids;
  for (std::size_t r = 0; r < n_rows; ++r) {
    float* row = cells.data() + r * n_columns;
    row[0] = static_cast<float>(random.fraction());
    row[1] = static_cast<float>(random.below(30));
    row[2] = random.chance(0.97) ? 0.0f : static_cast<float>(random.fraction()) - 0.3f;
    row[3] = random.chance(0.0003) ? 1.0f : 0.0f;
    row[random.chance(0.5) ? 4 : 5] = 1;
    ids.push_back(static_cast<RowId>(mix(r) >> 10));
  }
  return {n_columns, std::move(cells), std::move(ids)};
}

TEST_CASE("bins of sampled rows do not depend on how rows are dealt to shards") {
  const auto table = large_table();
  BinningParams params;
  params.rare_below = 200;
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), {}, params, 2);
  CHECK_EQ(bins.features().size(), 5);
  check_same(bins, BinMap::fit(table.sparse(), table.ids(), {}, params, 2));
  Random random(51);
  const auto shards = table.deal(3, random);
  check_same(bins, sharded_bins<DenseTable<float>>(shards, {}, params, 2));
  check_same(bins, sharded_bins<SparseTable<float>>(shards, {}, params, 2));

  // Every edge lies between neighbouring values of all rows, sampled or not.
  for (const std::size_t c : {0, 1, 2}) {
    std::set<double> values;
    for (std::size_t r = 0; r < table.rows(); ++r) values.insert(table.at(r, c));
    CHECK(bins[c].edges.size() > 20);
    for (const double edge : bins[c].edges) {
      const auto above = values.upper_bound(edge);
      REQUIRE(above != values.begin() && above != values.end());
      CHECK_EQ(edge, edge_between(*std::prev(above), *above));
    }
  }
}

// The least value above lower[k - 1] (or any) that is at most lower[k] (or any).
template <class Value>
double naive_least(const OwnedTable<Value>& table, std::size_t column,
                   const WipedVector<double>& lower, std::size_t k) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const double value = table.at(r, column);
    if ((k == 0 || value > lower[k - 1]) && (k == lower.size() || value <= lower[k]))
      least = std::min(least, value);
  }
  return least;
}

template <class Table>
void check_least_above(std::uint64_t seed) {
  const auto table = mixed_table<typename Table::Value>(200, seed);
  Random random(seed);
  std::vector<std::uint32_t> columns;
  ColumnValues lower;
  for (std::uint32_t c = 0; c < table.columns(); ++c) {
    if (random.chance(0.2)) continue;
    columns.push_back(c);
    WipedVector<double> values;
    for (std::size_t i = random.below(5); i > 0; --i)
      values.push_back(static_cast<float>(random.below(7)) / 2 - 1.75f);
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    lower.push_back(values);
  }
  ShardBinning<Table> shard({table.template as<Table>(), table.ids()}, RowSample{0, 0, 0.3});
  shard.select(columns);
  for (const int n_threads : {1, 3}) {
    const ColumnValues least = shard.least_above(lower, n_threads);
    REQUIRE(least.size() == columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      REQUIRE(least[i].size() == lower[i].size() + 1);
      for (std::size_t k = 0; k <= lower[i].size(); ++k)
        CHECK_EQ(least[i][k], naive_least(table, columns[i], lower[i], k));
    }
  }
}

TEST_CASE("the least values between given values are those of all rows") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    check_least_above<DenseTable<double>>(seed);
    check_least_above<SparseTable<double>>(seed);
    check_least_above<DenseTable<float>>(seed);
    check_least_above<SparseTable<float>>(seed);
  }
}

TEST_CASE("whether bundles are worthwhile depends on the rows of all shards") {
  constexpr std::size_t n_rows = 60, n_columns = 6;  // with 18 codes
  std::vector<double> cells(n_rows * n_columns);
  std::vector<RowId> ids;
  for (std::size_t r = 0; r < n_rows; ++r) {
    cells[r * n_columns + r % n_columns] = 1;
    ids.push_back(static_cast<RowId>(r));
  }
  const OwnedTable<double> table(n_columns, cells, ids);
  const BinMap bins = BinMap::fit(table.dense(), table.ids(), {}, exact(), 1);
  CHECK_EQ(bins[0].bundle, 0);
  std::vector<OwnedTable<double>> shards;
  for (std::size_t begin = 0; begin < n_rows; begin += 10)
    shards.push_back(table.slice(begin, begin + 10));
  check_same(bins, sharded_bins<DenseTable<double>>(shards, {}, exact(), 1));
  check_same(bins, sharded_bins<SparseTable<double>>(shards, {}, exact(), 1));
}

TEST_CASE("rows without ids are numbered through the shards") {
  const auto table = large_table();
  const DenseTable<float> all = table.dense();
  DenseTable<float> first = all, second = all;
  first.rows = 100000;
  second.rows = all.rows - first.rows;
  second.data = all.row(first.rows);
  const std::vector<TableShard<DenseTable<float>>> shards{
      {first, {}, 0}, {second, {}, static_cast<RowId>(first.rows)}};
  check_same(BinMap::fit(all, {}, {}, {}, 2),
             find_bins(std::span<const TableShard<DenseTable<float>>>(shards), {}, {}, 2));
}

TEST_CASE("shards with different numbers of columns are rejected") {
  const OwnedTable<double> a(1, {1}, {0}), b(2, {1, 2}, {1});
  CHECK_THROWS_AS(sharded_bins<DenseTable<double>>({a, b}, {}, {}, 1), std::invalid_argument);
  CHECK_THROWS_AS(sharded_bins<DenseTable<double>>({}, {}, {}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace graftboost
