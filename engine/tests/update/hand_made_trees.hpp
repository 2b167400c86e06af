// Trees without rows.
#pragma once

#include <cstdint>
#include <vector>

#include "model/tree.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost::testing {

// A tree of random shape. Nodes are numbered as if it had been grown; gains are distinct.
inline Tree random_tree(std::int32_t n_leaves, Random& random) {
  Tree tree;
  tree.nodes.emplace_back();
  tree.nodes[0].leaf = 0;
  while (tree.n_leaves() < n_leaves) {
    auto parent = static_cast<NodeIndex>(random.below(tree.nodes.size()));
    if (!tree[parent].is_leaf()) continue;
    const std::int32_t new_leaf = tree.n_leaves();
    const auto left = static_cast<NodeIndex>(tree.nodes.size());
    tree.nodes.resize(tree.nodes.size() + 2);
    tree[parent].left = left;
    tree[parent].right = left + 1;
    tree[left].parent = tree[left + 1].parent = parent;
    tree[left].leaf = std::exchange(tree[parent].leaf, -1);
    tree[left + 1].leaf = new_leaf;
  }
  for (Node& node : tree.nodes) {
    node.gain = random.fraction() * 10 + 0.001;
    node.value = random.normal();
    node.sums.n = static_cast<std::int64_t>(10 + random.below(90));
    node.split.feature = static_cast<std::uint32_t>(random.below(1000));
  }
  tree.index_leaves();
  return tree;
}

}  // namespace graftboost::testing
