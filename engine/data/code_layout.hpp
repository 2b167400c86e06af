// Where the codes of each feature are stored in a row, and where its cells lie in a histogram.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "data/bins.hpp"
#include "data/column_index.hpp"

namespace graftboost {

// The layout of one feature. Its codes are stored in one of these ways:
//
//   narrow    one byte per row        features with at most 256 codes
//   wide      two bytes per row       features with more codes
//   bundled   one byte shared by      features that hardly ever differ from their common codes in
//             several features        the same row
//   sparse    an entry per row that differs from the feature's common code
//   rare      likewise, but without cells in histograms, because too few rows differ for a split
//
// The narrow, bundled and wide codes of a row lie side by side, so that adding a row to a histogram
// touches one or two cache lines. All one-hot columns of a category share one byte and cost a
// histogram one addition per row: the cells of a bundle's features follow each other after a cell
// for "none differs", and each value of the byte stands for one of these cells. For example, two
// one-hot columns with the codes missing, 0 and 1 need the byte values 0 (none differs), 1 (f_1 is
// 1) and 2 (f_2 is 1):
//
//     cells         [none][ missing 0 1 ][ missing 0 1 ]
//     byte             0              1              2
//
// Rare columns are not laid out. When added rows make a rare column frequent, it is laid out as a
// sparse feature after all others, so that nothing else moves.
struct FeatureLayout {
  enum class Kind : std::uint8_t { narrow, wide, bundled, sparse, rare };
  std::uint32_t column = 0;
  Kind kind = Kind::narrow;
  std::uint32_t offset = 0;  // of the feature's cells in a histogram; code c is at offset + c
  std::uint32_t n_codes = 0;
  std::uint32_t position = 0;  // byte of the row (narrow, bundled) or 16-bit word of the row (wide)
  // Bundled features: the codes first_bundled to first_bundled + n_bundled - 1 are the byte values
  // from `base` on.
  std::uint32_t base = 0;
  Code first_bundled = 0;
  std::uint32_t n_bundled = 0;
  Code common_code = missing_code;
  Code zero_code = missing_code;  // the code of the value 0
  bool categorical = false;

  // Whether only codes that differ from the common code are counted in a histogram. The cell of the
  // common code is then derived from the total of the node by complete().
  bool counts_only_differing() const { return kind == Kind::bundled || kind == Kind::sparse; }
  // Bundled features: whether a code has a value of the shared byte.
  bool has_byte(Code code) const {
    return static_cast<std::uint32_t>(code - first_bundled) < n_bundled;
  }
  // Bundled features: the code for a value of the shared byte. A code without a byte value is
  // stored as an entry of the row, and the byte then gives the common code.
  Code bundled_code(std::uint8_t byte) const {
    const std::uint32_t i = byte - base;
    return i < n_bundled ? static_cast<Code>(first_bundled + i) : common_code;
  }
};

// The layouts of all features of a model. Owns only the layouts, no data of rows; copies share
// them. The cells of different features in a histogram are disjoint; only features of one bundle
// share a position in the row.
class CodeLayout {
 public:
  using Kind = FeatureLayout::Kind;

  CodeLayout() = default;
  explicit CodeLayout(const BinMap& bins);

  // Features that are laid out are numbered: first those that are not rare in the bins, in their
  // order, then the columns of add().
  std::size_t size() const { return tables_->features.size(); }
  const FeatureLayout& operator[](std::size_t number) const { return tables_->features[number]; }
  // ColumnIndex::none if the feature is rare.
  std::uint32_t number_of(std::uint32_t feature) const { return tables_->numbers.find(feature); }
  // The layout of a feature. All rare features have the same.
  const FeatureLayout& of(std::uint32_t feature) const {
    const std::uint32_t number = number_of(feature);
    return number == ColumnIndex::none ? tables_->rare : tables_->features[number];
  }

  // Lays out columns that were rare, after all others.
  void add(std::span<const std::uint32_t> columns);
  // All columns that were laid out so, in the order of their cells.
  std::span<const std::uint32_t> added() const {
    return std::span(tables_->numbers.columns()).subspan(tables_->n_cut);
  }

  std::size_t histogram_size() const { return tables_->histogram_size; }
  // The cells of narrow, bundled and wide features. Those of sparse features follow.
  std::size_t plain_size() const { return tables_->plain_size; }
  std::size_t row_bytes() const { return tables_->row_bytes; }
  std::size_t n_bytes() const {
    return tables_->byte_offsets.size();
  }  // narrow features and bundles
  std::size_t n_words() const { return tables_->word_offsets.size(); }  // wide features
  std::size_t first_bundle() const { return tables_->first_bundle; }  // the first byte of a bundle
  // The first word of a wide feature. Words start at even bytes.
  std::size_t first_word() const { return (n_bytes() + 1) / 2; }
  // Histogram offsets of a row's bytes and words, in their order.
  const std::vector<std::uint32_t>& byte_offsets() const { return tables_->byte_offsets; }
  const std::vector<std::uint32_t>& word_offsets() const { return tables_->word_offsets; }
  // The cell in a histogram for each value of a bundle's byte.
  const std::uint32_t* bundle_cells(std::size_t byte) const {
    return tables_->bundle_cells.data() + (byte - tables_->first_bundle) * n_byte_values;
  }
  // The plain cells of a histogram that are not counted because they follow from the others: "none
  // differs" of each bundle and the common codes of its features.
  const std::vector<std::uint32_t>& implied_cells() const { return tables_->implied_cells; }
  // The numbers of the features in the order of their cells. Sparse features come last.
  const std::vector<std::uint32_t>& by_offset() const { return tables_->by_offset; }
  std::size_t first_sparse() const { return tables_->first_sparse; }  // in by_offset()
  // The number of features with counts_only_differing().
  std::size_t n_differing() const { return tables_->n_differing; }
  // Whether the common code of a bundled or sparse feature is "missing".
  bool any_commonly_missing() const { return tables_->any_commonly_missing; }
  // The numbers of bundled and sparse features in which the value 0 differs from the common code.
  const std::vector<std::uint32_t>& zero_differs() const { return tables_->zero_differs; }

  static constexpr std::size_t n_byte_values = 256;

 private:
  // Lays out a feature behind those that are laid out already.
  void lay_out(std::uint32_t number, Kind kind, std::size_t position);
  void lay_out_bundle(const std::vector<std::uint32_t>& numbers,
                      const std::vector<Feature>& features);

  struct Tables {
    std::vector<FeatureLayout> features;
    ColumnIndex numbers;
    std::size_t n_cut = 0;  // features that are not rare in the bins
    FeatureLayout rare;
    std::vector<std::uint32_t> by_offset, byte_offsets, bundle_cells, word_offsets;
    std::vector<std::uint32_t> implied_cells;
    std::vector<std::uint32_t> zero_differs;
    bool any_commonly_missing = false;
    std::size_t histogram_size = 0, plain_size = 0;
    std::size_t row_bytes = 0;
    std::size_t first_bundle = 0, first_sparse = 0, n_differing = 0;
  };

  // Copies share the tables until one of them adds columns, so that copying a layout is cheap.
  std::shared_ptr<Tables> tables_ = std::make_shared<Tables>();
};

}  // namespace graftboost
