// Some of a table's columns, numbered.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/hashing.hpp"
#include "core/types.hpp"

namespace graftboost {

// Finds a column's number by the column. Takes memory for the columns that have one and none for the
// others: a table of a million words has few that matter. Where all columns have one, in their order,
// it takes none at all.
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

  // The column's number, or `none`.
  std::uint32_t find(std::uint32_t column) const {
    if (slots_.empty()) return column < columns_.size() ? column : none;
    for (std::size_t at = home(column);; at = (at + 1) & mask()) {
      if (slots_[at].second == none || slots_[at].first == column) return slots_[at].second;
    }
  }

  // Gives the next number to a column that has none.
  void add(std::uint32_t column) {
    const auto number = static_cast<std::uint32_t>(columns_.size());
    columns_.push_back(column);
    if (slots_.empty() && column == number) return;
    if (2 * columns_.size() > slots_.size()) {
      rebuild();
    } else {
      insert(column, number);
    }
  }

 private:
  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t home(std::uint32_t column) const { return mix(column) & mask(); }
  void insert(std::uint32_t column, std::uint32_t number) {
    std::size_t at = home(column);
    while (slots_[at].second != none) at = (at + 1) & mask();
    slots_[at] = {column, number};
  }
  void rebuild() {
    slots_.assign(std::bit_ceil(4 * columns_.size()), {0, none});
    for (std::size_t i = 0; i < columns_.size(); ++i)
      insert(columns_[i], static_cast<std::uint32_t>(i));
  }

  std::vector<std::uint32_t> columns_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> slots_;  // (column, number), or empty
};

}  // namespace graftboost
