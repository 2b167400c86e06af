#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/check.hpp"
#include "tests/update/hand_made_trees.hpp"
#include "update/grafting.hpp"

namespace graftboost {
namespace {

using testing::Random;
using testing::random_tree;

// Histograms and bounds that can be recognised: a single plain cell holds a number of the node, and
// the margin of the bounds is the same number.
template <class Sums>
NodeHistogram<Sums> marked_histogram(std::int64_t mark) {
  NodeHistogram<Sums> histogram;
  histogram.cached = true;
  histogram.plain.push_back(Sums(Totals{mark, 0, 0}));
  return histogram;
}
template <class Sums>
std::int64_t mark_of(const NodeHistogram<Sums>& histogram) {
  return histogram.cached ? Totals(histogram.plain[0]).g : 0;
}
GainBounds marked_bounds(std::int64_t mark) {
  GainBounds bounds;
  bounds.set_margin({mark, 0, 0});
  return bounds;
}

struct Parts {
  Tree tree;
  TreeHistograms<PackedSums> histograms;
  std::vector<GainBounds> bounds;

  // Marks are also the number of rows, so that a node can be recognised.
  Parts(std::int32_t n_leaves, std::int64_t first_mark, Random& random)
      : tree(random_tree(n_leaves, random)) {
    for (Node& node : tree.nodes) {
      const auto mark = first_mark + static_cast<std::int64_t>(histograms.size());
      node.sums.n = mark;
      histograms.push_back(random.chance(0.6) ? marked_histogram<PackedSums>(mark)
                                              : NodeHistogram<PackedSums>());
      bounds.push_back(marked_bounds(mark));
    }
  }
};

// Grafts at nodes of disjoint subtrees.
std::vector<NodeIndex> disjoint_nodes(const Tree& tree, Random& random) {
  std::vector<NodeIndex> chosen;
  const auto visit = [&](auto&& self, NodeIndex i) -> void {
    if (random.chance(0.35)) return chosen.push_back(i);
    if (tree[i].is_leaf()) return;
    self(self, tree[i].left);
    self(self, tree[i].right);
  };
  visit(visit, 0);
  return chosen;
}

// Follows the old tree, or a subtree from where it was grafted in, and compares node by node.
class Comparison {
 public:
  Comparison(const Tree& joined, const TreeHistograms<PackedSums>& histograms,
             const std::vector<GainBounds>& bounds)
      : joined_(joined), histograms_(histograms), bounds_(bounds) {}

  std::vector<const Graft<PackedSums>*> grafts;  // as they were before grafting
  std::vector<std::vector<std::int64_t>> graft_marks;
  std::size_t n_compared = 0;

  void old(const Tree& tree, const std::vector<std::int64_t>& marks, NodeIndex i, NodeIndex now,
           NodeIndex parent) {
    for (std::size_t k = 0; k < grafts.size(); ++k) {
      if (grafts[k]->node != i) continue;
      if (grafts[k]->subtree.nodes.empty()) {
        compare(tree[i], marks[static_cast<std::size_t>(i)], now, parent);
        CHECK(joined_[now].is_leaf());
        CHECK_EQ(joined_[now].leaf, grafts[k]->leaf_ids[0]);
        return;
      }
      // Whether the histogram of the grafted node is cached does not change with a graft.
      const bool was_cached = i == 0 || marks[static_cast<std::size_t>(i)] != 0;
      return grafted(k, 0, now, parent, was_cached);
    }
    compare(tree[i], marks[static_cast<std::size_t>(i)], now, parent);
    CHECK_EQ(joined_[now].leaf, tree[i].leaf);
    CHECK_EQ(joined_[now].is_leaf(), tree[i].is_leaf());
    if (tree[i].is_leaf()) return;
    old(tree, marks, tree[i].left, joined_[now].left, now);
    old(tree, marks, tree[i].right, joined_[now].right, now);
  }

 private:
  void grafted(std::size_t k, NodeIndex i, NodeIndex now, NodeIndex parent, bool was_cached) {
    const Tree& tree = grafts[k]->subtree;
    const std::int64_t mark = graft_marks[k][static_cast<std::size_t>(i)];
    compare(tree[i], was_cached ? mark : 0, now, parent);
    CHECK_EQ(joined_[now].is_leaf(), tree[i].is_leaf());
    if (tree[i].is_leaf()) {
      CHECK_EQ(joined_[now].leaf, grafts[k]->leaf_ids[static_cast<std::size_t>(tree[i].leaf)]);
      return;
    }
    grafted(k, tree[i].left, joined_[now].left, now, true);
    grafted(k, tree[i].right, joined_[now].right, now, true);
  }

  void compare(const Node& node, std::int64_t mark, NodeIndex now, NodeIndex parent) {
    ++n_compared;
    const Node& found = joined_[now];
    CHECK(now > parent);
    CHECK_EQ(found.parent, parent);
    CHECK_EQ(found.gain, node.gain);
    CHECK_EQ(found.value, node.value);
    CHECK(found.split == node.split);
    CHECK(found.sums == node.sums);
    CHECK_EQ(mark_of(histograms_[static_cast<std::size_t>(now)]), mark);
    CHECK_EQ(bounds_[static_cast<std::size_t>(now)].rows_to_move(), node.sums.n);
  }

  const Tree& joined_;
  const TreeHistograms<PackedSums>& histograms_;
  const std::vector<GainBounds>& bounds_;
};

TEST_CASE("grafts keep the order of nodes, leaf ids, and histograms and bounds with their nodes") {
  Random random(1);
  std::size_t n_grafts = 0;
  for (int repetition = 0; repetition < 150; ++repetition) {
    Parts parts(static_cast<std::int32_t>(1 + random.below(10)), 1000, random);
    const Tree old = parts.tree;
    std::vector<std::int64_t> marks;
    for (const auto& histogram : parts.histograms) marks.push_back(mark_of(histogram));

    std::vector<Graft<PackedSums>> grafts;
    std::vector<std::vector<std::int64_t>> graft_marks;
    // Subtrees have at most as many leaves as what they replace, and use the same ids.
    for (const NodeIndex node : disjoint_nodes(parts.tree, random)) {
      std::vector<std::int32_t> ids = parts.tree.leaf_ids_under(node);
      const auto n_leaves = static_cast<std::int32_t>(1 + random.below(ids.size()));
      Graft<PackedSums> graft;
      graft.node = node;
      std::vector<std::int64_t> of_graft;
      if (n_leaves > 1) {
        Parts part(n_leaves, 2000 + 100 * static_cast<std::int64_t>(grafts.size()), random);
        graft.subtree = part.tree;
        graft.histograms = std::move(part.histograms);
        graft.bounds = std::move(part.bounds);
        for (const auto& histogram : graft.histograms) of_graft.push_back(mark_of(histogram));
      }
      for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random.below(i)]);
      ids.resize(static_cast<std::size_t>(n_leaves));
      graft.leaf_ids = ids;
      grafts.push_back(std::move(graft));
      graft_marks.push_back(std::move(of_graft));
    }
    n_grafts += grafts.size();
    const std::vector<Graft<PackedSums>> given = grafts;
    const auto replaced =
        graftboost::graft(parts.tree, parts.histograms, parts.bounds, std::move(grafts));

    // The memory of the former nodes comes back, without contents.
    CHECK_EQ(replaced.histograms.size(), old.nodes.size());
    CHECK_EQ(replaced.bounds.size(), old.nodes.size());

    REQUIRE(parts.histograms.size() == parts.tree.nodes.size());
    REQUIRE(parts.bounds.size() == parts.tree.nodes.size());
    Comparison comparison(parts.tree, parts.histograms, parts.bounds);
    for (const auto& graft : given) comparison.grafts.push_back(&graft);
    comparison.graft_marks = graft_marks;
    comparison.old(old, marks, 0, 0, no_node);
    CHECK_EQ(comparison.n_compared, parts.tree.nodes.size());

    // Every leaf is found by its id, which it shares with no other.
    std::size_t n_leaves = 0;
    for (std::size_t id = 0; id < parts.tree.leaves.size(); ++id) {
      const NodeIndex leaf = parts.tree.leaves[id];
      if (leaf == no_node) continue;
      ++n_leaves;
      CHECK_EQ(parts.tree[leaf].leaf, id);
    }
    CHECK_EQ(n_leaves, parts.tree.n_leaves());
  }
  CHECK(n_grafts > 150);
}

}  // namespace
}  // namespace graftboost
