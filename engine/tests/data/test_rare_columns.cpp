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
using testing::encoded;
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

// Columns of the rows from `first` on that at least so many of all rows have.
std::vector<std::uint32_t> find_frequent(RowTable& rows, Slot first, std::size_t least) {
  std::vector<std::uint32_t> columns = rows.rare_columns(first);
  std::erase_if(columns, [&](std::uint32_t column) { return rows.n_rows_with(column) < least; });
  return columns;
}

// The added columns that rows have which are not removed.
std::vector<std::uint32_t> held_columns(const RowTable& rows, const std::vector<Slot>& removed) {
  std::vector<bool> held(rows.layout.added().size());
  rows.mark_added_columns(removed, held);
  std::vector<std::uint32_t> columns;
  for (std::size_t i = 0; i < held.size(); ++i)
    if (held[i]) columns.push_back(rows.layout.added()[i]);
  return columns;
}

struct Fixture {
  OwnedTable<double> table = growing_table();
  BinMap bins = mixed_bins(table.slice(0, n_fitted), 64);
  RowTable rows;

  explicit Fixture(std::size_t n_rows)
      : rows(encoded<SparseTable<double>>(bins, table.slice(0, n_rows))) {}
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
  CHECK(find_frequent(at_once.rows, n_fitted, least) == expected);

  Fixture in_steps(n_fitted);
  find_frequent(in_steps.rows, 0, least);
  in_steps.append_from(n_fitted);
  CHECK(find_frequent(in_steps.rows, n_fitted, least) == expected);
}

TEST_CASE("removed rows no longer count for frequent columns") {
  Fixture f(n_fitted + 300);
  find_frequent(f.rows, n_fitted, least);
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
  CHECK(find_frequent(f.rows, slot, 60) == find_frequent(fresh, slot, 60));
}

TEST_CASE("columns that are laid out keep their codes and move from the rare cells to the others") {
  Fixture f(n_fitted + 300);
  const auto columns = find_frequent(f.rows, n_fitted, least);
  const std::uint64_t n_before = f.rows.n_in_histograms();
  std::size_t n_moved = 0;
  for (const std::uint32_t column : columns) n_moved += n_other(f.table, column);
  f.lay_out(columns);
  for (const std::uint32_t column : columns)
    CHECK(f.rows.layout.of(column).kind == FeatureLayout::Kind::sparse);
  check_rows(f.rows, f.bins, f.table);
  CHECK_EQ(f.rows.n_in_histograms(), n_before + n_moved);
  f.append_from(n_fitted);
  const auto found = find_frequent(f.rows, n_fitted + 300, least);
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

TEST_CASE("columns that only removed rows have are not marked") {
  Fixture f(n_fitted + 300);
  const auto columns = f.columns_with(least);
  f.lay_out(columns);
  CHECK(held_columns(f.rows, {}) == columns);
  std::vector<Slot> removed;  // the rows with the first of the columns
  for (Slot slot = 0; slot < f.rows.size(); ++slot)
    if (f.rows.code(slot, columns[0]) != BinMap::rare().common_code) removed.push_back(slot);
  CHECK(f.rows.have_added_columns(removed));
  CHECK(std::ranges::equal(held_columns(f.rows, removed), std::span(columns).subspan(1)));
}

TEST_CASE("rows are counted by column, laid out or not") {
  Fixture f(n_fitted + 300);
  for (const bool laid_out : {false, true}) {
    if (laid_out) f.lay_out(f.columns_with(least));
    WipedVector<std::uint32_t> counts;
    f.rows.count_uncut_columns(counts);
    for (std::uint32_t c = 0; c < f.table.columns(); ++c) {
      const bool cut = f.bins.cut().find(c) != ColumnIndex::none;
      const std::uint32_t found = c < counts.size() ? counts[c] : 0;
      CHECK_EQ(found, cut ? 0 : n_other(f.table, c));
    }
  }
}

TEST_CASE("copies of chosen rows keep their codes, and count for frequent columns") {
  Fixture f(n_fitted + 300);
  RowTable to;
  to.layout = f.rows.layout;
  CHECK_EQ(to.n_rows_with(0), 0u);
  std::vector<Slot> odd, even;
  std::vector<std::size_t> order;
  for (Slot slot = 0; slot < f.rows.size(); ++slot) (slot % 2 == 0 ? even : odd).push_back(slot);
  for (const auto* chosen : {&odd, &even}) {
    to.append_rows(f.rows, *chosen);
    order.insert(order.end(), chosen->begin(), chosen->end());
  }
  check_rows(to, f.bins, f.table.select(order));
  CHECK(find_frequent(to, 0, least) == f.columns_with(least));
  CHECK_EQ(to.n_in_histograms(), f.rows.n_in_histograms());
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
  CHECK(held_columns(f.rows, {}).empty());
}

}  // namespace
}  // namespace graftboost
