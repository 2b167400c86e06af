// Leaf values as the present structure gives them on the present rows.
#pragma once

#include "model/model.hpp"

namespace graftboost {

// Every row records its gradients afresh, and the leaves get the sums and values of these. The
// structure stays. The candidates' sums go: the next update that touches a tree counts them again.
void refresh(Forest& forest, int n_threads);

}  // namespace graftboost
