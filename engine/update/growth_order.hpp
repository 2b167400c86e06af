// The order in which best-first growth splits nodes, replayed from the gains.
//
// Growth reaches a node when all splits on its path have come up: its key is the least gain on the
// path. After rows changed, a leaf may have a larger key than an existing split. That split is then
// undone and the leaf is split instead, so the number of leaves stays the same.
#pragma once

#include <cstdint>
#include <vector>

#include "model/node_table.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// A leaf to split, and the split to undo for it. While a tree has fewer leaves than allowed, no
// split need be undone.
struct GrowthSwap {
  NodeIndex leaf = no_node, split = no_node;
};

// The swap in a tree that the update rule does not tolerate to leave undone, if there is one. Sets
// the tree's order_slack.
GrowthSwap find_growth_swap(const UpdateContext& context, std::size_t t);

}  // namespace graftboost
