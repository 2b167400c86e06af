// Evaluation of a node's candidates that skips those whose gain bounds rule them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/tree.hpp"
#include "train/split_evaluation.hpp"
#include "update/gain_bounds.hpp"
#include "update/path_histogram.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// A node on the path from the root, and what evaluating it needs. Borrowed.
struct NodeOnPath {
  const Node& node;
  GainBounds& bounds;
  std::size_t depth;  // of its histogram
  // If bounds are grouped: the features of the rows that changed.
  std::span<const WipedVector<std::uint32_t>* const> changed;
};

// Evaluates candidates of nodes, and tells their gain bounds what it found. Borrows the histograms
// of the path, which must be available at the node's depth.
template <class Sums>
class BoundedEvaluation {
 public:
  BoundedEvaluation(const UpdateContext& context, PathHistogram<Sums>& path);

  // Whether the bounds of nodes are grouped; see GainBounds.
  bool grouped() const { return grouped_; }

  // The best candidate of all features. Units whose bound is below the best so far are skipped.
  BestSplit find_best(const NodeOnPath& at);

  // The best candidate of one feature, by its number in the layout.
  BestSplit evaluate_feature(const NodeOnPath& at, std::uint32_t number);
  // The best candidate of the features that have no bounds: if bounds are grouped, those that most
  // rows have.
  BestSplit evaluate_unbounded(const NodeOnPath& at);
  // If bounds are grouped: evaluates the features of the rows that changed, so that bounds hold
  // again.
  void evaluate_changed(const NodeOnPath& at);
  // Evaluates all features that share a bound, and replaces `best` if one of them is better.
  void evaluate_unit(const NodeOnPath& at, std::size_t unit, BestSplit& best);

  // Calls use(unit) for each unit, in the order of cells, until it returns false. The unit that is
  // only the feature `but` is left out.
  template <class Use>
  void for_each_unit(std::uint32_t but, Use&& use) const {
    for (std::size_t u = 0; u < n_units_; ++u) {
      const std::size_t unit = grouped_ ? u : layout_.by_offset()[u];
      if (!grouped_ && unit == but) continue;
      if (!use(unit)) return;
    }
  }

 private:
  // `surveys`: the feature's bound becomes that of the present sums. A bound that is not used need
  // not be tight.
  BestSplit evaluate(const NodeOnPath& at, std::uint32_t number, bool surveys);

  const GainParams& gain_;
  const CodeLayout& layout_;
  PathHistogram<Sums>& path_;
  bool grouped_;
  std::size_t n_units_;
  std::vector<std::uint32_t> numbers_;  // of the features of changed rows
};

}  // namespace graftboost
