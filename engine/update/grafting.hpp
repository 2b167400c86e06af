// New subtrees replace old ones.
#pragma once

#include <vector>

#include "model/node_table.hpp"

namespace graftboost {

// What replaces the nodes below `node`. An empty subtree makes it a leaf with leaf id leaf_ids[0].
template <class Sums>
struct Graft {
  NodeIndex node = 0;
  Tree subtree;
  TreeHistograms<Sums> histograms;     // one per node of the subtree, the root's for `node` itself
  std::vector<GainBounds> bounds;      // likewise
  std::vector<std::int32_t> leaf_ids;  // in the tree, of the subtree's leaves 0, 1, ...
};

// The former histograms and bounds: an element for each former node, with nothing in them.
template <class Sums>
struct Replaced {
  TreeHistograms<Sums> histograms;
  std::vector<GainBounds> bounds;
};

// Puts all grafts, whose nodes lie in disjoint subtrees, into the tree. Nodes are renumbered from
// the root, left before right; histograms and bounds move along with their nodes.
template <class Sums>
Replaced<Sums> graft(Tree& tree, TreeHistograms<Sums>& histograms, std::vector<GainBounds>& bounds,
                     std::vector<Graft<Sums>> grafts);

}  // namespace graftboost
