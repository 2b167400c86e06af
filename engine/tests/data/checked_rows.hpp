// Rows that are encoded by RowTable and compared with a naive encoder.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "data/row_table.hpp"
#include "tests/check.hpp"
#include "tests/tables.hpp"

namespace graftboost::testing {

// Bins in which features of all kinds occur. The rare columns of mixed_table() are rare.
template <class Value>
BinMap mixed_bins(const OwnedTable<Value>& table, int max_bins) {
  BinningParams params;
  params.split_sample = 1;
  params.max_bins = max_bins;
  params.rare_below = table.rows() / 25;
  return BinMap::fit(table.dense(), table.ids(), mixed_categories(), params, 1);
}

// Appends codes, targets and ids.
template <class Table, class Value>
void append(RowTable& rows, const BinMap& bins, const OwnedTable<Value>& table) {
  rows.append_codes(bins, table.template as<Table>(), 2);
  for (const RowId id : table.ids()) {
    rows.ids.push_back(id);
    rows.target.push_back(static_cast<std::int32_t>(id % 1000 + 1));
  }
}

// The rows of a table.
template <class Table, class Value>
RowTable encoded(const BinMap& bins, const OwnedTable<Value>& table) {
  RowTable rows;
  rows.layout = CodeLayout(bins);
  append<Table>(rows, bins, table);
  return rows;
}

// Whether the layout has features of this kind.
inline bool has_kind(const RowTable& rows, FeatureLayout::Kind kind) {
  for (std::size_t i = 0; i < rows.layout.size(); ++i)
    if (rows.layout[i].kind == kind) return true;
  return false;
}

// Checks that slot r holds row r of the table, in every feature.
template <class Value>
void check_rows(const RowTable& rows, const BinMap& bins, const OwnedTable<Value>& table) {
  REQUIRE(rows.size() == table.rows());
  std::size_t n_entries = 0;
  for (Slot row = 0; row < rows.size(); ++row) {
    CHECK_EQ(rows.ids[row], table.ids()[row]);
    for (std::uint32_t c = 0; c < table.columns(); ++c)
      CHECK_EQ(rows.code(row, c), naive_code(bins[c], table.at(row, c)));
    if (!rows.has_sparse()) continue;
    const auto sparse = rows.sparse_codes(row), rare = rows.rare_cells(row);
    CHECK(std::ranges::is_sorted(sparse));
    CHECK(std::ranges::is_sorted(rare));
    CHECK(sparse.empty() || sparse.back() < rows.layout.histogram_size());
    CHECK(rare.empty() || rare.front() >= RareCell::first);
    n_entries += sparse.size();
  }
  CHECK_EQ(rows.n_in_histograms(), n_entries);
}

}  // namespace graftboost::testing
