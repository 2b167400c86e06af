// Random tables of raw values for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "data/bins.hpp"
#include "data/table.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost::testing {

// Owns a table in both forms, dense (row by row) and sparse, with an id for each row. The views are
// valid as long as it lives and is not changed.
template <class Value>
class OwnedTable {
 public:
  OwnedTable(std::size_t columns, std::vector<Value> cells, std::vector<RowId> ids)
      : columns_(columns), cells_(std::move(cells)), ids_(std::move(ids)), begin_{0} {
    for (std::size_t r = 0; r < rows(); ++r) {
      for (std::size_t c = 0; c < columns_; ++c) {
        // Some zeros are stored: they must count the same as those that are not.
        const bool stored_zero = mix(r * columns_ + c) % 16 == 0;
        if (at(r, c) == 0 && !stored_zero) continue;
        column_.push_back(static_cast<std::int32_t>(c));
        value_.push_back(at(r, c));
      }
      begin_.push_back(static_cast<std::int64_t>(column_.size()));
    }
  }

  std::size_t rows() const { return ids_.size(); }
  std::size_t columns() const { return columns_; }
  Value at(std::size_t r, std::size_t c) const { return cells_[r * columns_ + c]; }
  std::span<const RowId> ids() const { return ids_; }

  DenseTable<Value> dense() const {
    return {cells_.data(), rows(), columns_, static_cast<std::ptrdiff_t>(columns_), 1};
  }
  SparseTable<Value> sparse() const {
    return {begin_.data(), column_.data(), value_.data(), rows(), columns_};
  }
  template <class Table>
  Table as() const {
    if constexpr (requires(Table table) { table.row_stride; }) {
      return dense();
    } else {
      return sparse();
    }
  }

  OwnedTable select(const std::vector<std::size_t>& selected) const {
    std::vector<Value> cells;
    std::vector<RowId> ids;
    for (const std::size_t r : selected) {
      cells.insert(cells.end(), cells_.begin() + static_cast<std::ptrdiff_t>(r * columns_),
                   cells_.begin() + static_cast<std::ptrdiff_t>((r + 1) * columns_));
      ids.push_back(ids_[r]);
    }
    return {columns_, std::move(cells), std::move(ids)};
  }
  OwnedTable slice(std::size_t begin, std::size_t end) const {
    std::vector<std::size_t> selected;
    for (std::size_t r = begin; r < end; ++r) selected.push_back(r);
    return select(selected);
  }
  // Deals the rows to k tables at random, in random order within each.
  std::vector<OwnedTable> deal(std::size_t k, Random& random) const {
    std::vector<std::vector<std::size_t>> hands(k);
    for (std::size_t r = 0; r < rows(); ++r) {
      auto& hand = hands[random.below(k)];
      hand.insert(
          hand.begin() + static_cast<std::ptrdiff_t>(
                             hand.size() - random.below(std::min<std::size_t>(hand.size() + 1, 8))),
          r);
    }
    std::vector<OwnedTable> tables;
    for (const auto& hand : hands) tables.push_back(select(hand));
    return tables;
  }

 private:
  std::size_t columns_;
  std::vector<Value> cells_;
  std::vector<RowId> ids_;
  std::vector<std::int64_t> begin_;
  std::vector<std::int32_t> column_;
  std::vector<Value> value_;
};

// The columns of mixed_table(), by kind.
struct MixedColumns {
  static constexpr std::size_t continuous = 0, n_continuous = 2;  // 1 has missing values
  static constexpr std::size_t integers = 2;                      // -3 to 3
  static constexpr std::size_t constant = 3;
  static constexpr std::size_t category = 4;                         // 0 to 4, missing
  static constexpr std::size_t mostly_zero = 5, n_mostly_zero = 36;  // the first ten real, else 1
  static constexpr std::size_t mostly_one = 41;                      // the common value is not 0
  static constexpr std::size_t mostly_missing = 42;
  static constexpr std::size_t one_hot = 43;  // twelve columns, one of which is 1
  static constexpr std::size_t rare = 55;     // ten columns with a value in 1% of the rows
  static constexpr std::size_t n = 65;
};

// A column of every kind that is stored in its own way. Ids are distinct and not ascending.
template <class Value>
OwnedTable<Value> mixed_table(std::size_t n_rows, std::uint64_t seed, double share_of_rare = 0.01) {
  using Columns = MixedColumns;
  Random random(seed);
  const auto missing = std::numeric_limits<Value>::quiet_NaN();
  std::vector<Value> cells(n_rows * Columns::n);
  std::vector<RowId> ids;
  for (std::size_t r = 0; r < n_rows; ++r) {
    Value* row = cells.data() + r * Columns::n;
    const auto real = [&] { return static_cast<Value>(random.normal()); };
    row[Columns::continuous] = real();
    row[Columns::continuous + 1] = random.chance(0.1) ? missing : real();
    row[Columns::integers] = static_cast<Value>(random.below(7)) - 3;
    row[Columns::constant] = 4;
    row[Columns::category] = random.chance(0.05) ? missing : static_cast<Value>(random.below(5));
    for (std::size_t c = 0; c < Columns::n_mostly_zero; ++c)
      if (random.chance(0.15)) row[Columns::mostly_zero + c] = c < 10 ? real() : Value{1};
    row[Columns::mostly_one] = random.chance(0.9) ? 1 : static_cast<Value>(random.below(3));
    row[Columns::mostly_missing] = random.chance(0.9) ? missing : real();
    row[Columns::one_hot + random.below(12)] = 1;
    for (std::size_t c = 0; c < 10; ++c) {
      if (random.chance(share_of_rare))
        row[Columns::rare + c] = random.chance(0.1) ? missing : real();
    }
    ids.push_back(static_cast<RowId>(mix(r) >> 20));
  }
  return {Columns::n, std::move(cells), std::move(ids)};
}

inline GivenColumns mixed_categories() {
  GivenColumns given;
  given.n_categories[MixedColumns::category] = 4;  // the fifth category is unknown
  return given;
}

// The code of a value, computed in the most direct way.
template <class Value>
Code naive_code(const Feature& feature, Value value) {
  if (std::isnan(value)) return missing_code;
  if (feature.categorical()) {
    for (std::uint32_t c = 0; c < feature.n_categories; ++c)
      if (value == static_cast<Value>(c)) return static_cast<Code>(c + 1);
    return static_cast<Code>(feature.n_categories + 1);
  }
  Code code = 1;
  for (const double edge : feature.edges) code = static_cast<Code>(code + (edge < value));
  return code;
}

}  // namespace graftboost::testing
