// From raw values to codes: where each feature is cut, and which code a value gets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "matrix.hpp"
#include "types.hpp"

namespace graftboost {

struct BinningParams {
  int max_bins = 1024;        // B of the paper
  double split_sample = 0.1;  // alpha: the share of B that is kept as candidates
  bool width = false;         // the paper's Algorithm 4 in place of quantiles
  std::uint64_t seed = 0;
};

// One feature. Code 0 is "missing". A numeric feature with edges e_1 < ... < e_m has codes 1..m+1:
//
//     code      1      2      3          value <= e_1 has code 1, and so on
//     -------- e_1 -- e_2 --------->
//
// A categorical feature with C categories has codes 1..C, and C+1 for categories never seen at fit.
struct Feature {
  std::uint32_t n_categories = 0;  // 0: numeric
  std::vector<double> edges;       // ascending, none on a row's own value
  std::vector<float>
      edges_single;  // the largest float not above each edge: the same cut for floats
  Code common_code = missing_code;  // the code most rows had at fit ...
  double common_share = 0;          // ... and how many of them: decides how the column is stored
  std::int32_t bundle = -1;         // features of one bundle share a cell (see bundling.hpp)

  bool categorical() const { return n_categories != 0; }
  // Codes run from 0 to n_codes() - 1.
  std::uint32_t n_codes() const {
    return categorical() ? n_categories + 2 : static_cast<std::uint32_t>(edges.size()) + 2;
  }
  Code code(double value) const;
  Code code(float value) const;
};

// Per feature: the edges to use, or none where they are to be fitted.
using GivenEdges = std::vector<std::optional<std::vector<double>>>;

// Made once per model and never changed by updates or refits.
class BinMap {
 public:
  BinMap() = default;
  explicit BinMap(std::vector<Feature> features) : features_(std::move(features)) {}

  // `ids` may be empty (rows are numbered from 0). `n_categories` and `given` have one entry per
  // column. Depends on the set of (id, row) pairs, not on their order.
  template <class Value>
  static BinMap fit(const Matrix<Value>& x, std::span<const RowId> ids,
                    const std::vector<std::uint32_t>& n_categories, const GivenEdges& given,
                    const BinningParams& params, int n_threads);

  std::size_t n_features() const { return features_.size(); }
  const Feature& operator[](std::size_t f) const { return features_[f]; }

 private:
  std::vector<Feature> features_;
};

// The largest float not above each edge.
std::vector<float> single_edges(const std::vector<double>& edges);

// The shortest decimal well inside (low, high); `low` itself when the two are neighbours.
double edge_between(double low, double high);

}  // namespace graftboost
