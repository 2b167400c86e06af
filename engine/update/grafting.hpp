// New subtrees in the place of old ones.
#pragma once

#include <vector>

#include "model/tree.hpp"

namespace graftboost {

// What replaces the nodes under `node`. An empty subtree makes it a leaf with leaf id leaf_ids[0].
template <class Sums>
struct Graft {
  NodeIndex node = 0;
  Tree subtree;
  KeptSums<Sums> kept;                 // one per node of the subtree, the root's for `node` itself
  std::vector<Watch> watches;          // likewise
  std::vector<std::int32_t> leaf_ids;  // of the subtree's leaves 0, 1, ..., in the tree
};

// Puts all the grafts, whose nodes lie in disjoint subtrees, into the tree. Nodes are numbered anew from
// the root, left before right; `kept` and `watches` move along with their nodes. Returns the former
// `kept` and `watches`, with an element for each former node and nothing in them.
template <class Sums>
struct Replaced {
  KeptSums<Sums> kept;
  std::vector<Watch> watches;
};
template <class Sums>
Replaced<Sums> graft(Tree& tree, KeptSums<Sums>& kept, std::vector<Watch>& watches,
                     std::vector<Graft<Sums>> grafts);

}  // namespace graftboost
