// The rows a model holds: their codes, targets, weights and ids.
#pragma once

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
//   narrow   one byte a cell       features with at most 256 codes
//   wide     two bytes a cell      the others
//   sparse   only cells that differ from the feature's common code
//
// A row's narrow and wide codes lie side by side, so that a histogram touches one or two cache lines
// a row. Many one-hot columns cost as much as the ones they hold, not as the columns there are.
class CodeLayout {
 public:
  enum class Kind : std::uint8_t { narrow, wide, sparse };
  struct Place {
    Kind kind = Kind::narrow;
    std::uint32_t offset = 0;    // of the feature's sums in a histogram; code c is at offset + c
    std::uint32_t n_codes = 0;
    std::uint32_t position = 0;  // byte of the row (narrow), 16-bit word of the row (wide)
    Code common_code = missing_code;
    bool categorical = false;
  };

  CodeLayout() = default;
  explicit CodeLayout(const BinMap& bins);

  const Place& operator[](std::size_t feature) const { return places_[feature]; }
  std::size_t n_features() const { return places_.size(); }
  std::size_t histogram_size() const { return histogram_size_; }
  std::size_t row_bytes() const { return row_bytes_; }
  // Features of a kind, in the order of their cells in a row.
  const std::vector<std::uint32_t>& narrow() const { return narrow_; }
  const std::vector<std::uint32_t>& wide() const { return wide_; }
  const std::vector<std::uint32_t>& sparse() const { return sparse_; }
  // Histogram offsets of the narrow and wide features, in that same order.
  const std::vector<std::uint32_t>& narrow_offsets() const { return narrow_offsets_; }
  const std::vector<std::uint32_t>& wide_offsets() const { return wide_offsets_; }

 private:
  std::vector<Place> places_;
  std::vector<std::uint32_t> narrow_, wide_, sparse_, narrow_offsets_, wide_offsets_;
  std::size_t histogram_size_ = 0;
  std::size_t row_bytes_ = 0;
};

// Owns everything that is kept of a row but what it put into the trees. Slot i of every array is the
// same row. `weight` is empty while all rows weigh one.
struct Rows {
  CodeLayout layout;
  Array<std::uint8_t> cells;                  // row_bytes() a row
  Array<std::uint64_t> sparse_begin;          // the row's entries in sparse_entries ...
  Array<std::uint32_t> sparse_count;
  Array<std::uint32_t> sparse_entries;        // ... each offset + code, ascending
  Array<std::int32_t> target;                 // class, or target on the loss's grid
  Array<Weight> weight;
  Array<RowId> ids;

  std::size_t size() const { return n_; }

  // Appends the codes of the rows of x; targets, weights and ids are the caller's to append.
  template <class Value>
  void append_codes(const BinMap& bins, const Matrix<Value>& x, int n_threads);

  const std::uint8_t* narrow_codes(Slot row) const { return cells.data() + row * layout.row_bytes(); }
  const std::uint16_t* wide_codes(Slot row) const {
    return reinterpret_cast<const std::uint16_t*>(narrow_codes(row));
  }
  std::span<const std::uint32_t> sparse_codes(Slot row) const {
    return {sparse_entries.data() + sparse_begin[row], sparse_count[row]};
  }
  Code code(Slot row, std::uint32_t feature) const;

  std::size_t n_ = 0;
};

inline Code Rows::code(Slot row, std::uint32_t feature) const {
  const CodeLayout::Place& place = layout[feature];
  switch (place.kind) {
    case CodeLayout::Kind::narrow:
      return narrow_codes(row)[place.position];
    case CodeLayout::Kind::wide:
      return wide_codes(row)[place.position];
    case CodeLayout::Kind::sparse:
      break;
  }
  for (const std::uint32_t entry : sparse_codes(row)) {
    if (entry - place.offset < place.n_codes) return static_cast<Code>(entry - place.offset);
    if (entry > place.offset) break;
  }
  return place.common_code;
}

}  // namespace graftboost
