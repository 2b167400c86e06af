// The parameters of training that a model keeps for its whole life.
#pragma once

#include <cstdint>

#include "core/types.hpp"
#include "model/subsample.hpp"

namespace graftboost {

struct TrainingParams {
  int n_estimators = 100;
  double learning_rate = 0.1;
  int max_leaf_nodes = 31;
  int min_samples_leaf = 20;
  double min_hessian = 0.1;
  double l2_regularization = 0;
  double subsample = 1;
  std::uint64_t seed = 0;
  bool updatable = true;

  Subsample subsample_of(std::size_t tree) const { return {seed, tree, subsample}; }
  // Whether a row belongs to a tree's subsample.
  bool in_subsample(std::size_t tree, RowId id) const {
    return subsample >= 1 || subsample_of(tree).contains(id);
  }
};

}  // namespace graftboost
