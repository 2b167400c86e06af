// The best candidate of a node.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "model/loss.hpp"
#include "data/row_table.hpp"
#include "core/rounding.hpp"
#include "core/types.hpp"
#include "core/sums.hpp"

namespace graftboost {

// A candidate and what it is worth (the paper's Eq. 5). The default is "there is none".
struct BestSplit {
  double gain = -std::numeric_limits<double>::infinity();
  Split split;
  Totals left;  // sums of the rows that go left

  bool exists() const { return gain > least_gain; }
  // Among equals the first feature wins, so that threads may share out the features.
  bool better_than(const BestSplit& other) const {
    return gain > other.gain || (gain == other.gain && split.feature < other.split.feature);
  }
};

struct GainParams {
  double gradient_unit = 1;
  double hessian_unit = 1;
  double l2 = 0;
  double least_hessian = 0;
  std::int64_t min_samples_leaf = 1;
  std::int64_t largest_contribution = 1;  // no row adds more to a sum of g or of h
};

// What else the judging of a feature's candidates tells: how firmly the outcome stands when rows change.
struct Standing {
  double least_hessian = std::numeric_limits<double>::infinity();  // of a side of those that count
  // A row that comes with a code from first to last makes no other candidate count. Of other rows it
  // takes so many, or so much hessian, to make one count that does not.
  Code first = 0xffff, last = 0;
  std::int64_t rows_short = std::numeric_limits<std::int64_t>::max();
  double hessian_short = std::numeric_limits<double>::infinity();
};

// The same for the candidates of many bundled and sparse features together. Most of them a row that comes
// or goes does not have: it is on the side of their common code, which is the one that matters. So they
// are in groups by how much hessian that side has. Candidates that do not count because that side has too
// little wait for rows to come, whatever these have. Others can come to count only when a row comes that
// has the feature.
struct Standings {
  static constexpr std::size_t n_groups = 16;
  static constexpr std::int64_t rows_ahead = 8;  // those that lack more are not among the waiting
  struct Group {
    double gain = -std::numeric_limits<double>::infinity();
    std::uint32_t feature = 0;  // whose candidate that is, and the best of the others
    double next_gain = -std::numeric_limits<double>::infinity();
    double least_hessian = std::numeric_limits<double>::infinity();  // of the common code's side
  };
  std::array<Group, n_groups> counting, waiting;

  void add(const Standings& others);
};

// The rows next to a split: another candidate of its feature sends at least so many to the other side,
// unless a row comes with a code between `below` and `above`.
struct Margin {
  std::int64_t rows = 1;
  Code below = 0, above = 0xffff;
};
template <class Sums>
Margin margin_of(const FeatureLayout& place, const Split& split, const Sums* cells);

// The gain of a candidate with these rows on its left; minus infinity if a side has too little
// hessian.
double gain_of(const GainParams& params, const Totals& node, const Totals& left);

// How many candidates of a feature have a larger gain than this.
template <class Sums>
std::int64_t count_better(const GainParams& params, const FeatureLayout& place,
                          const Totals& node, const Sums* cells, double gain);

// The largest gain of a feature's candidates that is not this one; minus infinity if there is none.
template <class Sums>
double next_gain(const GainParams& params, const FeatureLayout& place, const Totals& node,
                 const Sums* cells, double gain);

// Whether so few rows of the node differ from the feature's common code that none of its candidates
// counts. Says no where that takes looking at them.
template <class Sums>
bool has_none(const GainParams& params, const FeatureLayout& place, const Totals& node,
              const Sums* cells) {
  return place.counts_only_differing() &&
         node.n - Totals(cells[place.common_code]).n < params.min_samples_leaf;
}

// The best candidate of one feature, among those that leave `min_samples_leaf` rows and
// `least_hessian` on either side. `cells` are the feature's own, all of them.
//
// Numeric: each edge, with the missing rows on the right and on the left; and the missing rows alone
// against all others. Where a node has no missing rows, later ones go with the larger side.
// Categorical: each category, "missing" and "unseen" included, against all others.
template <class Sums>
BestSplit best_split_of_feature(const GainParams& params, const FeatureLayout& place,
                            const Totals& node, const Sums* cells, Standing* standing = nullptr);

// What the judging of a candidate needs besides its left sums.
struct Scale {
  double gradient_unit, hessian_unit, l2, least_hessian;
  double g, h;  // of the node
};

// The best candidate of a node, feature after feature: for many bundled and sparse features with few
// candidates each, whose standings it can tell.
template <class Sums>
class Search {
 public:
  Search(const GainParams& params, const Totals& node, bool surveys);

  // Looks at a feature, whose cells these are. False if too few of the node's rows have it
  // for a split: then it need not be looked at below the node either.
  bool see(const FeatureLayout& place, const Sums* cells);

  // The same if all that is there of a sparse feature's cells are these: `sums` in `cells` of the layout.
  bool see_sparse(const FeatureLayout& place, std::span<const std::uint32_t> cells,
                  const Sums* sums);

  const BestSplit& best() const { return best_; }
  const Standings& standings() const { return standings_; }

 private:
  struct Found;
  bool is_behind(const Found& found, const FeatureLayout& place) const;
  void see_edges(const Sums* cells, std::uint32_t n_edges, const Totals& missing,
                 std::uint32_t offset, const FeatureLayout& place, Found& found);
  void see_candidate(const Totals& left, std::uint32_t key, bool common_left,
                     const FeatureLayout& place, Found& found);
  void note(std::array<Standings::Group, Standings::n_groups>& groups, std::uint32_t feature,
            double score, double hessian) const;

  const GainParams& params_;
  Totals node_;
  bool surveys_;
  Scale scale_;
  BestSplit best_;
  Standings standings_;
  std::vector<Sums> scratch_;
};

}  // namespace graftboost
