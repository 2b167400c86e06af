// Some of the columns of a table, numbered.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/hashing.hpp"
#include "core/types.hpp"

namespace graftboost {

// Finds the number of a column. Owns memory in proportion to the columns that have a number, not to
// all columns: of a million words in a text few may be frequent.
//
// columns_[number] is the column with that number. As long as the columns are 0, 1, 2, ... in this
// order, there is no hash table and a column is its own number. Otherwise at most half of the hash
// table is used.
class ColumnIndex {
 public:
  static constexpr std::uint32_t none = 0xffffffff;

  ColumnIndex() = default;
  explicit ColumnIndex(std::vector<std::uint32_t> columns) {
    for (const std::uint32_t column : columns) add(column);
  }

  std::size_t size() const { return columns_.size(); }
  // In the order of their numbers.
  const std::vector<std::uint32_t>& columns() const { return columns_; }
  std::uint32_t operator[](std::size_t number) const { return columns_[number]; }

  // The number of a column, or `none`.
  std::uint32_t find(std::uint32_t column) const {
    if (table_.empty()) return column < columns_.size() ? column : none;
    for (std::size_t b = home_of(column);; b = next(b)) {
      if (table_[b].second == none || table_[b].first == column) return table_[b].second;
    }
  }

  // Gives the next number to a column that has none.
  void add(std::uint32_t column) {
    const auto number = static_cast<std::uint32_t>(columns_.size());
    columns_.push_back(column);
    if (table_.empty() && column == number) return;
    if (2 * columns_.size() > table_.size()) {
      rebuild();
    } else {
      put(column, number);
    }
  }

 private:
  std::size_t next(std::size_t bucket) const { return (bucket + 1) & (table_.size() - 1); }
  std::size_t home_of(std::uint32_t column) const { return mix(column) & (table_.size() - 1); }
  void put(std::uint32_t column, std::uint32_t number) {
    std::size_t b = home_of(column);
    while (table_[b].second != none) b = next(b);
    table_[b] = {column, number};
  }
  void rebuild() {
    table_.assign(std::bit_ceil(4 * columns_.size()), {0, none});
    for (std::size_t i = 0; i < columns_.size(); ++i)
      put(columns_[i], static_cast<std::uint32_t>(i));
  }

  std::vector<std::uint32_t> columns_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> table_;  // (column, number); `none` if empty
};

}  // namespace graftboost
