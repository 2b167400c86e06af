// Where the codes of each feature are kept, and where its sums lie in a histogram.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "data/bins.hpp"
#include "data/column_index.hpp"

namespace graftboost {

//   narrow    one byte a cell       features with at most 256 codes
//   wide      two bytes a cell      the others
//   bundled   one byte for several  features that hardly ever differ from their common codes together
//   sparse    only cells that differ from the feature's common code
//   rare      likewise, and no sums: columns that so few rows have that they cannot be split
//
// A row's narrow, bundled and wide codes lie side by side, so that a histogram touches one or two
// cache lines a row. All one-hot columns of a category are one byte, and cost a histogram one addition
// a row: the features of a bundle have their sums one after the other behind a cell for "none differs",
// and a byte for each code that rows were seen to have beside the common one.
//
//     byte            0           1       2     ...
//     sums          [none][ . . f_1 ][ . . f_2 ][ ... ]      one-hot columns: missing, 0, 1
//
// Columns that are rare have no place. RowTable that are added can make one frequent: it then gets a place
// behind all others, so that nothing that is there moves.
struct FeatureLayout {
  enum class Kind : std::uint8_t { narrow, wide, bundled, sparse, rare };
  std::uint32_t column = 0;
  Kind kind = Kind::narrow;
  std::uint32_t offset = 0;  // of the feature's sums in a histogram; code c is at offset + c
  std::uint32_t n_codes = 0;
  std::uint32_t position = 0;   // byte of the row (narrow, bundled), 16-bit word of the row (wide)
  std::uint32_t base = 0;       // bundled: the byte of the first code that has one ...
  Code first_bundled = 0;       // ... which code that is ...
  std::uint32_t n_bundled = 0;  // ... and how many have one
  Code common_code = missing_code;
  Code zero_code = missing_code;  // of the value 0
  bool categorical = false;

  // Whether counting leaves the common code's cell to complete().
  bool counts_only_differing() const { return kind == Kind::bundled || kind == Kind::sparse; }
  // Bundled: whether the code has a byte, and the code that the shared byte says.
  bool has_byte(Code code) const {
    return static_cast<std::uint32_t>(code - first_bundled) < n_bundled;
  }
  Code bundled_code(std::uint8_t byte) const {
    const std::uint32_t i = byte - base;
    return i < n_bundled ? static_cast<Code>(first_bundled + i) : common_code;
  }
};

class CodeLayout {
 public:
  using Kind = FeatureLayout::Kind;

  CodeLayout() = default;
  explicit CodeLayout(const BinMap& bins);

  // Places are numbered; those of features that the bins have cuts for come first, in their order.
  std::size_t size() const { return places_.size(); }
  const FeatureLayout& operator[](std::size_t number) const { return places_[number]; }
  std::uint32_t number_of(std::uint32_t feature) const { return numbers_.find(feature); }
  // The place of a feature; all rare ones have the same.
  const FeatureLayout& of(std::uint32_t feature) const {
    const std::uint32_t number = number_of(feature);
    return number == ColumnIndex::none ? rare_ : places_[number];
  }

  // Gives a place to columns that were rare; and all those that got one so, in the order of their
  // places.
  void add(std::span<const std::uint32_t> columns);
  std::span<const std::uint32_t> added() const {
    return std::span(numbers_.columns()).subspan(n_cut_);
  }

  std::size_t histogram_size() const { return histogram_size_; }
  // Cells of narrow, bundled and wide features; those of sparse ones lie behind.
  std::size_t plain_size() const { return plain_size_; }
  std::size_t row_bytes() const { return row_bytes_; }
  std::size_t n_bytes() const { return byte_offsets_.size(); }  // narrow features and bundles
  std::size_t n_words() const { return word_offsets_.size(); }  // wide features
  std::size_t first_bundle() const { return first_bundle_; }    // the bytes from here on
  std::size_t first_word() const {
    return (n_bytes() + 1) / 2;
  }  // wide codes start on an even byte
  // Histogram offsets of a row's bytes and words, in their order; of bundles, the cell of each byte.
  const std::vector<std::uint32_t>& byte_offsets() const { return byte_offsets_; }
  const std::uint32_t* bundle_cells(std::size_t byte) const {
    return bundle_cells_.data() + (byte - first_bundle_) * n_byte_values;
  }
  const std::vector<std::uint32_t>& word_offsets() const { return word_offsets_; }
  // Plain cells of a histogram that follow from the others, which nobody keeps up to date: "none differs"
  // of a bundle, and the common codes of its features.
  const std::vector<std::uint32_t>& implied_cells() const { return implied_cells_; }
  // Numbers of places in the order of their sums; the sparse ones come last.
  const std::vector<std::uint32_t>& by_offset() const { return by_offset_; }
  std::size_t first_sparse() const { return first_sparse_; }  // in by_offset()
  // Places that count only what differs from the common code.
  std::size_t n_differing() const { return n_differing_; }
  // Whether the common code of a bundled or sparse feature is "missing".
  bool any_commonly_missing() const { return any_commonly_missing_; }
  // Places whose rows differ from the common code where their value is 0.
  const std::vector<std::uint32_t>& not_zero_commonly() const { return not_zero_commonly_; }

 private:
  static constexpr std::size_t n_byte_values = 256;

  void place(std::uint32_t number, Kind kind, std::size_t position);
  void bundle(const std::vector<std::uint32_t>& numbers, const std::vector<Feature>& features);

  std::vector<FeatureLayout> places_;
  ColumnIndex numbers_;
  std::size_t n_cut_ = 0;
  FeatureLayout rare_;
  std::vector<std::uint32_t> by_offset_, byte_offsets_, bundle_cells_, word_offsets_;
  std::vector<std::uint32_t> implied_cells_;
  std::vector<std::uint32_t> not_zero_commonly_;
  bool any_commonly_missing_ = false;
  std::size_t histogram_size_ = 0, plain_size_ = 0;
  std::size_t row_bytes_ = 0;
  std::size_t first_bundle_ = 0, first_sparse_ = 0, n_differing_ = 0;
};

}  // namespace graftboost
