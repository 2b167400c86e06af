// What the row side answers to an update: histograms of nodes, and the rows that shifts move.
#pragma once

#include <span>
#include <vector>

#include "update/tree_check.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// The histograms of nodes, over all shards, with all cells of the layout.
template <class Sums>
std::vector<Histogram<Sums>> count_nodes(const UpdateContext& context, std::size_t t,
                                         std::span<const NodeIndex> nodes, Array<Slot>& slots);

// Answers the requests of a check that waits. `slots` is memory to work in.
template <class Sums>
void answer(const UpdateContext& context, TreeCheck<Sums>& check, Array<Slot>& slots);

// The histograms of nodes, of the rows held before the update; common cells are not filled in.
template <class Sums>
std::vector<Histogram<Sums>> count_before(const ModelState& model, std::size_t t,
                                          std::span<const NodeIndex> nodes);
// Counts the histograms of a tree that are cached, from the rows held before the update.
template <class Sums>
void recount_tree(ModelState& model, std::size_t t, const GainParams& gain);

}  // namespace graftboost
