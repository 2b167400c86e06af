// Sparse features that can share one cell of a row.
#pragma once

#include <span>
#include <vector>

#include "binning.hpp"

namespace graftboost {

// What storing a feature sparsely, cell by cell, would save of a plain cell's cost in a histogram:
// a cell that differs from the common code then costs as much as two and a half plain ones.
inline double sparse_saving(const Feature& feature) { return 1 - 2.5 * (1 - feature.common_share); }

// Sets `bundle` of features that, in a sample of rows drawn by hash of the row id, never differ from
// their common codes in the same row (one-hot columns, above all). A row outside the sample, or added
// later, may still do so: Rows keeps what does not fit into the shared cell apart. So bundles are a
// matter of speed and memory; no model depends on them.
template <class Table>
void bundle_features(const Table& x, std::span<const RowId> ids, std::uint64_t seed,
                     const std::vector<std::uint32_t>& columns, std::vector<Feature>& features);

}  // namespace graftboost
