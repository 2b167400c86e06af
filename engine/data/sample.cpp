#include "data/sample.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "data/table.hpp"

namespace graftboost {

void check_columns(std::size_t n_columns, const BinMap& bins) {
  if (n_columns == bins.n_features()) return;
  throw std::invalid_argument("X: has " + std::to_string(n_columns) + " columns where " +
                              std::to_string(bins.n_features()) + " were expected");
}

template <class Table>
void check_sample(const Sample<Table>& sample, const BinMap& bins, int n_classes) {
  const std::size_t n = sample.x.rows;
  check_columns(sample.x.columns, bins);
  const auto require = [](bool holds, const char* otherwise) {
    if (!holds) throw std::invalid_argument(otherwise);
  };
  require(sample.y.size() == n, "y: has another number of rows than X");
  require(sample.weight.empty() || sample.weight.size() == n,
          "sample_weight: has another number of rows than X");
  require(sample.ids.empty() || sample.ids.size() == n,
          "row_ids: has another number of rows than X");
  for (const double y : sample.y) {
    require(
        n_classes > 1 ? y >= 0 && y < n_classes && y == std::floor(y) : std::isfinite(y),
        n_classes > 1 ? "y: has a number that no class has" : "y: has a number that is not finite");
  }
  for (const double weight : sample.weight)
    require(std::isfinite(weight) && weight >= 0,
            "sample_weight: has a weight that is negative or not finite");
}

template void check_sample(const Sample<DenseTable<float>>&, const BinMap&, int);
template void check_sample(const Sample<DenseTable<double>>&, const BinMap&, int);
template void check_sample(const Sample<SparseTable<float>>&, const BinMap&, int);
template void check_sample(const Sample<SparseTable<double>>&, const BinMap&, int);

}  // namespace graftboost
