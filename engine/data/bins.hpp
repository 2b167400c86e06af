// From raw values to codes: where each feature is cut, and which code a value gets.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/hashing.hpp"
#include "core/types.hpp"
#include "data/column_index.hpp"
#include "data/table.hpp"

namespace graftboost {

struct BinningParams {
  int max_bins = 1024;        // B of the paper
  double split_sample = 0.1;  // alpha: the share of B that is kept as candidates
  bool width = false;         // the paper's Algorithm 4 in place of quantiles
  std::uint64_t seed = 0;
  std::size_t rare_below = 0;  // see BinMap
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
  bool has_missing = false;         // whether any of them was missing
  std::int32_t bundle = -1;         // features of one bundle share a cell (see bundling.hpp)

  bool categorical() const { return n_categories != 0; }
  // Codes run from 0 to n_codes() - 1.
  std::uint32_t n_codes() const {
    return categorical() ? n_categories + 2 : static_cast<std::uint32_t>(edges.size()) + 2;
  }
  Code code(double value) const;
  Code code(float value) const;
};

// What is known of some columns before they are looked at, by column.
struct GivenColumns {
  std::map<std::uint32_t, std::uint32_t> n_categories;  // of those that are categorical
  std::map<std::uint32_t, std::vector<double>> edges;   // of those that are not to be fitted
};

// The most columns that a table may have: what rows hold of rare ones has two bits beside the column.
inline constexpr std::size_t most_columns = std::size_t{1} << 29;

// Made once per model and never changed by updates or refits.
//
// A column is rare if fewer rows than `rare_below`, and fewer than one in eight, have something other
// than 0 there. So few rows make no leaf: there is nothing to split, and nothing to learn about where
// to cut. All such columns are cut alike, below and above 0, and take no memory. When rows are added
// that have something there, the column can be told apart like any other.
class BinMap {
 public:
  BinMap() = default;
  // `features` are those of `columns`, ascending; the others are rare.
  BinMap(std::size_t n_features, std::vector<std::uint32_t> columns, std::vector<Feature> features);

  // `ids` may be empty (rows are numbered from 0). Depends on the set of (id, row) pairs, not on their
  // order, nor on how the table is stored.
  template <class Table>
  static BinMap fit(const Table& x, std::span<const RowId> ids, const GivenColumns& given,
                    const BinningParams& params, int n_threads);

  std::size_t n_features() const { return n_features_; }
  const Feature& operator[](std::size_t f) const {
    const std::uint32_t number = cut_.find(static_cast<std::uint32_t>(f));
    return number == ColumnIndex::none ? rare() : features_[number];
  }
  // The columns that are not rare, ascending, and their features.
  const ColumnIndex& cut() const { return cut_; }
  const std::vector<Feature>& features() const { return features_; }

  // What all rare columns are like: code 1 below 0, code 2 is 0, code 3 above.
  static const Feature& rare();
  template <class Value>
  static Code rare_code(Value value) {
    return value < 0 ? 1 : value == 0 ? 2 : value > 0 ? 3 : missing_code;
  }

 private:
  std::size_t n_features_ = 0;
  ColumnIndex cut_;
  std::vector<Feature> features_;
};

// The largest float not above each edge.
std::vector<float> single_edges(const std::vector<double>& edges);

// The shortest decimal well inside (low, high); `low` itself when the two are neighbours.
double edge_between(double low, double high);

}  // namespace graftboost
