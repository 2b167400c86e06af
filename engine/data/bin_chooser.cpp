#include "data/bin_chooser.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/bin_edges.hpp"

namespace graftboost {
namespace {

// With more rows than this, edges are found from a sample of about half this number. A thousand
// quantiles of 131,072 rows are about as good as those of all rows.
constexpr std::size_t most_rows_unsampled = std::size_t{1} << 18;
constexpr double n_rows_for_bundling = 1 << 14;

// The purposes of samples.
constexpr std::uint64_t for_edges = 0x62696e73, for_bundling = 0x62756e64;

// The most frequent code of a feature.
void find_common_code(Feature& feature, const Distribution& distribution) {
  std::vector<std::size_t> counts(feature.n_codes());
  counts[missing_code] = distribution.n_missing;
  feature.has_missing = distribution.n_missing != 0;
  for (std::size_t i = 0; i < distribution.values.size(); ++i)
    counts[feature.code(distribution.values[i])] += distribution.count(i);
  const auto most = std::max_element(counts.begin(), counts.end());
  const std::size_t n_rows = distribution.n_rows();
  feature.common_code = static_cast<Code>(most - counts.begin());
  feature.common_share =
      n_rows == 0 ? 1.0 : static_cast<double>(*most) / static_cast<double>(n_rows);
}

bool is_rare(std::size_t n_nonzero, std::size_t n_rows, std::size_t rare_below) {
  return n_nonzero < rare_below && 8 * n_nonzero < n_rows;
}

}  // namespace

BinChooser::BinChooser(std::size_t n_columns, std::size_t n_rows, const GivenColumns& given,
                       const BinningParams& params)
    : n_columns_(n_columns), n_rows_(n_rows), given_(given), params_(params) {
  sample_ = {params.seed, for_edges, 1};
  if (n_rows > most_rows_unsampled) {
    sample_.share = static_cast<double>(most_rows_unsampled / 2) / static_cast<double>(n_rows);
  }
  columns_.resize(n_columns);
  std::iota(columns_.begin(), columns_.end(), 0u);
}

bool BinChooser::is_given(std::uint32_t column) const {
  return given_.n_categories.contains(column) || given_.edges.contains(column);
}

void BinChooser::skip_rare(const NonzeroCounts& counts) {
  std::erase_if(columns_, [&](std::uint32_t column) {
    return is_rare(counts.by_column[column], counts.n_rows, params_.rare_below) &&
           !is_given(column);
  });
}

void BinChooser::begin_features() {
  features_.resize(columns_.size());
  is_rare_.resize(columns_.size());
  below_edges_.resize(columns_.size());
}

void BinChooser::choose_edges(std::size_t i, const Distribution& distribution) {
  const std::uint32_t column = columns_[i];
  Feature& feature = features_[i];
  if (const auto found = given_.n_categories.find(column); found != given_.n_categories.end()) {
    feature.n_categories = found->second;
  } else if (const auto edges = given_.edges.find(column); edges != given_.edges.end()) {
    feature.edges = edges->second;
  } else if (is_rare(distribution.n_rows() - distribution.n_zeros, distribution.n_rows(),
                     params_.rare_below)) {
    is_rare_[i] = 1;
    return;
  } else {
    for (const std::size_t b : choose_boundaries(distribution, params_, column)) {
      const double below = distribution.values[b];
      feature.edges.push_back(edge_between(below, distribution.values[b + 1]));
      below_edges_[i].push_back(below);
    }
  }
  find_common_code(feature, distribution);
}

// In a sample, the next sampled value above an edge need not be the next value of all rows, and an
// edge must not lie on the value of any row. Moving the edge between the neighbours in all rows
// changes the code of no sampled row.
void BinChooser::move_edges(const ColumnValues& least_above) {
  for (std::size_t i = 0; i < below_edges_.size(); ++i) {
    for (std::size_t k = 0; k < below_edges_[i].size(); ++k)
      features_[i].edges[k] = edge_between(below_edges_[i][k], least_above[i][k + 1]);
  }
}

void BinChooser::finish_features() {
  std::size_t n = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (is_rare_[i]) continue;
    features_[i].edges_single = single_edges(features_[i].edges);
    columns_[n] = columns_[i];
    if (n != i) features_[n] = std::move(features_[i]);
    ++n;
  }
  columns_.resize(n);
  features_.resize(n);
}

RowSample BinChooser::bundle_sample() const {
  return {params_.seed, for_bundling, n_rows_for_bundling / static_cast<double>(n_rows_)};
}

}  // namespace graftboost
