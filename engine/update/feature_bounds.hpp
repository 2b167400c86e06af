// Upper bounds on the gains of a node's candidates, feature by feature.
//
// Of a numeric feature, two kinds of candidates are bounded apart. Central ones leave at least a
// certain share of the node's hessian in either child, so changed rows move their gains little.
// Outer ones have a small child at one end of the feature, whose few rows make gains volatile, but
// only rows with a code at that end change it:
//
//     codes      1  2  3 | 4  5  6  7  8  9 10 11 | 12 13
//     edges       1  2  3  4 ...            10  11  12
//                 outer    central (4 to 10)       outer
//     a row with a code from 4 to 11 is in the larger child of every outer candidate
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/array.hpp"
#include "core/types.hpp"
#include "train/split_survey.hpp"

namespace graftboost {

// How far changed rows can have moved the sums of a node's children since bounds were started: sums
// over the rows of the positive and of the negative changes of G - cH, for the centre c, and of the
// hessian of removed rows. See gain_bounds.hpp.
struct NodeDrift {
  double up = 0, down = 0, lost = 0;
};

// Owns the bounds of all features of one node, and the drift that only their outer candidates feel.
// All numbers are rounded so that bounds stay bounds.
class FeatureBounds {
 public:
  static constexpr float unknown = std::numeric_limits<float>::infinity();
  // Wide enough for the rounding to float and of the arithmetic here.
  static constexpr double slack = 1e-6;
  static float above(double x) { return static_cast<float>(x * (1 + slack)); }
  static float below(double x) { return static_cast<float>(x * (1 - slack)); }

  std::size_t size() const { return guards_.size(); }
  bool empty() const { return guards_.empty(); }
  void forget() {
    numbers_.resize(0);
    codes_.resize(0);
    guards_.resize(0);
  }
  // The node has this hessian. All features have yet to be evaluated.
  void start(std::size_t n_features, double hessian, double l2);

  // A feature was evaluated when the node had so much drift and hessian. `worth` is that of the two
  // children of its best candidate; `outer_worth` that of its best outer candidate. Negative if
  // there is none. Several threads may do this at once while the hessian is that of start().
  void evaluated(std::uint32_t number, const NodeDrift& drift, double hessian, double l2,
                 double worth, double outer_worth, const FeatureSurvey& survey);

  // A row with these codes was added or removed, which changed G - cH by `shift` and H by h.
  void row_changed(std::span<const Code> codes, double shift, double h, bool enters);

  // Rows were removed, and each child of a candidate of the feature changed by at most `drift` and
  // `hessian`.
  void rows_removed(std::uint32_t number, double drift, double hessian);
  // Rows recorded other gradients, and each child of a candidate of the feature changed by at most
  // `drift` and `hessian`.
  void sums_changed(std::uint32_t number, double drift, double hessian);

  // No two children of a candidate of the feature are worth more than this together.
  double worth_at_most(std::uint32_t number, const NodeDrift& drift) const;
  // The same for all features; the one with number `but`, if any, is left out.
  double highest_worth(const NodeDrift& drift, std::uint32_t but) const;

 private:
  // The rows that may still be added before an invalid candidate of a feature becomes valid: any
  // with a code from `first` to `last`; of others so many, with so much hessian.
  struct Guard {
    Code first = 0xffff, last = 0;
    std::int32_t rows_short = 0;
    float hessian_short = 0;
  };
  // Numbers of a feature, as of its last evaluation. They are stored one after the other for all
  // features, padded to whole lanes, so that the loops over features vectorise. In the padding no
  // candidate is valid.
  enum Number : std::size_t {
    root,         // of the worth of all candidates; below 0 if none was valid
    reach,        // 1 / sqrt(least hessian of a child of a central candidate)
    outer_root,   // the same for outer candidates
    outer_reach,  //
    up,           // the node's drift at the time, less what sums_changed() added
    down,         //
    lost,         //
    outer_drift,  // of rows with outer codes since
    outer_lost,   // likewise
    n_numbers
  };
  // Where the numbers of all features are.
  struct Numbers {
    const float *root, *reach, *outer_root, *outer_reach, *up, *down, *lost, *outer_drift,
        *outer_lost;
    double wide_reach;
  };
  Numbers numbers() const;
  static double highest_of(const Numbers& of, const NodeDrift& drift, std::size_t n_padded,
                           std::size_t but);
  static constexpr std::size_t lanes = 8;
  static std::size_t padded(std::size_t n) { return (n + lanes - 1) / lanes * lanes; }
  float* of(Number number) { return numbers_.data() + number * padded(size()); }
  const float* of(Number number) const { return numbers_.data() + number * padded(size()); }
  Code* first_central() { return codes_.data(); }
  Code* last_central() { return codes_.data() + size(); }

  Array<float> numbers_;
  Array<Code> codes_;  // the first central code of each feature, then the last
  Array<Guard> guards_;
  float wide_reach_ = 0;  // 1 / sqrt(least hessian of the larger child of a candidate)
};

}  // namespace graftboost
