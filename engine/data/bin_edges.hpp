// Where a numeric column is divided into bins.
#pragma once

#include <cstddef>
#include <vector>

#include "data/bins.hpp"
#include "data/distribution.hpp"

namespace graftboost {

// The boundaries of a feature that become split candidates. A boundary b lies between values[b] and
// values[b + 1] of the distribution; boundaries ascend. They follow the method and the number of
// bins that the parameters ask for, and are a function of the distribution, the parameters and the
// feature.
std::vector<std::size_t> choose_boundaries(const Distribution& distribution,
                                           const BinningParams& params, std::size_t feature);

// The shortest decimal in the middle half of (low, high); `low` itself if the two are neighbours.
double edge_between(double low, double high);

}  // namespace graftboost
