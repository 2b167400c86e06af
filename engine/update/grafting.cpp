#include "update/grafting.hpp"

#include <algorithm>
#include <utility>

namespace graftboost {
namespace {

template <class Sums>
class Joiner {
 public:
  Joiner(Tree& tree, TreeHistograms<Sums>& histograms, std::vector<GainBounds>& bounds,
         std::vector<Graft<Sums>>& grafts)
      : tree_(tree),
        histograms_(histograms),
        bounds_(bounds),
        grafts_(grafts),
        graft_of_(tree.nodes.size(), nullptr) {
    for (auto& g : grafts_) graft_of_[static_cast<std::size_t>(g.node)] = &g;
  }

  Replaced<Sums> join() {
    copy_old(0, no_node);
    joined_.index_leaves();
    tree_ = std::move(joined_);
    histograms_.swap(joined_histograms_);
    bounds_.swap(joined_bounds_);
    return {std::move(joined_histograms_), std::move(joined_bounds_)};
  }

 private:
  NodeIndex append(Node node, NodeHistogram<Sums>& sums, GainBounds& bound, NodeIndex parent) {
    node.parent = parent;
    joined_.nodes.push_back(node);
    joined_histograms_.push_back(std::move(sums));
    joined_bounds_.push_back(std::move(bound));
    return static_cast<NodeIndex>(joined_.nodes.size()) - 1;
  }

  NodeIndex copy_old(NodeIndex i, NodeIndex parent) {
    const auto from = static_cast<std::size_t>(i);
    const Node node = tree_.nodes[from];
    Graft<Sums>* g = graft_of_[from];
    if (g == nullptr) {
      const NodeIndex to = append(node, histograms_[from], bounds_[from], parent);
      if (node.is_leaf()) return to;
      const NodeIndex left = copy_old(node.left, to);
      return link(to, left, copy_old(node.right, to));
    }
    if (g->subtree.nodes.empty()) {
      Node leaf = node;
      leaf.left = leaf.right = no_node;
      leaf.leaf = g->leaf_ids[0];
      return append(leaf, histograms_[from], bounds_[from], parent);
    }
    // A graft does not change whether the histogram of a node is cached or that of its sibling.
    const bool keeps = i == 0 || histograms_[from].cached;
    if (!keeps) g->histograms[0] = {};
    return copy_new(*g, 0, parent);
  }

  NodeIndex copy_new(Graft<Sums>& g, NodeIndex i, NodeIndex parent) {
    const auto from = static_cast<std::size_t>(i);
    Node node = g.subtree.nodes[from];
    if (node.is_leaf()) node.leaf = g.leaf_ids[static_cast<std::size_t>(node.leaf)];
    const NodeIndex to = append(node, g.histograms[from], g.bounds[from], parent);
    if (node.is_leaf()) return to;
    const NodeIndex left = copy_new(g, node.left, to);
    return link(to, left, copy_new(g, node.right, to));
  }

  NodeIndex link(NodeIndex parent, NodeIndex left, NodeIndex right) {
    joined_.nodes[static_cast<std::size_t>(parent)].left = left;
    joined_.nodes[static_cast<std::size_t>(parent)].right = right;
    return parent;
  }

  Tree& tree_;
  TreeHistograms<Sums>& histograms_;
  std::vector<GainBounds>& bounds_;
  std::vector<Graft<Sums>>& grafts_;
  std::vector<Graft<Sums>*> graft_of_;
  Tree joined_;
  TreeHistograms<Sums> joined_histograms_;
  std::vector<GainBounds> joined_bounds_;
};

}  // namespace

template <class Sums>
Replaced<Sums> graft(Tree& tree, TreeHistograms<Sums>& histograms, std::vector<GainBounds>& bounds,
                     std::vector<Graft<Sums>> grafts) {
  return Joiner<Sums>(tree, histograms, bounds, grafts).join();
}

template Replaced<PackedSums> graft(Tree&, TreeHistograms<PackedSums>&, std::vector<GainBounds>&,
                                    std::vector<Graft<PackedSums>>);
template Replaced<WideSums> graft(Tree&, TreeHistograms<WideSums>&, std::vector<GainBounds>&,
                                  std::vector<Graft<WideSums>>);

}  // namespace graftboost
