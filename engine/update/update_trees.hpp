// The trees of a model are updated in place: booked, checked, regrown.
#pragma once

#include "update/changed_rows.hpp"
#include "update/update_context.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// Takes the removed rows out of every tree and puts the added rows in. The rows of the shards stay
// where they are. False if a refit is cheaper: then nodes and rows are to be restored.
bool update_trees(const UpdateContext& context, ChangedRows& changed, UpdateCounts& counts);

// Recomputes the histograms and gains that a refresh dropped, in all trees.
void restore_histograms(ModelState& model, int n_threads);

}  // namespace graftboost
