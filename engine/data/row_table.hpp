// The rows a model holds: their codes, targets, weights and ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "core/types.hpp"
#include "data/bins.hpp"
#include "data/code_layout.hpp"
#include "data/table.hpp"

namespace graftboost {

// A cell of a rare column as one number: above all places of a histogram, and in the order of columns.
struct RareCell {
  static constexpr std::uint32_t first = std::uint32_t{1} << 31;

  static std::uint32_t of(std::uint32_t column, Code code) { return first | column << 2 | code; }
  static std::uint32_t column(std::uint32_t entry) { return (entry & ~first) >> 2; }
  static Code code(std::uint32_t entry) { return entry & 3; }
};

// The entries of rows that go into a histogram, row by row.
struct SparseEntries {
  const std::uint64_t* begin = nullptr;
  const std::uint32_t* count = nullptr;
  const std::uint32_t* all = nullptr;

  std::span<const std::uint32_t> of(Slot row) const { return {all + begin[row], count[row]}; }
};

// Owns everything that is kept of a row but what it put into the trees. Slot i of every array is the
// same row. `weight` is empty while all rows weigh one, and the sparse arrays are while no row has an
// entry: a cell of a sparse feature or a rare column that differs from the common code, or one that did
// not fit into its bundle's byte.
struct RowTable {
  CodeLayout layout;
  Array<std::uint8_t> cells;          // row_bytes() a row
  Array<std::uint64_t> sparse_begin;  // the row's entries in sparse_entries ...
  Array<std::uint32_t> sparse_count;  // ... first so many, each offset + code, ascending ...
  Array<std::uint32_t> rare_count;    // ... then so many that are a RareCell, ascending too
  Array<std::uint32_t> sparse_entries;
  Array<std::int32_t> target;  // class, or target on the loss's grid
  Array<Weight> weight;
  Array<double> raw_target,
      raw_weight;  // as they came, for a refit; only squared error has the first
  Array<RowId> ids;

  std::size_t size() const { return n_; }

  // Appends the codes of the rows of x; targets, weights and ids are the caller's to append.
  template <class Table>
  void append_codes(const BinMap& bins, const Table& x, int n_threads);

  const std::uint8_t* narrow_codes(Slot row) const {
    return cells.data() + row * layout.row_bytes();
  }
  const std::uint16_t* wide_codes(Slot row) const {
    return reinterpret_cast<const std::uint16_t*>(narrow_codes(row));
  }
  bool has_sparse() const { return !sparse_begin.empty(); }
  SparseEntries entries() const {
    return has_sparse()
               ? SparseEntries{sparse_begin.data(), sparse_count.data(), sparse_entries.data()}
               : SparseEntries{};
  }
  std::span<const std::uint32_t> sparse_codes(Slot row) const {
    return {sparse_entries.data() + sparse_begin[row], sparse_count[row]};
  }
  std::span<const std::uint32_t> rare_cells(Slot row) const {
    return {sparse_entries.data() + sparse_begin[row] + sparse_count[row], rare_count[row]};
  }
  Code code(Slot row, std::uint32_t feature) const;
  Code code(Slot row, const FeatureLayout& place, std::uint32_t feature) const;
  Code rare_code(Slot row, std::uint32_t column) const;
  // Calls with every cell of a histogram that the row counts in, the implied ones left out.
  template <class Use>
  void for_each_cell(Slot row, Use&& use) const {
    const std::uint8_t* bytes = narrow_codes(row);
    for (std::size_t j = 0; j < layout.first_bundle(); ++j)
      use(layout.byte_offsets()[j] + bytes[j]);
    for (std::size_t j = layout.first_bundle(); j < layout.n_bytes(); ++j)
      if (bytes[j] != 0) use(layout.bundle_cells(j)[bytes[j]]);
    for (std::size_t j = 0; j < layout.n_words(); ++j)
      use(layout.word_offsets()[j] + wide_codes(row)[layout.first_word() + j]);
    if (!has_sparse()) return;
    for (const std::uint32_t entry : sparse_codes(row)) use(entry);
  }

  // Appends copies of rows of another table with the same layout: codes, targets, weights and ids.
  void append_rows(const RowTable& from, std::span<const Slot> chosen);

  // A row that moves into the place of one that goes.
  struct Move {
    Slot from, to;
  };
  // The moves by which the last rows take the places of removed ones (sorted slots), so that slots stay
  // without gaps.
  std::vector<Move> moves_to_vacate(const std::vector<Slot>& removed) const;
  // Takes the removed rows out, by these moves. What is left of them is overwritten.
  void vacate(const std::vector<Slot>& removed, const std::vector<Move>& moves) noexcept;
  // Cuts off the rows from `n` on and their entries from `n_entries` on, which were appended last, in
  // full or in part. Arrays that there were none of before are empty again.
  struct Extent {
    std::size_t n, n_entries;
    bool sparse, weighted;
  };
  Extent extent() const { return {n_, sparse_entries.size(), has_sparse(), !raw_weight.empty()}; }
  void truncate(const Extent& before) noexcept;

  // The places of bundled and sparse features in which the row differs from the common code.
  WipedVector<std::uint32_t> present(Slot row) const;

  // How many of all entries go into a histogram.
  std::uint64_t n_in_histograms() const;

  // Rare columns of these rows, ascending; and how many rows have a rare column.
  std::vector<std::uint32_t> rare_columns(Slot first) const;
  std::uint32_t n_rows_with(std::uint32_t column);
  // The cells of a histogram that rows count in when rare columns get a place, row by row.
  struct NewCell {
    Slot row;
    std::uint32_t cell;
  };
  WipedVector<NewCell> cells_to_place(const CodeLayout& next,
                                      std::span<const std::uint32_t> columns) const;
  // Exchanges the layout for one in which these columns have places behind all others, and rewrites the
  // entries of these cells.
  void give_places(CodeLayout& next, std::span<const std::uint32_t> columns,
                   std::span<const NewCell> placed) noexcept;
  // Whether one of the rows has a column that was given a place.
  bool have_added_columns(std::span<const Slot> rows) const;
  // Sets `held` of the columns that were given a place, in their order, that a row has which is not among
  // the removed ones (sorted slots).
  void mark_added_columns(const std::vector<Slot>& removed, std::vector<bool>& held) const;
  // Exchanges the layout for another that gives places to other rare columns, and rewrites all entries
  // that this concerns.
  void exchange_layout(CodeLayout& other) noexcept;
  // Adds up how many rows have each column without cuts, by column.
  void count_uncut_columns(WipedVector<std::uint32_t>& counts) const;

  std::size_t n_ = 0;

 private:
  void gather_sparse_entries() noexcept;
  std::size_t first_added_cell() const;
  void count_rare(Slot first, std::size_t last, std::int32_t by);
  bool rare_counted_ = false;

  // How many rows have each rare column: known once rows have been added, and kept up to date from then.
  WipedVector<std::uint32_t> rows_with_;
  mutable std::optional<std::uint64_t> n_in_histograms_;  // of sparse_entries
};

// Applies the moves of RowTable::vacate to an array with one element a row.
template <class T>
void move_and_shrink(Array<T>& values, const std::vector<RowTable::Move>& moves, std::size_t left) {
  if (values.empty()) return;
  for (const RowTable::Move& move : moves) values[move.to] = values[move.from];
  values.resize(left);
}

inline Code RowTable::code(Slot row, std::uint32_t feature) const {
  return code(row, layout.of(feature), feature);
}

inline Code RowTable::code(Slot row, const FeatureLayout& place, std::uint32_t feature) const {
  switch (place.kind) {
    case FeatureLayout::Kind::rare:
      return rare_code(row, feature);
    case FeatureLayout::Kind::narrow:
      return narrow_codes(row)[place.position];
    case FeatureLayout::Kind::wide:
      return wide_codes(row)[place.position];
    case FeatureLayout::Kind::bundled: {
      const Code code = place.bundled_code(narrow_codes(row)[place.position]);
      if (code != place.common_code || !has_sparse()) return code;
      break;
    }
    case FeatureLayout::Kind::sparse:
      if (!has_sparse()) return place.common_code;
  }
  const auto entries = sparse_codes(row);
  const auto found = std::lower_bound(entries.begin(), entries.end(), place.offset);
  const bool differs = found != entries.end() && *found - place.offset < place.n_codes;
  return differs ? static_cast<Code>(*found - place.offset) : place.common_code;
}

inline Code RowTable::rare_code(Slot row, std::uint32_t column) const {
  if (!has_sparse()) return BinMap::rare().common_code;
  const auto entries = rare_cells(row);
  const auto found = std::lower_bound(entries.begin(), entries.end(), RareCell::of(column, 0));
  const bool differs = found != entries.end() && RareCell::column(*found) == column;
  return differs ? RareCell::code(*found) : BinMap::rare().common_code;
}

}  // namespace graftboost
