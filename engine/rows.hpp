// The rows a model holds: their codes, targets, weights and ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "array.hpp"
#include "binning.hpp"
#include "matrix.hpp"
#include "types.hpp"

namespace graftboost {

// Where the codes of each feature are kept, and where its sums lie in a histogram.
//
//   narrow    one byte a cell       features with at most 256 codes
//   wide      two bytes a cell      the others
//   bundled   one byte for several  features that hardly ever differ from their common codes together
//   sparse    only cells that differ from the feature's common code
//
// A row's narrow, bundled and wide codes lie side by side, so that a histogram touches one or two
// cache lines a row. Forty one-hot columns are one byte, and cost a histogram one addition a row:
// the features of a bundle have their sums one after the other behind a cell for "none differs", so
// that the shared byte is a place among them.
//
//     byte            0     1 2 3   4 5 6   ...
//     sums          [none][ f_1  ][ f_2  ][ ... ]
//     histogram      ^ bundle's offset      f_2's code 1 is byte 5
class CodeLayout {
 public:
  enum class Kind : std::uint8_t { narrow, wide, bundled, sparse };
  struct Place {
    Kind kind = Kind::narrow;
    std::uint32_t offset = 0;  // of the feature's sums in a histogram; code c is at offset + c
    std::uint32_t n_codes = 0;
    std::uint32_t position = 0;  // byte of the row (narrow, bundled), 16-bit word of the row (wide)
    std::uint32_t base = 0;      // bundled: the byte of code 0
    Code common_code = missing_code;
    bool categorical = false;

    // Whether counting leaves the common code's cell to complete().
    bool counts_only_differing() const { return kind == Kind::bundled || kind == Kind::sparse; }
    // Bundled: the code that the shared byte says.
    Code bundled_code(std::uint8_t byte) const {
      const std::uint32_t code = byte - base;
      return code < n_codes ? static_cast<Code>(code) : common_code;
    }
  };

  CodeLayout() = default;
  explicit CodeLayout(const BinMap& bins);

  const Place& operator[](std::size_t feature) const { return places_[feature]; }
  std::size_t n_features() const { return places_.size(); }
  std::size_t histogram_size() const { return histogram_size_; }
  std::size_t row_bytes() const { return row_bytes_; }
  std::size_t n_bytes() const { return byte_offsets_.size(); }  // narrow features and bundles
  std::size_t n_words() const { return word_offsets_.size(); }  // wide features
  std::size_t first_bundle() const { return first_bundle_; }    // the bytes from here on
  std::size_t cells_per_row() const { return n_bytes() + n_words(); }
  std::size_t first_word() const {
    return (n_bytes() + 1) / 2;
  }  // wide codes start on an even byte
  // Histogram offsets of a row's bytes and words, in their order.
  const std::vector<std::uint32_t>& byte_offsets() const { return byte_offsets_; }
  const std::vector<std::uint32_t>& word_offsets() const { return word_offsets_; }
  // Cells of a histogram that follow from the others, which nobody keeps up to date: "none differs" of a
  // bundle, and the common code of features that count only what differs from it.
  const std::vector<std::uint32_t>& implied_cells() const { return implied_cells_; }
  // Features in the order of their sums.
  const std::vector<std::uint32_t>& by_offset() const { return by_offset_; }

 private:
  void place(std::uint32_t feature, Kind kind, std::size_t position, std::size_t base = 0);

  std::vector<Place> places_;
  std::vector<std::uint32_t> by_offset_, byte_offsets_, word_offsets_, implied_cells_;
  std::size_t histogram_size_ = 0;
  std::size_t row_bytes_ = 0;
  std::size_t first_bundle_ = 0;
};

// Owns everything that is kept of a row but what it put into the trees. Slot i of every array is the
// same row. `weight` is empty while all rows weigh one, and the sparse arrays are while no row has an
// entry: a cell of a sparse feature that differs, or one that did not fit into its bundle's byte.
struct Rows {
  CodeLayout layout;
  Array<std::uint8_t> cells;          // row_bytes() a row
  Array<std::uint64_t> sparse_begin;  // the row's entries in sparse_entries ...
  Array<std::uint32_t> sparse_count;
  Array<std::uint32_t> sparse_entries;  // ... each offset + code, ascending
  Array<std::int32_t> target;           // class, or target on the loss's grid
  Array<Weight> weight;
  Array<double> raw_target,
      raw_weight;  // as they came, for a refit; only squared error has the first
  Array<RowId> ids;

  std::size_t size() const { return n_; }

  // Appends the codes of the rows of x; targets, weights and ids are the caller's to append.
  template <class Value>
  void append_codes(const BinMap& bins, const Matrix<Value>& x, int n_threads);

  const std::uint8_t* narrow_codes(Slot row) const {
    return cells.data() + row * layout.row_bytes();
  }
  const std::uint16_t* wide_codes(Slot row) const {
    return reinterpret_cast<const std::uint16_t*>(narrow_codes(row));
  }
  bool has_sparse() const { return !sparse_begin.empty(); }
  std::span<const std::uint32_t> sparse_codes(Slot row) const {
    return {sparse_entries.data() + sparse_begin[row], sparse_count[row]};
  }
  Code code(Slot row, std::uint32_t feature) const;
  // Calls with every cell of a histogram that the row counts in, the implied ones left out.
  template <class Use>
  void for_each_cell(Slot row, Use&& use) const {
    const std::uint8_t* bytes = narrow_codes(row);
    for (std::size_t j = 0; j < layout.n_bytes(); ++j) {
      const bool none_differs = j >= layout.first_bundle() && bytes[j] == 0;
      if (!none_differs) use(layout.byte_offsets()[j] + bytes[j]);
    }
    for (std::size_t j = 0; j < layout.n_words(); ++j)
      use(layout.word_offsets()[j] + wide_codes(row)[layout.first_word() + j]);
    if (!has_sparse()) return;
    for (const std::uint32_t entry : sparse_codes(row)) use(entry);
  }

  // A row that moves into the place of one that goes.
  struct Move {
    Slot from, to;
  };
  // Takes rows out (sorted slots). The last rows move into their places, so that slots stay without
  // gaps; returns which. What is left of the removed rows is overwritten.
  std::vector<Move> vacate(const std::vector<Slot>& removed);

  std::size_t n_ = 0;

 private:
  void gather_sparse_entries();
};

// Applies the moves of Rows::vacate to an array with one element a row; what it had is overwritten.
template <class T>
void move_and_shrink(Array<T>& values, const std::vector<Rows::Move>& moves, std::size_t left) {
  if (values.empty()) return;
  for (const Rows::Move& move : moves) values[move.to] = values[move.from];
  std::fill(values.begin() + left, values.end(), T{});
  values.resize(left);
}

inline Code Rows::code(Slot row, std::uint32_t feature) const {
  const CodeLayout::Place& place = layout[feature];
  switch (place.kind) {
    case CodeLayout::Kind::narrow:
      return narrow_codes(row)[place.position];
    case CodeLayout::Kind::wide:
      return wide_codes(row)[place.position];
    case CodeLayout::Kind::bundled: {
      const Code code = place.bundled_code(narrow_codes(row)[place.position]);
      if (code != place.common_code || !has_sparse()) return code;
      break;
    }
    case CodeLayout::Kind::sparse:
      if (!has_sparse()) return place.common_code;
  }
  for (const std::uint32_t entry : sparse_codes(row)) {
    if (entry - place.offset < place.n_codes) return static_cast<Code>(entry - place.offset);
    if (entry > place.offset) break;
  }
  return place.common_code;
}

}  // namespace graftboost
