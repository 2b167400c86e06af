// What bins are, and which code a value has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "data/column_index.hpp"
#include "data/table.hpp"

namespace graftboost {

struct BinningParams {
  int max_bins = 255;       // B of the paper
  double split_sample = 1;  // alpha of the paper: at most ceil(alpha * B) candidates per feature
  bool width = false;       // bins of equal width (the paper's Algorithm 4) instead of quantiles
  std::uint64_t seed = 0;
  std::size_t rare_below = 0;  // see BinMap
};

// One feature. Code 0 means "missing". A numeric feature with edges e_1 < ... < e_m has the codes
// 1 to m + 1:
//
//     code      1      2      3          a value <= e_1 has code 1, and so on
//     -------- e_1 -- e_2 --------->
//
// A categorical feature with C categories has the codes 1 to C, and C + 1 for categories that did
// not occur at fit.
struct Feature {
  std::uint32_t n_categories = 0;   // 0 if the feature is numeric
  std::vector<double> edges;        // ascending; found edges lie on no row's value
  std::vector<float> edges_single;  // see single_edges()
  Code common_code = missing_code;  // the most frequent code at fit
  double common_share = 0;          // the share of the rows with that code; decides on the layout
  bool has_missing = false;         // whether any value was missing at fit
  std::int32_t bundle = -1;         // features of one bundle share a cell (see bundling.hpp)

  bool categorical() const { return n_categories != 0; }
  // Codes run from 0 to n_codes() - 1.
  std::uint32_t n_codes() const {
    return categorical() ? n_categories + 2 : static_cast<std::uint32_t>(edges.size()) + 2;
  }
  Code code(double value) const;
  Code code(float value) const;
};

// Columns for which the caller specifies the bins.
struct GivenColumns {
  std::map<std::uint32_t, std::uint32_t> n_categories;  // of categorical columns
  std::map<std::uint32_t, std::vector<double>> edges;   // of columns with supplied edges
};

// The largest number of columns of a table: a RareCell has 29 bits for the column.
inline constexpr std::size_t most_columns = std::size_t{1} << 29;

// The features of a model. It is made once per model; updates and refits do not change it.
//
// A column is rare if fewer than `rare_below` rows, and fewer than one row in eight, have a value
// other than 0. No leaf can hold so few rows, so the column cannot be split, and its values say
// little about where to place edges. All rare columns have the same bins (below, at and above 0)
// and take no memory here. A rare column becomes frequent when enough rows with other values are
// added.
class BinMap {
 public:
  BinMap() = default;
  // `features` belong to `columns`, which ascend; all other columns are rare.
  BinMap(std::size_t n_features, std::vector<std::uint32_t> columns, std::vector<Feature> features);

  // Finds the bins of a table. If `ids` is empty, rows are numbered from 0. The result is a
  // function of the set of (id, row) pairs; it depends neither on their order nor on the form of
  // the table. See find_bins() for rows that are spread over several shards.
  template <class Table>
  static BinMap fit(const Table& x, std::span<const RowId> ids, const GivenColumns& given,
                    const BinningParams& params, int n_threads);

  std::size_t n_features() const { return n_features_; }
  const Feature& operator[](std::size_t f) const {
    const std::uint32_t number = cut_.find(static_cast<std::uint32_t>(f));
    return number == ColumnIndex::none ? rare() : features_[number];
  }
  // The columns that are not rare, ascending, and their features in the same order.
  const ColumnIndex& cut() const { return cut_; }
  const std::vector<Feature>& features() const { return features_; }

  // The feature that all rare columns share: code 1 below 0, code 2 at 0, code 3 above 0.
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

// The largest float that is not above each edge. A float is at most `edge` if and only if it is at
// most this number, so that floats are encoded without converting them.
std::vector<float> single_edges(const std::vector<double>& edges);

// The number of sorted values that are below `value`, by binary search without a data-dependent
// branch.
template <class Value>
std::size_t n_below(const Value* sorted, std::size_t n, Value value) {
  if (n == 0) return 0;
  const Value* base = sorted;
  while (n > 1) {
    const std::size_t half = n / 2;
    base += half * static_cast<std::size_t>(base[half - 1] < value);
    n -= half;
  }
  return static_cast<std::size_t>(base - sorted) + (*base < value ? 1 : 0);
}

}  // namespace graftboost
