// What evaluating candidates reveals besides the best: how much rows must change before another
// candidate can become the best. Gain bounds are made from it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "core/types.hpp"
#include "train/gain.hpp"

namespace graftboost {

// Of the candidates of one feature. A candidate is valid if both children have enough rows and
// hessian.
struct FeatureSurvey {
  // Of a child of a valid candidate. Numeric features: of a central one, both of whose children
  // have at least node.h >> central_shift.
  double least_hessian = std::numeric_limits<double>::infinity();
  // Numeric features: of the other valid candidates, which are outer ones: the least hessian of the
  // small child and the best score. A row with a code from first_central to last_central is in the
  // larger child of all of them.
  double outer_hessian = std::numeric_limits<double>::infinity();
  double outer_score = no_gain;
  Code first_central = 1, last_central = 0xffff;
  // A row that is added with a code from first to last makes no further candidate valid. Of other
  // rows it takes so many, or so much hessian, to make one valid that is not.
  Code first = 0xffff, last = 0;
  std::int64_t rows_short = std::numeric_limits<std::int64_t>::max();
  double hessian_short = std::numeric_limits<double>::infinity();

  static constexpr int central_shift = 4;

  void add_child(double hessian) {
    least_hessian = hessian < least_hessian ? hessian : least_hessian;
  }
  void add_outer(double hessian, double score) {
    outer_hessian = hessian < outer_hessian ? hessian : outer_hessian;
    outer_score = score > outer_score ? score : outer_score;
  }
  // An invalid candidate lacks so many rows and so much hessian.
  void add_short(std::int64_t rows, double hessian) {
    if (hessian > 0) {
      hessian_short = hessian < hessian_short ? hessian : hessian_short;
    } else {
      rows_short = rows < rows_short ? rows : rows_short;
    }
  }
};

// Of the candidates of many bundled and sparse features together. Most of these features do not
// occur in a row that is added or removed: the row is on the side of their common code, so that
// child's hessian is the one that matters, and candidates are grouped by it. Candidates that are
// invalid because that child has too little wait for added rows, whatever their codes. Others can
// become valid only through an added row that has the feature.
struct GroupSurvey {
  static constexpr std::size_t n_groups = 16;
  static constexpr std::int64_t rows_ahead = 8;  // candidates that lack more rows do not wait
  struct Group {
    double gain = no_gain;
    std::uint32_t feature = 0;   // whose candidate has this gain ...
    double next_gain = no_gain;  // ... and the best of the other features
    double least_hessian = std::numeric_limits<double>::infinity();  // of the common code's child
  };
  std::array<Group, n_groups> valid, waiting;

  // `score` of a candidate with so much hessian in the common code's child.
  static void note(std::array<Group, n_groups>& groups, std::uint32_t feature,
                   const NodeScale& scale, double score, double hessian);
  void add(const GroupSurvey& other);
};

// The rows next to a split: any other candidate of its feature sends at least so many rows to the
// other child, unless a row is added with a code between `below` and `above`.
struct Margin {
  std::int64_t rows = 1;
  Code below = 0, above = 0xffff;
};

}  // namespace graftboost
