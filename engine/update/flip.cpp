#include "update/flip.hpp"

#include <cmath>

namespace graftboost {

double flip_weight(const Tree& tree, NodeIndex node) {
  const auto n_leaves = static_cast<double>(tree.leaf_ids_under(node).size());
  return 1 / std::cbrt(n_leaves - 1);
}

}  // namespace graftboost
