// Sparse features that share one cell of a row.
//
// Features that never differ from their common codes in the same row (above all one-hot columns)
// are bundled. This is decided on a sample of the rows, which is drawn by a hash of the row id. A
// row outside the sample, or a row that is added later, may still differ in two features of a
// bundle; RowTable then stores the code that does not fit into the shared cell as an entry. Bundles
// affect speed and memory only. No model depends on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/bins.hpp"

namespace graftboost {

// The codes of a bundled feature that have a value of the shared byte: a contiguous range that
// leaves out the common code where it is the first or last, and "missing" if no value was missing
// at fit. A one-hot column has one such code.
struct BundledCodes {
  Code first = 0;
  std::uint32_t n = 0;

  explicit BundledCodes(const Feature& feature) {
    std::uint32_t from = missing_code + (feature.has_missing ? 0u : 1u);
    std::uint32_t end = feature.n_codes();
    if (feature.common_code == from) ++from;
    if (feature.common_code == end - 1) --end;
    first = static_cast<Code>(from);
    n = end > from ? end - from : 0;
  }
};
// The shared byte is 0 if no feature of the bundle differs from its common code.
inline constexpr std::uint32_t most_bundled_codes = 255;

// The features that may be bundled. Refers to the features, which must outlive it.
class BundleCandidates {
 public:
  // `features` belong to `columns`.
  BundleCandidates(const std::vector<std::uint32_t>& columns, const std::vector<Feature>& features);

  std::size_t size() const { return numbers_.size(); }
  // The position of candidate i among the features.
  std::uint32_t operator[](std::size_t i) const { return numbers_[i]; }

  // Whether bundles are possible at all. Histograms have a cell for every code of a bundled
  // feature; nothing is gained if these are more than the rows.
  bool worth_bundling(std::size_t n_rows) const;

  // Calls use(i) for every candidate i in which the row differs from the common code.
  template <class Table, class Use>
  void for_each_differing(const Table& x, std::size_t row, Use&& use) const {
    x.for_each_nonzero(row, columns_, [&](std::uint32_t i, auto value) {
      if (features_[i]->code(value) != features_[i]->common_code) use(std::size_t{i});
    });
    for (const std::size_t i : zero_differs_)
      if (x.at(row, columns_[i]) == 0) use(i);
  }

 private:
  std::vector<std::uint32_t> numbers_;
  ColumnIndex columns_;
  std::vector<const Feature*> features_;
  std::vector<std::size_t>
      zero_differs_;  // candidates in which the value 0 has not the common code
};

// The pairs of candidates that differ from their common codes in the same row. The conflicts of
// several shards are combined with |=.
class BundleConflicts {
 public:
  explicit BundleConflicts(std::size_t n_candidates)
      : n_words_((n_candidates + 63) / 64), words_(n_candidates * n_words_) {}

  bool has(std::size_t i, std::size_t j) const {
    return (words_[i * n_words_ + j / 64] >> (j % 64) & 1) != 0;
  }
  // Adds a row that differs in these candidates.
  void add(const std::vector<std::size_t>& differing) {
    for (const std::size_t i : differing) {
      for (const std::size_t j : differing)
        words_[i * n_words_ + j / 64] |= std::uint64_t{1} << (j % 64);
    }
  }
  std::span<const std::uint64_t> words() const { return words_; }
  void add_words(std::span<const std::uint64_t> words) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= words[w];
  }
  BundleConflicts& operator|=(const BundleConflicts& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
    return *this;
  }

 private:
  std::size_t n_words_;
  std::vector<std::uint64_t> words_;
};

// Sets `bundle` of the features.
void choose_bundles(const BundleCandidates& candidates, const BundleConflicts& conflicts,
                    std::vector<Feature>& features);

}  // namespace graftboost
