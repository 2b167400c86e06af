// Nodes that failed are regrown, and the order of growth is replayed.
#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "checking.hpp"
#include "grafting.hpp"
#include "scores.hpp"
#include "tree_work.hpp"

namespace graftboost {

// Needs the scores that the trees before give, so these are to be mended first. One mender is not for
// two threads at once.
template <class Sums>
class TreeMender : public TreeWork<Sums> {
  using Base = TreeWork<Sums>;
  using Base::at, Base::count_again, Base::forest_, Base::growing_, Base::kept, Base::kept_,
      Base::layout, Base::leaf_ids_under, Base::look_at, Base::node, Base::present_gain,
      Base::rows_in, Base::set_value, Base::sibling, Base::state_, Base::t_, Base::tree_,
      Base::watch;
  using typename Base::Reached;

 public:
  using Base::counts;

  TreeMender(Forest& forest, const Change& change, const ToleranceRule& rule, ScoreKeeper& scores,
             int n_threads)
      : Base(forest, change, rule),
        scores_(scores),
        grower_(forest.rows, forest.loss, growing_, n_threads) {}

  void mend(std::size_t t, const std::vector<NodeIndex>& failed) {
    look_at(t);
    // All histograms first: to regrow one node changes those above it, from which others follow.
    std::vector<Histogram<Sums>> before;
    for (const NodeIndex i : failed) before.push_back(histogram_of(i));
    std::vector<Graft<Sums>> grafts;
    for (std::size_t j = 0; j < failed.size(); ++j) {
      const auto n_leaves = static_cast<int>(leaf_ids_under(failed[j]).size());
      grafts.push_back(regrow(failed[j], before[j], n_leaves, {}));
    }
    if (!grafts.empty()) join(std::move(grafts));
    for (int turn = 0; turn < growing_.max_leaf_nodes; ++turn) {
      const auto swap = this->find_swap();
      if (swap.leaf == no_node) return;
      swap_growth(swap.leaf, swap.split);
    }
  }

 private:
  // --- regrowing -------------------------------------------------------------------------------

  // Follows from the nearest histogram above that is kept, less those of siblings on the way down.
  Histogram<Sums> histogram_of(NodeIndex i) {
    if (!kept(i).empty()) return kept(i);
    if (kept(sibling(i)).empty()) return count_again(i);
    Histogram<Sums> histogram = histogram_of(node(i).parent);
    const Histogram<Sums>& other = kept(sibling(i));
    for (std::size_t c = 0; c < histogram.size(); ++c) histogram[c] -= other[c];
    return histogram;
  }

  void record_afresh(std::span<const Slot> slots) {
    const std::vector<Array<double>> scores = scores_.gather(slots);
    counts.work += work_of::gathered_value * static_cast<double>(scores_.n_looked_up(slots.size()));
    Array<std::int32_t> targets(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) targets[i] = forest_.rows.target[slots[i]];
    std::vector<Array<Gradient>> gradients(scores.size());
    std::vector<const double*> from;
    std::vector<Gradient*> to;
    for (std::size_t k = 0; k < scores.size(); ++k) {
      gradients[k].resize(slots.size());
      from.push_back(scores[k].data());
      to.push_back(gradients[k].data());
    }
    forest_.loss.record({targets.data(), targets.size()}, from, to, 0, slots.size());
    const Array<Gradient>& own = gradients[t_ % scores.size()];
    for (std::size_t i = 0; i < slots.size(); ++i) state_->recorded[slots[i]] = own[i];
  }

  // Regrows what is under a node, to so many leaves, from fresh gradients of its rows. What changes in
  // its sums changes in those of its ancestors. `spare` are leaf ids that may be used besides its own.
  Graft<Sums> regrow(NodeIndex top, const Histogram<Sums>& before, int n_leaves,
                     std::vector<std::int32_t> spare) {
    std::vector<std::int32_t> leaves = leaf_ids_under(top);
    const Reached reached = rows_in(leaves);
    leaves.insert(leaves.end(), spare.begin(), spare.end());
    record_afresh(reached.inside);
    std::copy(reached.inside.begin(), reached.inside.end(), grower_.start(reached.inside.size()));
    Graft<Sums> result;
    result.node = top;
    result.leaf_ids = std::move(leaves);
    result.subtree = grower_.grow(forest_.contributions_to(t_), n_leaves);
    place_rows(result, reached.outside);
    result.kept = grower_.take_kept_sums();
    result.watches = grower_.take_watches();
    ++counts.nodes_retrained;
    counts.rows_retrained += static_cast<std::int64_t>(reached.inside.size());
    counts.work += work_to_grow(result.subtree, 0, layout());
    book_difference(top, before, result);
    return result;
  }

  void place_rows(const Graft<Sums>& g, std::span<const Slot> outside) {
    state_->leaf_ids.visit([&](auto* leaf_ids) {
      using LeafId = std::remove_reference_t<decltype(*leaf_ids)>;
      for (std::size_t i = 0; i < g.subtree.nodes.size(); ++i) {
        const Node& leaf = g.subtree.nodes[i];
        if (!leaf.is_leaf()) continue;
        const auto id = static_cast<LeafId>(g.leaf_ids[at(leaf.leaf)]);
        for (const Slot row : grower_.slots_of(static_cast<NodeIndex>(i))) leaf_ids[row] = id;
      }
      for (const Slot row : outside) {
        const NodeIndex i =
            g.subtree.route([&](std::uint32_t f) { return forest_.rows.code(row, f); });
        leaf_ids[row] = static_cast<LeafId>(g.leaf_ids[at(g.subtree.nodes[at(i)].leaf)]);
      }
    });
  }

  void book_difference(NodeIndex top, const Histogram<Sums>& before, const Graft<Sums>& g) {
    const Totals difference = g.subtree.nodes[0].sums - node(top).sums;
    const Histogram<Sums>& after = g.kept[0];
    for (NodeIndex i = node(top).parent; i != no_node; i = node(i).parent) {
      node(i).sums += difference;
      watch(i).forget();
      Histogram<Sums>& histogram = kept(i);
      if (histogram.empty()) continue;
      counts.work += work_of::judged_cell * static_cast<double>(histogram.size());
      for (std::size_t c = 0; c < histogram.size(); ++c)
        histogram[c] += after[c], histogram[c] -= before[c];
    }
  }

  // Grafts, and brings gains and values up to date: they follow from the sums.
  void join(std::vector<Graft<Sums>> grafts) {
    graft(*tree_, *kept_, state_->watches, std::move(grafts));
    for (Node& n : tree_->nodes) {
      if (!n.is_leaf()) n.gain = present_gain(n);
      set_value(n);
    }
  }

  // --- the order of growth -----------------------------------------------------------------------

  // Undoes a split, if one is given, and splits a leaf in its place.
  void swap_growth(NodeIndex leaf, NodeIndex split) {
    const Histogram<Sums> before = histogram_of(leaf);
    std::vector<Graft<Sums>> grafts;
    std::vector<std::int32_t> spare;
    if (split != no_node) {
      const std::int32_t stays = node(node(split).left).leaf, goes = node(node(split).right).leaf;
      state_->leaf_ids.visit([&](auto* ids) {
        using LeafId = std::remove_reference_t<decltype(*ids)>;
        for (std::size_t r = 0; r < forest_.rows.size(); ++r) {
          if (ids[r] == static_cast<LeafId>(goes)) ids[r] = static_cast<LeafId>(stays);
        }
      });
      Graft<Sums> undone;
      undone.node = split;
      undone.leaf_ids = {stays};
      grafts.push_back(std::move(undone));
      spare = {goes};
    } else {
      spare = {free_leaf_id()};
    }
    grafts.push_back(regrow(leaf, before, 2, std::move(spare)));
    join(std::move(grafts));
  }

  std::int32_t free_leaf_id() {
    const std::vector<std::int32_t> used = leaf_ids_under(0);
    std::int32_t id = 0;
    while (std::binary_search(used.begin(), used.end(), id)) ++id;
    return id;
  }

  ScoreKeeper& scores_;
  Grower<Sums> grower_;
};

}  // namespace graftboost
