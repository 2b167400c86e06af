// Rows as a caller passes them.
#pragma once

#include <cstddef>
#include <span>

#include "core/types.hpp"
#include "data/bins.hpp"

namespace graftboost {

// Rows to learn from or to validate on. `weight` and `ids` may be empty: then rows have weight 1
// and are numbered.
template <class Table>
struct Sample {
  Table x;
  std::span<const double> y;
  std::span<const double> weight;
  std::span<const RowId> ids;
};

// Throws std::invalid_argument unless a table has one column per feature.
void check_columns(std::size_t n_columns, const BinMap& bins);

// Throws std::invalid_argument unless a sample fits a model with these bins and so many classes (1
// for squared error): lengths agree, targets are classes or finite, weights are finite and not
// negative.
template <class Table>
void check_sample(const Sample<Table>& sample, const BinMap& bins, int n_classes);

}  // namespace graftboost
