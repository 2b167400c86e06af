// What the row side answers to an update: histograms of nodes, and the rows that shifts move.
#pragma once

#include "update/tree_check.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// Adds the rows of a node, over all shards, to a histogram of all cells of the layout.
template <class Sums>
Histogram<Sums> count_node(const UpdateContext& context, std::size_t t, NodeIndex node,
                           Array<Slot>& slots);

// Answers the requests of a check that waits. `slots` is memory to work in.
template <class Sums>
void answer(const UpdateContext& context, TreeCheck<Sums>& check, Array<Slot>& slots);

// Counts the histograms of a tree that are cached, from the rows held before the update.
template <class Sums>
void recount_tree(ModelState& model, std::size_t t, const GainParams& gain);

}  // namespace graftboost
