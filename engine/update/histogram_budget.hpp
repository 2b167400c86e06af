// Which histograms are worth their memory.
#pragma once

#include "model/model_state.hpp"

namespace graftboost {

// Drops cached histograms of a tree that exceed the tree's share of the memory for them: those of
// nodes with few rows first, which are the quickest to count again. The model does not depend on
// it.
template <class Sums>
void trim_histograms(const ModelState& model, const Tree& tree, TreeHistograms<Sums>& histograms);

}  // namespace graftboost
