// The boosting loop.
#pragma once

#include <functional>
#include <vector>

#include "model/model_state.hpp"
#include "train/tree_grower.hpp"

namespace graftboost {

// When to stop before n_estimators: after `patience` iterations in which the validation loss did
// not fall by more than `tolerance` below its best. 0 means never. The best iteration is kept.
struct Stopping {
  int patience = 0;
  double tolerance = 0;
};

// Called after every iteration with the number of iterations done and the validation loss (NaN
// without validation rows). True ends training there. If it throws, nothing of the fit remains.
using OnIteration = std::function<bool(int, double)>;

// Encoded validation rows and their scores so far.
struct Validation {
  RowTable rows;
  std::vector<double> weight;               // empty: all one
  std::vector<std::vector<double>> scores;  // one array per tree of an iteration
};

GrowingParams growing_params(const ModelState& model);

// Grows all trees of a model whose rows, loss and parameters are set.
void train(ModelState& model, Validation* validation, const Stopping& stopping,
           const OnIteration& on_iteration, int n_threads);

}  // namespace graftboost
