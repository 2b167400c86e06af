#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "data/bundling.hpp"
#include "data/code_layout.hpp"
#include "tests/check.hpp"
#include "tests/tables.hpp"

namespace graftboost {
namespace {

using testing::mixed_categories;
using testing::mixed_table;
using testing::MixedColumns;
using Kind = FeatureLayout::Kind;

BinMap mixed_bins(std::uint64_t seed, int max_bins, std::size_t rare_below) {
  const auto table = mixed_table<double>(3000, seed);
  BinningParams params;
  params.split_sample = 1;
  params.max_bins = max_bins;
  params.rare_below = rare_below;
  return BinMap::fit(table.dense(), table.ids(), mixed_categories(), params, 1);
}

TEST_CASE("the cells of features are disjoint and lie within the histogram") {
  for (const int max_bins : {16, 255, 1024}) {
    for (const std::size_t rare_below : {0, 100}) {
      CodeLayout layout(mixed_bins(1, max_bins, rare_below));
      const std::vector<std::uint32_t> added{MixedColumns::rare + 3, MixedColumns::rare + 7};
      if (rare_below != 0) layout.add(added);
      std::vector<int> n_owners(layout.histogram_size());
      for (std::size_t i = 0; i < layout.size(); ++i) {
        for (std::uint32_t c = 0; c < layout[i].n_codes; ++c) ++n_owners.at(layout[i].offset + c);
      }
      for (std::size_t byte = layout.first_bundle(); byte < layout.n_bytes(); ++byte)
        ++n_owners.at(layout.byte_offsets()[byte]);  // "none differs"
      for (const int n : n_owners) CHECK_EQ(n, 1);
    }
  }
}

TEST_CASE("positions in a row are disjoint but for the bytes of bundles") {
  const CodeLayout layout(mixed_bins(2, 1024, 100));
  std::vector<std::set<Kind>> kinds(layout.row_bytes());
  std::vector<int> n_plain(layout.row_bytes());
  std::set<Kind> all_kinds;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const FeatureLayout& feature = layout[i];
    all_kinds.insert(feature.kind);
    if (feature.kind == Kind::wide) {
      for (const std::size_t byte : {2 * feature.position, 2 * feature.position + 1}) {
        kinds.at(byte).insert(feature.kind);
        ++n_plain[byte];
      }
    } else if (feature.kind != Kind::sparse) {
      kinds.at(feature.position).insert(feature.kind);
      n_plain[feature.position] += feature.kind == Kind::narrow;
    }
  }
  CHECK(all_kinds == std::set<Kind>({Kind::narrow, Kind::wide, Kind::bundled, Kind::sparse}));
  for (std::size_t byte = 0; byte < layout.row_bytes(); ++byte) {
    CHECK(kinds[byte].size() <= 1);
    CHECK(n_plain[byte] <= 1);
  }
}

TEST_CASE("features are narrow up to 256 codes") {
  std::vector<Feature> features(2);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t e = 0; e < 254 + i; ++e) features[i].edges.push_back(static_cast<double>(e));
  }
  const CodeLayout layout(BinMap(2, {0, 1}, std::move(features)));
  CHECK(layout[0].kind == Kind::narrow && layout[0].n_codes == 256);
  CHECK(layout[1].kind == Kind::wide && layout[1].n_codes == 257);
  CHECK_EQ(layout.row_bytes(), 4);
}

// How many features are stored sparsely if `n` have such a share of common codes, beside `others`.
std::size_t n_sparse(std::size_t n, double share, std::vector<Feature> others = {}) {
  Feature feature;
  feature.edges = {0.5, 1.5};
  feature.common_code = 1;
  feature.common_share = share;
  others.insert(others.end(), n, feature);
  std::vector<std::uint32_t> columns;
  for (std::uint32_t f = 0; f < others.size(); ++f) columns.push_back(f);
  const std::size_t n_columns = columns.size();
  const CodeLayout layout(BinMap(n_columns, std::move(columns), std::move(others)));
  return layout.size() - layout.first_sparse();
}

TEST_CASE("features are stored sparsely if that saves more than it costs to find entries") {
  // Few skewed columns among others, as in most tables of people.
  CHECK_EQ(n_sparse(8, 0.95), 0);
  CHECK_EQ(n_sparse(20, 0.6), 0);
  CHECK_EQ(n_sparse(20, 0.9), 0);
  CHECK_EQ(n_sparse(20, 0.97), 20);
  CHECK_EQ(n_sparse(50, 0.7), 0);
  CHECK_EQ(n_sparse(50, 0.9), 50);
  CHECK_EQ(n_sparse(100, 0.6), 0);
  CHECK_EQ(n_sparse(100, 0.8), 100);
}

TEST_CASE("a feature that differs in many rows stays plain beside sparse ones") {
  Feature plain;
  plain.edges = {0.5};
  plain.common_share = 0.6;
  CHECK_EQ(n_sparse(50, 0.95, {plain, plain}), 50);
}

TEST_CASE("bundled features do not pay for finding entries of others") {
  Feature bundled;
  bundled.edges = {0.5};
  bundled.common_code = 1;
  bundled.common_share = 0.99;
  bundled.bundle = 0;
  CHECK_EQ(n_sparse(10, 0.97, std::vector<Feature>(40, bundled)), 0);
}

TEST_CASE("each byte of a bundle is one code of one feature") {
  const BinMap bins = mixed_bins(3, 254, 100);
  const CodeLayout layout(bins);
  std::set<std::pair<std::uint32_t, std::uint32_t>> used;
  std::size_t n_bundled = 0;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const FeatureLayout& feature = layout[i];
    if (feature.kind != Kind::bundled) continue;
    ++n_bundled;
    CHECK(!feature.has_byte(feature.common_code) || feature.n_bundled > 1);
    CHECK_EQ(feature.bundled_code(0), feature.common_code);
    for (std::uint32_t k = 0; k < feature.n_bundled; ++k) {
      const auto byte = static_cast<std::uint8_t>(feature.base + k);
      const Code code = feature.bundled_code(byte);
      CHECK_EQ(code, feature.first_bundled + k);
      CHECK(feature.has_byte(code));
      CHECK(used.emplace(feature.position, byte).second);
      CHECK_EQ(layout.bundle_cells(feature.position)[byte], feature.offset + code);
    }
  }
  CHECK(n_bundled >= 12);
}

TEST_CASE("features are found by column, rare columns share one layout") {
  const BinMap bins = mixed_bins(4, 254, 100);
  CodeLayout layout(bins);
  const std::size_t size = layout.size(), histogram_size = layout.histogram_size();
  const std::uint32_t column = MixedColumns::rare + 2;
  CHECK_EQ(layout.number_of(column), ColumnIndex::none);
  CHECK(layout.of(column).kind == Kind::rare);
  CHECK_EQ(layout.of(MixedColumns::integers).column, MixedColumns::integers);
  const std::vector<std::uint32_t> columns{column};
  layout.add(columns);
  CHECK(std::ranges::equal(layout.added(), columns));
  CHECK_EQ(layout.number_of(column), size);
  CHECK(layout.of(column).kind == Kind::sparse);
  CHECK_EQ(layout.of(column).offset, histogram_size);
  CHECK_EQ(layout.histogram_size(), histogram_size + BinMap::rare().n_codes());
}

}  // namespace
}  // namespace graftboost
