#include "update/update_cost.hpp"

#include <algorithm>

namespace graftboost {

double ModelCost::of_growing(const Tree& tree, NodeIndex top) const {
  const auto n_rows = [&](NodeIndex i) { return static_cast<double>(tree[i].sums.n); };
  double work = n_rows(top) * (row + cost::recorded_row) + histogram;
  const auto add = [&](auto&& self, NodeIndex i) -> void {
    if (tree[i].is_leaf()) return;
    const NodeIndex left = tree[i].left, right = tree[i].right;
    work += n_rows(i) * cost::partitioned_row + std::min(n_rows(left), n_rows(right)) * row +
            2 * histogram;
    self(self, left);
    self(self, right);
  };
  add(add, top);
  return work;
}

}  // namespace graftboost
