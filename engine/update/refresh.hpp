// Leaf values recomputed on the present rows, with the structure kept.
#pragma once

#include "model/model_state.hpp"

namespace graftboost {

// Every row records its gradients afresh, and nodes get the sums and values that follow. The
// structure stays. Histograms are dropped; the next update that needs them counts them again. Those
// that keep the structure do not need them.
void refresh(ModelState& model, int n_threads);

}  // namespace graftboost
