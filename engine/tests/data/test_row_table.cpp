#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "data/bundling.hpp"
#include "data/row_table.hpp"
#include "tests/check.hpp"
#include "tests/data/checked_rows.hpp"
#include "tests/tables.hpp"

namespace graftboost {
namespace {

using testing::append;
using testing::check_rows;
using testing::encoded;
using testing::has_kind;
using testing::mixed_bins;
using testing::mixed_table;
using testing::OwnedTable;
using testing::Random;

template <class Table>
void check_encoding() {
  using Value = typename Table::Value;
  for (const int max_bins : {8, 1024}) {
    const auto table = mixed_table<Value>(1100, 11);
    const BinMap bins = mixed_bins(table, max_bins);
    RowTable rows = encoded<Table>(bins, table.slice(0, 600));
    append<Table>(rows, bins, table.slice(600, 600));
    append<Table>(rows, bins, table.slice(600, 1100));
    check_rows(rows, bins, table);
    CHECK(has_kind(rows, FeatureLayout::Kind::bundled));
    CHECK_EQ(has_kind(rows, FeatureLayout::Kind::wide), max_bins == 1024);
    CHECK(has_kind(rows, FeatureLayout::Kind::sparse));
  }
}

TEST_CASE("codes that are read back are those of a naive encoder") {
  check_encoding<DenseTable<double>>();
  check_encoding<DenseTable<float>>();
  check_encoding<SparseTable<double>>();
  check_encoding<SparseTable<float>>();
}

TEST_CASE("dense tables may have any strides") {
  const auto table = mixed_table<double>(300, 12);
  const BinMap bins = mixed_bins(table, 64);
  std::vector<double> columns(300 * table.columns());
  for (std::size_t r = 0; r < 300; ++r) {
    for (std::size_t c = 0; c < table.columns(); ++c) columns[c * 300 + 299 - r] = table.at(r, c);
  }
  const DenseTable<double> reversed{columns.data() + 299, 300, table.columns(), -1, 300};
  RowTable rows;
  rows.layout = CodeLayout(bins);
  rows.append_codes(bins, reversed, 1);
  for (const RowId id : table.ids()) rows.ids.push_back(id);
  check_rows(rows, bins, table);
}

TEST_CASE("a row whose bundled features differ together keeps all their codes") {
  const auto table = mixed_table<double>(400, 13);
  const BinMap bins = mixed_bins(table, 8);
  std::vector<double> cells(table.columns(), 1.0);
  const OwnedTable<double> odd(table.columns(), cells, {7});
  for (const bool dense : {true, false}) {
    const RowTable rows =
        dense ? encoded<DenseTable<double>>(bins, odd) : encoded<SparseTable<double>>(bins, odd);
    REQUIRE(has_kind(rows, FeatureLayout::Kind::bundled));
    check_rows(rows, bins, odd);
    CHECK(rows.sparse_count[0] >= 11);
  }
}

TEST_CASE("cells of a histogram are those of the codes, without implied ones") {
  const auto table = mixed_table<double>(500, 14);
  const BinMap bins = mixed_bins(table, 8);
  RowTable rows = encoded<SparseTable<double>>(bins, table);
  std::uint64_t n_entries = 0;
  for (Slot row = 0; row < rows.size(); ++row) {
    std::multiset<std::uint32_t> expected, found;
    std::set<std::uint32_t> present;
    for (std::size_t i = 0; i < rows.layout.size(); ++i) {
      const FeatureLayout& feature = rows.layout[i];
      const Code code = rows.code(row, feature.column);
      if (feature.counts_only_differing() && code == feature.common_code) continue;
      expected.insert(feature.offset + code);
      if (feature.counts_only_differing()) present.insert(static_cast<std::uint32_t>(i));
    }
    rows.for_each_cell(row, [&](std::uint32_t cell) { found.insert(cell); });
    CHECK(found == expected);
    const auto numbers = rows.present(row);
    CHECK(std::set<std::uint32_t>(numbers.begin(), numbers.end()) == present);
    CHECK_EQ(numbers.size(), present.size());
    n_entries += rows.has_sparse() ? rows.sparse_count[row] : 0;
  }
  CHECK_EQ(rows.n_in_histograms(), n_entries);
}

TEST_CASE("rows that stay keep their codes when others are removed") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Random random(seed);
    auto table = mixed_table<double>(400, 20 + seed);
    const BinMap bins = mixed_bins(table, 8);
    RowTable rows = encoded<SparseTable<double>>(bins, table);
    for (int repetition = 0; repetition < 6; ++repetition) {
      std::vector<Slot> removed;
      for (Slot slot = 0; slot < rows.size(); ++slot)
        if (random.chance(0.3)) removed.push_back(slot);
      std::vector<std::size_t> order;
      for (std::size_t r = 0; r < rows.size(); ++r) order.push_back(r);
      const auto moves = rows.moves_to_vacate(removed);
      for (const auto& move : moves) order[move.to] = move.from;
      order.resize(rows.size() - removed.size());
      rows.vacate(removed, moves);
      table = table.select(order);
      check_rows(rows, bins, table);
    }
  }
}

// The words of an array from its size to the size it had before.
template <class T>
bool is_zero(const T* begin, const T* end) {
  return std::all_of(begin, end, [](T value) { return value == 0; });
}

TEST_CASE("memory of removed rows is overwritten") {
  const auto table = mixed_table<double>(200, 30);
  const BinMap bins = mixed_bins(table, 8);
  RowTable rows = encoded<SparseTable<double>>(bins, table);
  REQUIRE(rows.has_sparse());
  const std::vector<Slot> removed{3, 50, 51, 120, 197, 199};
  std::vector<std::pair<std::uint64_t, std::uint32_t>> entries;
  for (const Slot slot : removed)
    entries.emplace_back(rows.sparse_begin[slot], rows.sparse_count[slot] + rows.rare_count[slot]);

  // Shrinking does not move an array, so that the memory past its new end is still its own.
  const std::size_t left = 200 - removed.size(), row_bytes = rows.layout.row_bytes();
  const std::size_t n_entries = rows.sparse_entries.size();
  rows.vacate(removed, rows.moves_to_vacate(removed));
  CHECK_EQ(rows.size(), left);
  CHECK_EQ(rows.sparse_entries.size(), n_entries);
  CHECK(is_zero(rows.cells.data() + left * row_bytes, rows.cells.data() + 200 * row_bytes));
  CHECK(is_zero(rows.ids.data() + left, rows.ids.data() + 200));
  CHECK(is_zero(rows.target.data() + left, rows.target.data() + 200));
  CHECK(is_zero(rows.sparse_begin.data() + left, rows.sparse_begin.data() + 200));
  CHECK(is_zero(rows.sparse_count.data() + left, rows.sparse_count.data() + 200));
  CHECK(is_zero(rows.rare_count.data() + left, rows.rare_count.data() + 200));
  for (const auto& [begin, n] : entries)
    CHECK(is_zero(rows.sparse_entries.data() + begin, rows.sparse_entries.data() + begin + n));
}

TEST_CASE("entries move together when half of them are gaps") {
  const auto table = mixed_table<double>(2000, 31);
  const BinMap bins = mixed_bins(table, 300);
  RowTable rows = encoded<SparseTable<double>>(bins, table);
  const std::size_t n_entries = rows.sparse_entries.size();
  std::vector<Slot> removed;
  for (Slot slot = 300; slot < 2000; ++slot) removed.push_back(slot);
  rows.vacate(removed, rows.moves_to_vacate(removed));
  CHECK(rows.sparse_entries.size() < n_entries / 2);
  check_rows(rows, bins, table.slice(0, 300));
}

TEST_CASE("truncation undoes an append") {
  const auto table = mixed_table<double>(300, 32);
  const BinMap bins = mixed_bins(table, 8);
  for (const std::size_t n_before : {0, 100}) {
    RowTable rows = encoded<DenseTable<double>>(bins, table.slice(0, n_before));
    const auto before = rows.extent();
    append<SparseTable<double>>(rows, bins, table.slice(n_before, 300));
    check_rows(rows, bins, table);
    rows.truncate(before);
    CHECK_EQ(rows.size(), n_before);
    CHECK_EQ(rows.has_sparse(), before.sparse);
    CHECK_EQ(rows.sparse_entries.size(), before.n_entries);
    CHECK_EQ(rows.ids.size(), n_before);
    check_rows(rows, bins, table.slice(0, n_before));
    append<SparseTable<double>>(rows, bins, table.slice(n_before, 300));
    check_rows(rows, bins, table);
  }
}

}  // namespace
}  // namespace graftboost
