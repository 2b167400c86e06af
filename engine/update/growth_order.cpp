#include "update/growth_order.hpp"

#include <algorithm>
#include <cmath>

namespace graftboost {
namespace {

std::vector<double> growth_keys(const Tree& tree) {
  std::vector<double> keys(tree.nodes.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Node& node = tree.nodes[i];
    keys[i] = node.parent == no_node
                  ? node.gain
                  : std::min(node.gain, keys[static_cast<std::size_t>(node.parent)]);
  }
  return keys;
}

// Whether growth could have ended before this split.
bool is_last(const Tree& tree, const Node& node) {
  return !node.is_leaf() && tree[node.left].is_leaf() && tree[node.right].is_leaf();
}

double order_slack(const Tree& tree, const std::vector<double>& keys) {
  double best_leaf = no_gain, least_split = -no_gain;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (tree.nodes[i].is_leaf()) {
      best_leaf = std::max(best_leaf, keys[i]);
    } else if (is_last(tree, tree.nodes[i])) {
      least_split = std::min(least_split, keys[i]);
    }
  }
  return least_split - best_leaf;
}

bool is_tolerated(const UpdateContext& context, std::size_t t, const std::vector<double>& keys,
                  const GrowthSwap& swap, double best, double present) {
  const UpdateRule& rule = context.rule;
  const Tree& tree = context.model.nodes.tree(t);
  if (rule.keeps_structure()) return true;
  if (rule.kind != UpdateRule::Kind::rank) {
    const std::int64_t n_split = swap.split == no_node ? 0 : tree[swap.split].sums.n;
    return context.tolerates(t, best, present, tree[swap.leaf].sums.n + n_split);
  }
  std::int64_t n_ahead = 0;
  for (std::size_t i = 0; i < keys.size(); ++i)
    n_ahead += tree.nodes[i].is_leaf() && keys[i] > present;
  return static_cast<double>(n_ahead) <=
         std::ceil(rule.tolerance * context.model.params.max_leaf_nodes);
}

}  // namespace

GrowthSwap find_growth_swap(const UpdateContext& context, std::size_t t) {
  TreeNodes& nodes = context.model.nodes[t];
  const Tree& tree = nodes.tree;
  const std::vector<double> keys = growth_keys(tree);
  const auto key = [&](NodeIndex i) { return keys[static_cast<std::size_t>(i)]; };
  const bool full = tree.n_leaves() >= context.model.params.max_leaf_nodes;
  nodes.order_slack = full ? order_slack(tree, keys) : no_gain;
  GrowthSwap found;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!tree.nodes[i].is_leaf() || !(tree.nodes[i].gain > context.gain.least_gain)) continue;
    if (found.leaf == no_node || keys[i] > key(found.leaf)) found.leaf = static_cast<NodeIndex>(i);
  }
  if (found.leaf == no_node) return {};
  for (std::size_t i = 0; full && i < keys.size(); ++i) {
    const Node& node = tree.nodes[i];
    if (!is_last(tree, node) || node.left == found.leaf || node.right == found.leaf) continue;
    if (found.split == no_node || keys[i] < key(found.split))
      found.split = static_cast<NodeIndex>(i);
  }
  if (full && found.split == no_node) return {};
  const double best = key(found.leaf), present = full ? key(found.split) : 0;
  if (!(best > present) || is_tolerated(context, t, keys, found, best, present)) return {};
  return found;
}

}  // namespace graftboost
