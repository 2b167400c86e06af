// The boosting loop.
#pragma once

#include "model/model.hpp"

namespace graftboost {

// RowTable encoded for validation, and their scores so far.
struct Validation {
  RowTable rows;
  std::vector<double> weight;               // empty: all one
  std::vector<std::vector<double>> scores;  // one array per tree of an iteration
};

// How the trees of a forest are grown.
GrowingParams growing_params(const Forest& forest);

// Grows the trees of a forest whose rows, loss and parameters are set.
void train(Forest& forest, Validation* validation, const Stopping& stopping,
           const OnIteration& on_iteration, int n_threads);

}  // namespace graftboost
