// Training all trees of a model again, on the rows it holds.
#pragma once

#include <functional>

#include "model/model_state.hpp"

namespace graftboost {

// Trains the same model that a fit to its rows with these bins gives. The new model is trained
// aside, on a copy of the rows that `change` may alter first, and then replaces the present one: if
// anything throws, nothing has changed.
void refit(ModelState& model, int n_threads, const std::function<void(ModelState&)>& change = {});

}  // namespace graftboost
