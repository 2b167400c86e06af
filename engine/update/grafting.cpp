#include "update/grafting.hpp"

#include <algorithm>
#include <utility>

namespace graftboost {
namespace {

template <class Sums>
class Joiner {
 public:
  Joiner(Tree& tree, KeptSums<Sums>& kept, std::vector<Watch>& watches,
         std::vector<Graft<Sums>>& grafts)
      : tree_(tree),
        kept_(kept),
        watches_(watches),
        grafts_(grafts),
        graft_of_(tree.nodes.size(), nullptr) {
    for (auto& g : grafts_) graft_of_[static_cast<std::size_t>(g.node)] = &g;
  }

  Replaced<Sums> join() {
    copy_old(0, no_node);
    joined_.index_leaves();
    tree_ = std::move(joined_);
    kept_.swap(joined_kept_);
    watches_.swap(joined_watches_);
    return {std::move(joined_kept_), std::move(joined_watches_)};
  }

 private:
  NodeIndex append(Node node, NodeSums<Sums>& sums, Watch& watch, NodeIndex parent) {
    node.parent = parent;
    joined_.nodes.push_back(node);
    joined_kept_.push_back(std::move(sums));
    joined_watches_.push_back(std::move(watch));
    return static_cast<NodeIndex>(joined_.nodes.size()) - 1;
  }

  NodeIndex copy_old(NodeIndex i, NodeIndex parent) {
    const auto from = static_cast<std::size_t>(i);
    const Node node = tree_.nodes[from];
    Graft<Sums>* g = graft_of_[from];
    if (g == nullptr) {
      const NodeIndex to = append(node, kept_[from], watches_[from], parent);
      if (node.is_leaf()) return to;
      const NodeIndex left = copy_old(node.left, to);
      return link(to, left, copy_old(node.right, to));
    }
    if (g->subtree.nodes.empty()) {
      Node leaf = node;
      leaf.left = leaf.right = no_node;
      leaf.leaf = g->leaf_ids[0];
      return append(leaf, kept_[from], watches_[from], parent);
    }
    // Whether a node's sums are kept or follow from its sibling's does not change with a graft.
    const bool keeps = i == 0 || kept_[from].kept;
    if (!keeps) g->kept[0] = {};
    return copy_new(*g, 0, parent);
  }

  NodeIndex copy_new(Graft<Sums>& g, NodeIndex i, NodeIndex parent) {
    const auto from = static_cast<std::size_t>(i);
    Node node = g.subtree.nodes[from];
    if (node.is_leaf()) node.leaf = g.leaf_ids[static_cast<std::size_t>(node.leaf)];
    const NodeIndex to = append(node, g.kept[from], g.watches[from], parent);
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
  KeptSums<Sums>& kept_;
  std::vector<Watch>& watches_;
  std::vector<Graft<Sums>>& grafts_;
  std::vector<Graft<Sums>*> graft_of_;
  Tree joined_;
  KeptSums<Sums> joined_kept_;
  std::vector<Watch> joined_watches_;
};

}  // namespace

template <class Sums>
Replaced<Sums> graft(Tree& tree, KeptSums<Sums>& kept, std::vector<Watch>& watches,
                     std::vector<Graft<Sums>> grafts) {
  return Joiner<Sums>(tree, kept, watches, grafts).join();
}

template Replaced<PackedSums> graft(Tree&, KeptSums<PackedSums>&, std::vector<Watch>&,
                                    std::vector<Graft<PackedSums>>);
template Replaced<WideSums> graft(Tree&, KeptSums<WideSums>&, std::vector<Watch>&,
                                  std::vector<Graft<WideSums>>);

}  // namespace graftboost
