// How far a change of a node's histogram can have moved the sums of its candidates' children.
#pragma once

#include <vector>

#include "data/code_layout.hpp"
#include "model/node_histogram.hpp"
#include "train/gain.hpp"

namespace graftboost {

// Of one feature: no child of a candidate changed its sum of gradients or of hessians by more.
struct FeatureDrift {
  double g = 0, h = 0;
};

// The drift of each feature of a layout if `before`, the sums of some rows of a node, is exchanged
// for `after`, which has the same rows and cells. Infinite for sparse features.
template <class Sums>
std::vector<FeatureDrift> drift_between(const CodeLayout& layout, const GainParams& params,
                                        const NodeHistogram<Sums>& before,
                                        const NodeHistogram<Sums>& after, const Totals& difference);
// The same if rows with this histogram and these sums enter or leave a node.
template <class Sums>
std::vector<FeatureDrift> drift_of(const CodeLayout& layout, const GainParams& params,
                                   const NodeHistogram<Sums>& rows, const Totals& totals);

}  // namespace graftboost
