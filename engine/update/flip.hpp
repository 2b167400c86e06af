// Splits that are no longer the best of their nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sums.hpp"
#include "core/types.hpp"
#include "model/tree.hpp"

namespace graftboost {

// A touched node whose best candidate is another one than its split. Had the changed rows always
// been as they are now, training would have chosen that candidate.
struct Flip {
  NodeIndex node = no_node;
  bool splits = true;    // whether the node can be split at all
  bool is_void = false;  // whether the split leaves a child too little: it must not stay
  Split best;
  Totals left;  // of `best`
  // A better threshold of the split's own feature that moves few rows, and how many; 0 if there is
  // none.
  Split shifted;
  std::int64_t n_moving = 0;
  double weight = 0;
  double regret = 0;  // infinite if the split is void
  // Of deferred rows, the flip is settled if less than this is tolerated: by regrowing the node, or
  // by shifting its threshold, which takes less work. The regret relative to that work, times the
  // squared weight: regrowing large nodes takes much work, and little is left of their differences.
  double regrown_below = 0, shifted_below = 0;
};

// What is done about a flip. Regrowing its node also settles all flips below.
enum class FlipAction : std::uint8_t { none, shift, regrow };

// The flips of one tree, in the order of their nodes: parents precede children.
struct TreeFlips {
  std::vector<Flip> flips;
  std::vector<FlipAction> actions;
};

// Whether each flip of a tree is settled: by its own action, or because a node above is regrown.
std::vector<bool> find_settled(const Tree& tree, const TreeFlips& flips);

// Whether a node is below another one, or the same.
bool is_under(const Tree& tree, NodeIndex node, NodeIndex top);

// How much of a difference between two splits of a node is left when training has gone on, relative
// to one just above the leaves: the splits below adapt.
double flip_weight(const Tree& tree, NodeIndex node);

}  // namespace graftboost
