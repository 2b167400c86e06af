// Histograms and gains that a refresh dropped are recomputed.
#pragma once

#include <cstddef>

#include "model/model_state.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// Recomputes the histograms and gains of a tree from the rows held before the update. Different
// threads may restore different trees.
void restore_tree(const UpdateContext& context, std::size_t t);

// Does so for all trees that lack them.
void restore_histograms(ModelState& model, int n_threads);

}  // namespace graftboost
