#include "update/tree_check.hpp"

namespace graftboost {

template <class Sums>
void TreeCheck<Sums>::reset(std::size_t tree, std::size_t n_nodes, bool grouped) {
  t = tree;
  is_survey = false;
  touched.reset(n_nodes, grouped);
  counted_nodes.assign(n_nodes, false);
  has_moved.assign(n_nodes, false);
  selected = nullptr;
  selected_at.clear();
  counts = {};
  largest_change = change_in_survey = 0;
  to_count.clear();
  shifts.clear();
  waiting.clear();
  counted.clear();
  moved.clear();
  moved_features.clear();
  flips.clear();
  failed.clear();
  order_changed = has_shifted = false;
}

template struct TreeCheck<PackedSums>;
template struct TreeCheck<WideSums>;

}  // namespace graftboost
