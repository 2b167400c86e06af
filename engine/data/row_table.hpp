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

// A cell of a rare column as one number, which is greater than any cell of a histogram. The numbers
// ascend with the column.
struct RareCell {
  static constexpr std::uint32_t first = std::uint32_t{1} << 31;

  static std::uint32_t of(std::uint32_t column, Code code) { return first | column << 2 | code; }
  static std::uint32_t column(std::uint32_t entry) { return (entry & ~first) >> 2; }
  static Code code(std::uint32_t entry) { return entry & 3; }
};

// A view of the entries of each row that are counted in histograms.
struct SparseEntries {
  const std::uint64_t* begin = nullptr;
  const std::uint32_t* count = nullptr;
  const std::uint32_t* all = nullptr;

  std::span<const std::uint32_t> of(Slot row) const { return {all + begin[row], count[row]}; }
};

// Owns everything that a model stores about a row except what the row contributed to the trees.
//
// Slot i of every array belongs to the same row, and the slots 0 to size() - 1 are all in use.
// `weight` and `raw_weight` are empty while all rows have weight one. The sparse arrays are empty
// while no row has an entry. An entry is a code that differs from the common code and is not among
// the row's own cells: a code of a sparse feature, a code of a bundled feature that did not fit
// into the shared byte, or a RareCell. sparse_entries may have gaps between rows, which are zero.
//
// No data of a removed row survives: vacate() and truncate() overwrite it.
struct RowTable {
  CodeLayout layout;
  Array<std::uint8_t> cells;  // row_bytes() per row
  // The entries of a row begin at sparse_begin in sparse_entries. First come sparse_count cells of
  // histograms (offset + code), then rare_count rare cells; both ascend.
  Array<std::uint64_t> sparse_begin;
  Array<std::uint32_t> sparse_count;
  Array<std::uint32_t> rare_count;
  Array<std::uint32_t> sparse_entries;
  Array<std::int32_t> target;  // the class, or the target on the grid of the loss
  Array<Weight> weight;
  // As the user supplied them, for a refit. Only squared error has raw targets.
  Array<double> raw_target, raw_weight;
  Array<RowId> ids;

  std::size_t size() const { return n_; }

  // Appends the codes of the rows of x. The caller appends targets, weights and ids.
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
  // These two require has_sparse().
  std::span<const std::uint32_t> sparse_codes(Slot row) const {
    return {sparse_entries.data() + sparse_begin[row], sparse_count[row]};
  }
  std::span<const std::uint32_t> rare_cells(Slot row) const {
    return {sparse_entries.data() + sparse_begin[row] + sparse_count[row], rare_count[row]};
  }
  Code code(Slot row, std::uint32_t feature) const;
  // The same if the layout of the feature is known.
  Code code(Slot row, const FeatureLayout& feature_layout, std::uint32_t feature) const;
  Code rare_code(Slot row, std::uint32_t column) const;
  // Calls use(cell) for every cell of a histogram in which the row is counted. Implied cells are
  // left out.
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

  // The numbers of the bundled and sparse features in which the row differs from the common code.
  WipedVector<std::uint32_t> present(Slot row) const;

  // The number of entries of all rows that are counted in histograms.
  std::uint64_t n_in_histograms() const;

  // Appends copies of rows of another table with the same layout: codes, targets, weights and ids.
  void append_rows(const RowTable& from, std::span<const Slot> chosen);
  // Makes the sparse arrays, for so many rows without entries.
  void start_entries(std::size_t n_rows);

  // --- removing rows ---

  // A row that moves to the slot of a removed row.
  struct Move {
    Slot from, to;
  };
  // The moves by which the last rows take the slots of removed rows, so that no slot stays unused.
  // `removed` ascends.
  std::vector<Move> moves_to_vacate(const std::vector<Slot>& removed) const;
  // Removes rows by these moves and overwrites what they stored.
  void vacate(const std::vector<Slot>& removed, const std::vector<Move>& moves) noexcept;

  // The size before rows are appended, to which truncate() returns. Arrays that were empty then are
  // empty again. The rows since then may have been appended only in part.
  struct Extent {
    std::size_t n, n_entries;
    bool sparse, weighted;
  };
  Extent extent() const { return {n_, sparse_entries.size(), has_sparse(), !raw_weight.empty()}; }
  void truncate(const Extent& before) noexcept;

  // --- columns that become frequent, or rare again (rare_columns.cpp) ---

  // The rare columns of the rows from `first` on, ascending.
  std::vector<std::uint32_t> rare_columns(Slot first) const;
  // The number of rows that have a rare column.
  std::uint32_t n_rows_with(std::uint32_t column);

  // A cell in which a row is counted once a rare column is laid out.
  struct NewCell {
    Slot row;
    std::uint32_t cell;
  };
  // The new cells when `columns` (ascending) are laid out as in `next`, row by row.
  WipedVector<NewCell> new_cells(const CodeLayout& next,
                                 std::span<const std::uint32_t> columns) const;
  // Exchanges the layout for `next`, in which `columns` follow all others, and turns their rare
  // cells into these new cells.
  void lay_out_columns(CodeLayout& next, std::span<const std::uint32_t> columns,
                       std::span<const NewCell> cells) noexcept;

  // Whether one of the rows has a column that was added to the layout.
  bool have_added_columns(std::span<const Slot> rows) const;
  // Sets `held` for the added columns, in their order, that a row has which is not among the
  // removed ones (slots, ascending).
  void mark_added_columns(const std::vector<Slot>& removed, std::vector<bool>& held) const;

  // Exchanges the layout for another one with other added columns, and rewrites all entries of
  // added and rare columns.
  void exchange_layout(CodeLayout& other) noexcept;
  // Adds up, by column, how many rows have each column that is rare in the bins.
  void count_uncut_columns(WipedVector<std::uint32_t>& counts) const;

  std::size_t n_ = 0;  // public only for restoring a stored table

 private:
  void close_gaps() noexcept;
  std::size_t first_added_cell() const;
  void count_rare(std::size_t first, std::size_t last, std::int32_t by);

  // The number of rows with each rare column. Counted when n_rows_with() first needs it, up to date
  // from then on.
  WipedVector<std::uint32_t> n_rows_with_;
  bool is_rare_counted_ = false;
  // The number of entries that are counted in histograms, once it was needed.
  mutable std::optional<std::uint64_t> n_in_histograms_;
};

// Applies the moves of RowTable::vacate to an array with one element per row, and keeps `n_left`.
template <class T>
void move_and_shrink(Array<T>& values, const std::vector<RowTable::Move>& moves,
                     std::size_t n_left) {
  if (values.empty()) return;
  for (const RowTable::Move& move : moves) values[move.to] = values[move.from];
  values.resize(n_left);
}

inline Code RowTable::code(Slot row, std::uint32_t feature) const {
  return code(row, layout.of(feature), feature);
}

inline Code RowTable::code(Slot row, const FeatureLayout& feature_layout,
                           std::uint32_t feature) const {
  const FeatureLayout& f = feature_layout;
  switch (f.kind) {
    case FeatureLayout::Kind::rare:
      return rare_code(row, feature);
    case FeatureLayout::Kind::narrow:
      return narrow_codes(row)[f.position];
    case FeatureLayout::Kind::wide:
      return wide_codes(row)[f.position];
    case FeatureLayout::Kind::bundled: {
      const Code code = f.bundled_code(narrow_codes(row)[f.position]);
      if (code != f.common_code || !has_sparse()) return code;
      break;
    }
    case FeatureLayout::Kind::sparse:
      if (!has_sparse()) return f.common_code;
  }
  const auto entries = sparse_codes(row);
  const auto found = std::lower_bound(entries.begin(), entries.end(), f.offset);
  const bool differs = found != entries.end() && *found - f.offset < f.n_codes;
  return differs ? static_cast<Code>(*found - f.offset) : f.common_code;
}

inline Code RowTable::rare_code(Slot row, std::uint32_t column) const {
  if (!has_sparse()) return BinMap::rare().common_code;
  const auto entries = rare_cells(row);
  const auto found = std::lower_bound(entries.begin(), entries.end(), RareCell::of(column, 0));
  const bool differs = found != entries.end() && RareCell::column(*found) == column;
  return differs ? RareCell::code(*found) : BinMap::rare().common_code;
}

}  // namespace graftboost
