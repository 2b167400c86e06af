#include "model/tree.hpp"

#include <algorithm>

namespace graftboost {

void DeferredSums::add(std::int64_t recorded_gradient, std::int64_t last_gradient) {
  n = std::min(n + 1, most);
  recorded = std::min(recorded + std::min(recorded_gradient, most), most);
  last = std::min(last + std::min(last_gradient, most), most);
}

void Tree::index_leaves() {
  leaves.assign(static_cast<std::size_t>(n_leaves()), no_node);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].is_leaf()) continue;
    const auto leaf = static_cast<std::size_t>(nodes[i].leaf);
    if (leaf >= leaves.size()) leaves.resize(leaf + 1, no_node);
    leaves[leaf] = static_cast<NodeIndex>(i);
  }
}

std::vector<double> Tree::leaf_values() const {
  std::vector<double> values;
  for (const NodeIndex i : leaves) values.push_back(i == no_node ? 0 : (*this)[i].value);
  return values;
}

std::int32_t Tree::n_leaves_under(NodeIndex top) const {
  const Node& node = (*this)[top];
  return node.is_leaf() ? 1 : n_leaves_under(node.left) + n_leaves_under(node.right);
}

namespace {

void collect_leaf_ids(const Tree& tree, NodeIndex i, std::vector<std::int32_t>& ids) {
  if (tree[i].is_leaf()) {
    ids.push_back(tree[i].leaf);
    return;
  }
  collect_leaf_ids(tree, tree[i].left, ids);
  collect_leaf_ids(tree, tree[i].right, ids);
}

}  // namespace

std::vector<std::int32_t> Tree::leaf_ids_under(NodeIndex top) const {
  std::vector<std::int32_t> ids;
  collect_leaf_ids(*this, top, ids);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace graftboost
