#include <algorithm>
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "model/node_histogram.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

using testing::Random;

// Two narrow features, a bundle of two features, twenty sparse features and rare columns.
CodeLayout small_layout() {
  std::vector<Feature> features(24);
  std::vector<std::uint32_t> columns;
  for (std::uint32_t f = 0; f < 24; ++f) {
    columns.push_back(f);
    features[f].edges = {0.5, 1.5, 2.5};
    features[f].common_code = 1;
    features[f].common_share = f < 2 ? 0.3 : 0.95;
    if (f == 2 || f == 3) features[f].bundle = 0;
  }
  return CodeLayout(BinMap(38, columns, features));
}

// The cells of a random row, in the order in which RowTable lists them.
std::vector<std::uint32_t> random_cells(const CodeLayout& layout, Random& random) {
  std::vector<std::uint32_t> plain, sparse;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const FeatureLayout& feature = layout[f];
    const auto code = static_cast<std::uint32_t>(random.below(feature.n_codes));
    if (feature.counts_only_differing() && (code == feature.common_code || random.chance(0.5)))
      continue;
    const bool is_sparse = feature.kind == FeatureLayout::Kind::sparse;
    (is_sparse ? sparse : plain).push_back(feature.offset + code);
  }
  std::sort(sparse.begin(), sparse.end());
  plain.insert(plain.end(), sparse.begin(), sparse.end());
  return plain;
}

struct Booked {
  std::vector<std::uint32_t> cells;
  Totals totals;
};

using Expected = std::map<std::uint32_t, Totals>;

Expected sums_of(const std::vector<Booked>& rows) {
  Expected sums;
  for (const Booked& row : rows)
    for (const std::uint32_t cell : row.cells) sums[cell] += row.totals;
  return sums;
}

template <class Sums>
NodeHistogram<Sums> histogram_of(const CodeLayout& layout, const std::vector<Booked>& rows) {
  Histogram<Sums> all(layout.histogram_size());
  all.fill(Sums(Totals{}));
  for (const auto& [cell, totals] : sums_of(rows)) all[cell] += Sums(totals);
  // Cells that follow from others may hold anything.
  for (const std::uint32_t cell : layout.implied_cells()) all[cell] = Sums(Totals{9, 9, 9});
  return NodeHistogram<Sums>(layout, all);
}

template <class Sums>
void check(const CodeLayout& layout, const NodeHistogram<Sums>& histogram,
           const Expected& expected) {
  REQUIRE(histogram.plain.size() == layout.plain_size());
  REQUIRE(histogram.cells.size() == histogram.sums.size());
  Expected found;
  for (std::uint32_t c = 0; c < histogram.plain.size(); ++c)
    if (Totals(histogram.plain[c]) != Totals{}) found[c] = Totals(histogram.plain[c]);
  for (std::size_t i = 0; i < histogram.cells.size(); ++i) {
    CHECK(i == 0 || histogram.cells[i - 1] < histogram.cells[i]);
    // Nothing is left of a cell that no row falls into.
    CHECK(Totals(histogram.sums[i]) != Totals{});
    found[histogram.cells[i]] = Totals(histogram.sums[i]);
  }
  CHECK(found == expected);
  for (std::size_t f = 0; f < layout.size(); ++f) {
    Expected of_feature;
    histogram.for_each(layout[f], [&](std::uint32_t code, const Sums& sums) {
      if (Totals(sums) != Totals{}) of_feature[layout[f].offset + code] = Totals(sums);
    });
    Expected wanted;
    for (const auto& [cell, totals] : expected)
      if (cell - layout[f].offset < layout[f].n_codes) wanted[cell] = totals;
    CHECK(of_feature == wanted);
  }
}

Booked random_row(const CodeLayout& layout, Random& random) {
  return {random_cells(layout, random),
          {static_cast<std::int64_t>(random.below(1000)) - 500,
           static_cast<std::int64_t>(random.below(1000)), 1}};
}

template <class Sums>
void check_booking() {
  const CodeLayout layout = small_layout();
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Random random(seed);
    std::vector<Booked> rows;
    NodeHistogram<Sums> histogram = histogram_of<Sums>(layout, rows);
    CHECK(histogram.cached);
    for (int step = 0; step < 150; ++step) {
      if (rows.empty() || random.chance(step < 75 ? 0.7 : 0.35)) {
        rows.push_back(random_row(layout, random));
        histogram.book(rows.back().cells, Sums(rows.back().totals), true);
      } else {
        const std::size_t r = random.below(rows.size());
        histogram.book(rows[r].cells, Sums(rows[r].totals), false);
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(r));
      }
      check(layout, histogram, sums_of(rows));
      CHECK(histogram == histogram_of<Sums>(layout, rows));
    }
    // A row of weight 0 adds nothing.
    histogram.book(random_cells(layout, random), Sums(Totals{}), true);
    check(layout, histogram, sums_of(rows));
  }
}

TEST_CASE("booked cells are those of a map") {
  check_booking<PackedSums>();
  check_booking<WideSums>();
}

template <class Sums>
void check_parts() {
  const CodeLayout layout = small_layout();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    std::vector<Booked> part, others, all, changed;
    const std::size_t n_part = random.below(12), n_others = random.below(12);
    for (std::size_t r = 0; r < n_part; ++r) part.push_back(random_row(layout, random));
    for (std::size_t r = 0; r < n_others; ++r) others.push_back(random_row(layout, random));
    all = others;
    all.insert(all.end(), part.begin(), part.end());
    NodeHistogram<Sums> histogram = histogram_of<Sums>(layout, all);
    check(layout, histogram, sums_of(all));

    // The rows of the part record other gradients.
    changed = part;
    for (Booked& row : changed) row.totals.g += 1 + static_cast<std::int64_t>(random.below(50));
    histogram.exchange(histogram_of<Sums>(layout, part), histogram_of<Sums>(layout, changed));
    std::vector<Booked> now = others;
    now.insert(now.end(), changed.begin(), changed.end());
    check(layout, histogram, sums_of(now));

    histogram -= histogram_of<Sums>(layout, changed);
    check(layout, histogram, sums_of(others));
    histogram -= histogram_of<Sums>(layout, others);
    check(layout, histogram, {});
    CHECK_EQ(histogram.bytes(), layout.plain_size() * sizeof(Sums));
  }
}

TEST_CASE("parts of a histogram are exchanged and subtracted as in a map") {
  check_parts<PackedSums>();
  check_parts<WideSums>();
}

TEST_CASE("a histogram is made from the cells that are given alone") {
  const CodeLayout layout = small_layout();
  REQUIRE(layout.histogram_size() > layout.plain_size() + 11);
  const std::vector<std::uint32_t> present{static_cast<std::uint32_t>(layout.plain_size() + 2),
                                           static_cast<std::uint32_t>(layout.plain_size() + 7),
                                           static_cast<std::uint32_t>(layout.plain_size() + 11)};
  Histogram<PackedSums> all(layout.plain_size() + 3);
  all.fill(PackedSums(Totals{}));
  all[0] = PackedSums(Totals{4, 5, 1});
  all[layout.plain_size()] = PackedSums(Totals{6, 7, 1});
  all[layout.plain_size() + 2] = PackedSums(Totals{8, 9, 1});
  const NodeHistogram<PackedSums> histogram(layout, all, present.data());
  check(layout, histogram, {{0, {4, 5, 1}}, {present[0], {6, 7, 1}}, {present[2], {8, 9, 1}}});
}

TEST_CASE("cells move when columns leave the layout") {
  CodeLayout before = small_layout(), after = small_layout();
  const std::vector<std::uint32_t> added{30, 27, 33, 28};
  before.add(added);
  const std::vector<std::uint32_t> kept{27, 28};
  after.add(kept);
  Random random(3);
  std::vector<Booked> rows;
  for (int r = 0; r < 10; ++r) {
    Booked row = random_row(before, random);
    std::erase_if(row.cells, [&](std::uint32_t cell) {
      for (const std::uint32_t column : {30u, 33u})
        if (cell - before.of(column).offset < before.of(column).n_codes) return true;
      return false;
    });
    rows.push_back(row);
  }
  NodeHistogram<PackedSums> histogram = histogram_of<PackedSums>(before, rows);
  Expected expected;
  for (const auto& [cell, totals] : sums_of(rows)) {
    std::uint32_t to = cell;
    for (const std::uint32_t column : kept) {
      if (cell - before.of(column).offset < before.of(column).n_codes)
        to = cell - before.of(column).offset + after.of(column).offset;
    }
    expected[to] = totals;
  }
  REQUIRE(expected != sums_of(rows));
  histogram.move_cells(before, after);
  check(after, histogram, expected);
}

TEST_CASE("a copy of the histograms of a tree holds the same") {
  const CodeLayout layout = small_layout();
  Random random(4);
  TreeHistograms<WideSums> histograms(3);
  histograms[1] = histogram_of<WideSums>(layout, {random_row(layout, random)});
  const AnyTreeHistograms any(histograms), copy(any);
  REQUIRE(std::holds_alternative<TreeHistograms<WideSums>>(copy));
  const auto& copied = std::get<TreeHistograms<WideSums>>(copy);
  REQUIRE(copied.size() == 3);
  CHECK(copied[1] == histograms[1]);
  CHECK(copied[1].cached);
  CHECK(!copied[0].cached);
}

}  // namespace
}  // namespace graftboost
