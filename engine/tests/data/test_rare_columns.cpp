#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/row_table.hpp"
#include "tests/check.hpp"
#include "tests/data/checked_rows.hpp"
#include "tests/tables.hpp"

namespace graftboost {
namespace {

using testing::append;
using testing::check_rows;
using testing::mixed_bins;
using testing::mixed_table;
using testing::MixedColumns;
using testing::OwnedTable;

constexpr std::size_t n_fitted = 1000;

// A table whose rare columns are more frequent in the rows after the first `n_fitted`.
OwnedTable<double> growing_table() {
  const auto before = mixed_table<double>(n_fitted, 41), after = mixed_table<double>(300, 42, 0.1);
  std::vector<double> cells;
  std::vector<RowId> ids;
  for (const auto* table : {&before, &after}) {
    for (std::size_t r = 0; r < table->rows(); ++r) {
      for (std::size_t c = 0; c < table->columns(); ++c) cells.push_back(table->at(r, c));
      ids.push_back(static_cast<RowId>(ids.size()));
    }
  }
  return {MixedColumns::n, std::move(cells), std::move(ids)};
}

std::size_t n_other(const OwnedTable<double>& table, std::size_t column) {
  std::size_t n = 0;
  for (std::size_t r = 0; r < table.rows(); ++r) n += table.at(r, column) != 0;
  return n;
}

struct Fixture {
  OwnedTable<double> table = growing_table();
  BinMap bins = mixed_bins(table.slice(0, n_fitted), 64);
  RowTable rows;

  explicit Fixture(std::size_t n_rows) {
    rows.layout = CodeLayout(bins);
    append<SparseTable<double>>(rows, bins, table.slice(0, n_rows));
  }
  void append_from(std::size_t begin) {
    append<SparseTable<double>>(rows, bins, table.slice(begin, table.rows()));
  }
  std::vector<std::uint32_t> columns_with(std::size_t least) const {
    std::vector<std::uint32_t> columns;
    for (std::uint32_t c = 0; c < table.columns(); ++c) {
      if (bins.cut().find(c) == ColumnIndex::none && n_other(table, c) >= least)
        columns.push_back(c);
    }
    return columns;
  }
  void lay_out(const std::vector<std::uint32_t>& columns) {
    CodeLayout next = rows.layout;
    next.add(columns);
    const auto cells = rows.new_cells(next, columns);
    rows.lay_out_columns(next, columns, cells);
  }
  std::vector<std::uint32_t> entries() const {
    return {rows.sparse_entries.begin(), rows.sparse_entries.end()};
  }
};

// So that some columns are frequent and others are not.
constexpr std::size_t least = 42;

TEST_CASE("columns of added rows are frequent once enough rows have them") {
  Fixture at_once(n_fitted + 300);
  const auto expected = at_once.columns_with(least);
  REQUIRE(expected.size() >= 2 && expected.size() < 10);
  CHECK(at_once.rows.find_frequent(n_fitted, least) == expected);

  Fixture in_steps(n_fitted);
  in_steps.rows.find_frequent(0, least);
  in_steps.append_from(n_fitted);
  CHECK(in_steps.rows.find_frequent(n_fitted, least) == expected);
}

TEST_CASE("removed rows no longer count for frequent columns") {
  Fixture f(n_fitted + 300);
  f.rows.find_frequent(n_fitted, least);
  std::vector<Slot> removed;
  for (Slot slot = 0; slot < n_fitted; ++slot) removed.push_back(slot);
  f.rows.vacate(removed, f.rows.moves_to_vacate(removed));
  const OwnedTable<double> rest = f.table.slice(n_fitted, n_fitted + 300);
  RowTable fresh;
  fresh.layout = CodeLayout(f.bins);
  append<SparseTable<double>>(fresh, f.bins, rest);
  const std::size_t n = f.rows.size();
  append<SparseTable<double>>(f.rows, f.bins, rest);
  append<SparseTable<double>>(fresh, f.bins, rest);
  const auto slot = static_cast<Slot>(n);
  CHECK(f.rows.find_frequent(slot, 60) == fresh.find_frequent(slot, 60));
}

TEST_CASE("columns that are laid out keep their codes and move from the rare cells to the others") {
  Fixture f(n_fitted + 300);
  const auto columns = f.rows.find_frequent(n_fitted, least);
  const double cells_per_row = f.rows.cells_per_row();
  std::size_t n_moved = 0;
  for (const std::uint32_t column : columns) n_moved += n_other(f.table, column);
  f.lay_out(columns);
  for (const std::uint32_t column : columns)
    CHECK(f.rows.layout.of(column).kind == FeatureLayout::Kind::sparse);
  check_rows(f.rows, f.bins, f.table);
  const double expected = cells_per_row + static_cast<double>(n_moved) / (n_fitted + 300);
  CHECK(std::abs(f.rows.cells_per_row() - expected) < 1e-9);
  f.append_from(n_fitted);
  const auto found = f.rows.find_frequent(n_fitted + 300, least);
  for (const std::uint32_t column : columns) CHECK(!std::ranges::binary_search(found, column));
}

TEST_CASE("exchanging the layout and exchanging it back restores every entry") {
  Fixture f(n_fitted + 300);
  const auto before = f.entries();
  const auto columns = f.columns_with(least);
  CodeLayout other(f.bins);
  other.add(columns);
  f.rows.exchange_layout(other);
  CHECK(f.entries() != before);
  CHECK(std::ranges::equal(f.rows.layout.added(), columns));
  check_rows(f.rows, f.bins, f.table);
  f.rows.exchange_layout(other);
  CHECK(f.entries() == before);
  check_rows(f.rows, f.bins, f.table);
}

TEST_CASE("laying columns out at once or in two steps gives the same codes") {
  Fixture f(n_fitted + 300);
  const auto columns = f.columns_with(least);
  f.lay_out({columns.begin() + 1, columns.end()});
  f.lay_out({columns[0]});
  check_rows(f.rows, f.bins, f.table);
  f.append_from(n_fitted);
  check_rows(f.rows, f.bins, [&] {
    std::vector<std::size_t> twice;
    for (std::size_t r = 0; r < f.table.rows(); ++r) twice.push_back(r);
    for (std::size_t r = n_fitted; r < f.table.rows(); ++r) twice.push_back(r);
    return f.table.select(twice);
  }());
}

TEST_CASE("columns that no row has any more leave the layout, unless they are asked for") {
  Fixture f(n_fitted + 300);
  const auto columns = f.columns_with(least);
  f.lay_out(columns);
  const std::vector<Slot> none;
  CHECK(!f.rows.layout_without_unused(f.bins, {}, none).has_value());

  std::vector<Slot> removed;  // the rows with the first of the columns
  for (Slot slot = 0; slot < f.rows.size(); ++slot)
    if (f.rows.code(slot, columns[0]) != BinMap::rare().common_code) removed.push_back(slot);
  CHECK(f.rows.have_added_columns(removed));
  const std::vector<std::uint32_t> asked_for{columns[0]};
  CHECK(!f.rows.layout_without_unused(f.bins, asked_for, removed).has_value());
  auto without = f.rows.layout_without_unused(f.bins, {}, removed);
  REQUIRE(without.has_value());
  CHECK(std::ranges::equal(without->added(), std::span(columns).subspan(1)));
}

TEST_CASE("all columns without bins are chosen anew by the number of rows that have them") {
  Fixture f(n_fitted + 300);
  f.rows.lay_out_frequent(f.bins, least);
  CHECK(std::ranges::equal(f.rows.layout.added(), f.columns_with(least)));
  check_rows(f.rows, f.bins, f.table);
  f.rows.lay_out_frequent(f.bins, 10000);
  CHECK(f.rows.layout.added().empty());
  check_rows(f.rows, f.bins, f.table);
}

TEST_CASE("rows that were appended without being counted are counted after columns are chosen") {
  Fixture f(n_fitted);
  f.rows.find_frequent(0, least);
  f.append_from(n_fitted);
  f.rows.lay_out_frequent(f.bins, 10000);  // changes nothing, but more rows may be uncounted
  const auto slot = static_cast<Slot>(f.rows.size());
  f.append_from(n_fitted);

  Fixture fresh(n_fitted + 300);
  fresh.append_from(n_fitted);
  const auto expected = fresh.rows.find_frequent(slot, 80);
  CHECK(!expected.empty());
  CHECK(f.rows.find_frequent(slot, 80) == expected);
}

TEST_CASE("rows without entries have no added columns") {
  Fixture f(n_fitted + 300);
  const auto columns = f.columns_with(least);
  f.lay_out(columns);
  std::vector<Slot> all;
  for (Slot slot = 0; slot < f.rows.size(); ++slot) all.push_back(slot);
  f.rows.vacate(all, f.rows.moves_to_vacate(all));
  CHECK(!f.rows.has_sparse());
  CHECK(!f.rows.have_added_columns(std::vector<Slot>{0}));
  const auto without = f.rows.layout_without_unused(f.bins, {}, {});
  CHECK(without.has_value() && without->added().empty());
}

}  // namespace
}  // namespace graftboost
