// Sparse features that can share one cell of a row.
#pragma once

#include <span>
#include <vector>

#include "data/bins.hpp"

namespace graftboost {

// What storing a feature sparsely, cell by cell, would save of a plain cell's cost in a histogram:
// a cell that differs from the common code then costs as much as two and a half plain ones.
inline double sparse_saving(const Feature& feature) { return 1 - 2.5 * (1 - feature.common_share); }

// The codes of a bundled feature that have a byte of their own in the shared cell: the others are the
// common code, which needs none, and codes that no row was seen to have. Of a one-hot column it is one.
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
inline constexpr std::uint32_t most_bundled_codes = 255;  // in one byte beside "none differs"

// Sets `bundle` of features that, in a sample of rows drawn by hash of the row id, never differ from
// their common codes in the same row (one-hot columns, above all). A row outside the sample, or added
// later, may still do so: RowTable keeps what does not fit into the shared cell apart. Sums of bundled
// features are kept for all their codes: where these are more than the rows, there are no bundles. All
// this is a matter of speed and memory; no model depends on it.
template <class Table>
void bundle_features(const Table& x, std::span<const RowId> ids, std::uint64_t seed,
                     const std::vector<std::uint32_t>& columns, std::vector<Feature>& features);

}  // namespace graftboost
