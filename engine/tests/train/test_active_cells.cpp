#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tests/check.hpp"
#include "tests/train/encoded_rows.hpp"
#include "train/active_cells.hpp"
#include "train/growing_rows.hpp"

namespace graftboost {
namespace {

using testing::EncodedRows;
using testing::ModelOptions;

// The cells that some row has an entry for.
std::set<std::uint32_t> entries_in_use(const Shards& shards) {
  std::set<std::uint32_t> used;
  for (const RowShard& shard : shards) {
    for (Slot row = 0; shard.rows.has_sparse() && row < shard.size(); ++row) {
      const auto codes = shard.rows.sparse_codes(row);
      used.insert(codes.begin(), codes.end());
    }
  }
  return used;
}

TEST_CASE("active cells are the plain ones and those that some row falls into, in order") {
  ModelOptions options;
  options.many_columns = true;
  options.n_shards = 3;
  const EncodedRows encoded(options, 150, 1);
  const CodeLayout& layout = encoded.shards.layout();
  const GrowingCells cells = GrowingCells::of_rows(encoded.shards);
  const ActiveCells& active = cells.active();
  CHECK(active.is_renumbered());
  std::vector<std::uint32_t> expected;
  for (const std::uint32_t cell : entries_in_use(encoded.shards))
    if (cell >= layout.plain_size()) expected.push_back(cell);
  REQUIRE(active.size() == layout.plain_size() + expected.size());
  REQUIRE(active.size() < layout.histogram_size());
  for (std::size_t i = 0; i < active.size(); ++i)
    CHECK_EQ(active.cell(i), i < layout.plain_size() ? i : expected[i - layout.plain_size()]);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK_EQ(active.sparse_cells()[i], expected[i]);
}

TEST_CASE("all cells of the layout are active if they are not renumbered") {
  ModelOptions options;
  options.many_columns = true;
  const EncodedRows encoded(options, 100, 1);
  const GrowingCells cells = GrowingCells::of_layout(encoded.shards);
  CHECK(!cells.active().is_renumbered());
  CHECK(cells.active().sparse_cells() == nullptr);
  CHECK_EQ(cells.active().size(), encoded.shards.layout().histogram_size());
  for (std::size_t i = 0; i < cells.active().size(); ++i) CHECK_EQ(cells.active().cell(i), i);
}

TEST_CASE("views of features show their cells in a histogram of active cells") {
  ModelOptions mixed, sparse;
  sparse.many_columns = true;
  for (const ModelOptions& options : {mixed, sparse}) {
    const EncodedRows encoded(options, 300, 2);
    const CodeLayout& layout = encoded.shards.layout();
    for (const bool renumbered : {false, true}) {
      const GrowingCells cells = renumbered ? GrowingCells::of_rows(encoded.shards)
                                            : GrowingCells::of_layout(encoded.shards);
      const ActiveCells& active = cells.active();
      // Every cell holds its number in the layout.
      Array<WideSums> histogram(active.size());
      for (std::size_t i = 0; i < active.size(); ++i)
        histogram[i] = {static_cast<std::int64_t>(active.cell(i)), 0, 0};
      for (std::uint32_t f = 0; f < layout.size(); ++f) {
        const FeatureLayout& feature = layout[f];
        const auto view = active.view(f, histogram.data());
        CHECK_EQ(view.is_complete, !feature.counts_only_differing());
        CHECK_EQ(view.is_sparse,
                 active.is_renumbered() && feature.kind == FeatureLayout::Kind::sparse);
        const std::size_t n = view.is_sparse ? view.cells.size() : feature.n_codes;
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t cell = view.is_sparse ? view.cells[i] : feature.offset + i;
          CHECK_EQ(view.sums[i].g, cell);
          CHECK(cell - feature.offset < feature.n_codes);
        }
      }
    }
  }
}

TEST_CASE("entries of a shard list its rows by cell, and its cells by row") {
  ModelOptions mixed, sparse;
  sparse.many_columns = true;
  sparse.n_shards = 2;
  int n_listed = 0;
  for (const ModelOptions& options : {mixed, sparse}) {
    const EncodedRows encoded(options, 300, 3);
    const CodeLayout& layout = encoded.shards.layout();
    const GrowingCells cells = GrowingCells::of_rows(encoded.shards);
    const ActiveCells& active = cells.active();
    for (std::size_t s = 0; s < encoded.shards.size(); ++s) {
      const RowTable& rows = encoded.shards[s].rows;
      const ActiveEntries& entries = cells.entries(s);
      for (Slot row = 0; rows.has_sparse() && row < rows.size(); ++row) {
        std::vector<std::size_t> found;
        for (const std::uint32_t cell : entries.entries().of(row))
          found.push_back(active.cell(cell));
        CHECK(std::ranges::equal(found, rows.sparse_codes(row)));
      }
      if (!entries.lists_rows()) continue;
      ++n_listed;
      for (std::uint32_t f = 0; f < layout.size(); ++f) {
        std::map<Slot, Code> expected, found;
        for (Slot row = 0; rows.has_sparse() && row < rows.size(); ++row) {
          for (const std::uint32_t cell : rows.sparse_codes(row)) {
            if (cell - layout[f].offset < layout[f].n_codes)
              expected[row] = static_cast<Code>(cell - layout[f].offset);
          }
        }
        entries.for_each_row(f, [&](Slot row, Code code) {
          CHECK(!found.contains(row));
          found[row] = code;
        });
        CHECK(found == expected);
        CHECK_EQ(entries.any_row_in(f), !expected.empty());
      }
    }
  }
  CHECK(n_listed > 0);
}

}  // namespace
}  // namespace graftboost
