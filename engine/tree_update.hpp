// One tree takes its changed rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "grafting.hpp"
#include "growing.hpp"
#include "scores.hpp"
#include "training.hpp"
#include "update.hpp"

namespace graftboost {

// Updates trees one after the other; owns the scratch that they share. Not for two threads at once.
//
// A tree goes through four steps: the changed rows are booked along their paths; the touched nodes
// are checked from the root down; those that fail are regrown and grafted in; the order of growth is
// replayed from the gains.
template <class Sums>
class TreeUpdater {
  static constexpr double never = -std::numeric_limits<double>::infinity();

 public:
  TreeUpdater(Forest& forest, const Change& change, const ToleranceRule& rule, ScoreKeeper& scores,
              int n_threads)
      : forest_(forest),
        change_(change),
        rule_(rule),
        scores_(scores),
        growing_(growing_params(forest)),
        n_held_(static_cast<std::int64_t>(forest.rows.size() - change.removed.size())),
        grower_(forest.rows, forest.loss, growing_, n_threads) {}

  void update(std::size_t t) {
    t_ = t;
    tree_ = &forest_.trees[t];
    state_ = &forest_.states[t];
    kept_ = &std::get<KeptSums<Sums>>(state_->sums);
    if (!book_rows()) return;
    ++counts.trees_touched;
    failed_.clear();
    check(0, (*kept_)[0].data(), 0);
    std::vector<Graft<Sums>> grafts;
    for (const Failed& failed : failed_) {
      const auto n_leaves = static_cast<int>(leaf_ids_under(failed.node).size());
      grafts.push_back(regrow(failed.node, failed.histogram, n_leaves, {}));
    }
    if (!grafts.empty()) join(std::move(grafts));
    replay_growth();
    for (Node& node : tree_->nodes) {
      node.value = forest_.loss.leaf_value(node.sums, growing_.learning_rate, growing_.split.l2);
    }
  }

  UpdateCounts counts;

 private:
  struct Failed {
    NodeIndex node;
    Histogram<Sums> histogram;
  };

  static std::size_t at(NodeIndex i) { return static_cast<std::size_t>(i); }
  const CodeLayout& layout() const { return forest_.rows.layout; }
  Node& node(NodeIndex i) { return tree_->nodes[at(i)]; }
  bool may_split(const Node& n) const { return n.sums.n >= 2 * growing_.split.min_samples_leaf; }

  // --- booking ---------------------------------------------------------------------------------

  bool book_rows() {
    touched_.assign(tree_->nodes.size(), false);
    const std::vector<NodeIndex> leaf_nodes = tree_->leaf_nodes();
    bool any = false;
    state_->leaf_ids.visit([&](auto* leaf_ids) {
      for (const Slot row : change_.removed) any |= book(leaf_nodes[leaf_ids[row]], row, false);
      for (const Slot row : change_.added) {
        const NodeIndex leaf =
            tree_->route([&](std::uint32_t f) { return forest_.rows.code(row, f); });
        leaf_ids[row] = static_cast<std::remove_reference_t<decltype(*leaf_ids)>>(node(leaf).leaf);
        any |= book(leaf, row, true);
      }
    });
    return any;
  }

  bool book(NodeIndex leaf, Slot row, bool in) {
    if (!forest_.in_bag(t_, forest_.rows.ids[row])) {
      state_->recorded[row] = 0;
      return false;
    }
    const Totals totals = forest_.contributions_to(t_).of(row);
    const Sums sums(totals);
    for (NodeIndex i = leaf; i != no_node; i = node(i).parent) {
      touched_[at(i)] = true;
      in ? node(i).sums += totals : node(i).sums -= totals;
      Histogram<Sums>& histogram = (*kept_)[at(i)];
      if (histogram.empty()) continue;
      for (std::uint32_t f = 0; f < layout().n_features(); ++f) {
        Sums& cell = histogram[layout()[f].offset + forest_.rows.code(row, f)];
        in ? cell += sums : cell -= sums;
      }
    }
    return true;
  }

  // --- checking --------------------------------------------------------------------------------

  Histogram<Sums>& scratch(std::size_t depth) {
    while (scratch_.size() <= depth) scratch_.emplace_back(layout().histogram_size());
    return scratch_[depth];
  }

  // A child's histogram, given the parent's: kept, or the parent's less the sibling's, or counted.
  const Sums* child_histogram(NodeIndex child, const Sums* parent, std::size_t depth) {
    if (!(*kept_)[at(child)].empty()) return (*kept_)[at(child)].data();
    const Node& above = node(node(child).parent);
    const NodeIndex sibling = above.left == child ? above.right : above.left;
    Histogram<Sums>& own = scratch(depth);
    if ((*kept_)[at(sibling)].empty()) {
      own = count_again(child);
      return own.data();
    }
    const Histogram<Sums>& others = (*kept_)[at(sibling)];
    for (std::size_t c = 0; c < own.size(); ++c) own[c] = parent[c] - others[c];
    return own.data();
  }

  void check(NodeIndex i, const Sums* histogram, std::size_t depth) {
    ++counts.nodes_checked;
    Node& here = node(i);
    Split best;
    const double present = here.is_leaf() ? never : present_gain(here);
    if (may_split(here)) best = find_best(here.sums, histogram);
    if (here.is_leaf()) {
      here.gain = best.gain;
      here.test = best.test;
      return;
    }
    if (!passes(here, best.gain, present, histogram)) {
      Histogram<Sums> copy(layout().histogram_size());
      std::copy_n(histogram, copy.size(), copy.begin());
      failed_.push_back({i, std::move(copy)});
      return;
    }
    here.gain = present;
    for (const NodeIndex child : {here.left, here.right}) {
      if (!touched_[at(child)]) continue;
      if (node(child).is_leaf() && !may_split(node(child))) {
        node(child).gain = never;
        node(child).test = {};
        continue;
      }
      check(child, child_histogram(child, histogram, depth), depth + 1);
    }
  }

  Split find_best(const Totals& sums, const Sums* histogram) const {
    Split best;
    for (const std::uint32_t f : layout().by_offset()) {
      const Split split = best_split_of_feature(growing_.split, layout()[f], f, sums, histogram);
      if (split.better_than(best)) best = split;
    }
    return best;
  }

  // The gain of a node's own split, which its children's sums tell.
  double present_gain(const Node& n) const {
    const Totals& left = tree_->nodes[at(n.left)].sums;
    const Totals& right = tree_->nodes[at(n.right)].sums;
    const std::int64_t least = growing_.split.min_samples_leaf;
    if (left.n < least || right.n < least) return never;
    return gain_of(growing_.split, n.sums, left);
  }

  bool passes(const Node& n, double best, double present, const Sums* histogram) const {
    if (present == never) return false;
    if (rule_.kind == ToleranceRule::Kind::rank) {
      std::int64_t ahead = 0;
      for (const std::uint32_t f : layout().by_offset()) {
        ahead += count_better(growing_.split, layout()[f], n.sums, histogram, present);
      }
      return ahead < rule_.places;
    }
    return rule_.regret_passes(best, present, forest_.noise, n_held_, n.sums.n);
  }

  // --- regrowing -------------------------------------------------------------------------------

  std::vector<std::int32_t> leaf_ids_under(NodeIndex top) {
    std::vector<std::int32_t> ids;
    const auto visit = [&](auto&& self, NodeIndex i) -> void {
      if (node(i).is_leaf()) {
        ids.push_back(node(i).leaf);
        return;
      }
      self(self, node(i).left);
      self(self, node(i).right);
    };
    visit(visit, top);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  // The rows held that are in one of these leaves, those outside the subsample apart.
  struct Reached {
    std::vector<Slot> inside, outside;
  };
  Reached rows_in(const std::vector<std::int32_t>& leaves) const {
    std::vector<std::uint8_t> wanted(65536);
    for (const std::int32_t leaf : leaves) wanted[static_cast<std::size_t>(leaf)] = 1;
    Reached reached;
    state_->leaf_ids.visit([&](const auto* ids) {
      for (Slot row = 0; row < forest_.rows.size(); ++row) {
        if (!wanted[ids[row]] || change_.gone[row]) continue;
        (forest_.in_bag(t_, forest_.rows.ids[row]) ? reached.inside : reached.outside)
            .push_back(row);
      }
    });
    return reached;
  }

  Histogram<Sums> count_again(NodeIndex i) {
    Reached reached = rows_in(leaf_ids_under(i));
    const std::size_t n = reached.inside.size();
    reached.inside.resize(n + slots_read_ahead);
    Histogram<Sums> histogram(layout().histogram_size());
    histogram.fill(Sums(Totals{}));
    accumulate(forest_.rows, forest_.contributions_to(t_), {reached.inside.data(), n},
               histogram.data());
    clear_none_cells(layout(), histogram.data());
    for (const std::uint32_t f : layout().by_offset()) {
      if (layout()[f].counts_only_differing())
        complete(layout()[f], node(i).sums, histogram.data());
    }
    return histogram;
  }

  void record_afresh(std::span<const Slot> slots) {
    const std::vector<Array<double>> scores = scores_.gather(slots);
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
    ++counts.nodes_retrained;
    counts.rows_retrained += static_cast<std::int64_t>(reached.inside.size());
    book_difference(top, before, result);
    return result;
  }

  void place_rows(const Graft<Sums>& g, const std::vector<Slot>& outside) {
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
      Histogram<Sums>& histogram = (*kept_)[at(i)];
      if (histogram.empty()) continue;
      for (std::size_t c = 0; c < histogram.size(); ++c)
        histogram[c] += after[c], histogram[c] -= before[c];
    }
  }

  // Grafts, and brings the gains of the splits above them up to date: they follow from the sums.
  void join(std::vector<Graft<Sums>> grafts) {
    graft(*tree_, *kept_, std::move(grafts));
    for (Node& n : tree_->nodes) {
      if (!n.is_leaf()) n.gain = present_gain(n);
    }
  }

  // --- the order of growth -----------------------------------------------------------------------

  // Best-first growth would have come to a node when all on its path had come up: with the least gain
  // on the path.
  std::vector<double> keys() const {
    std::vector<double> key(tree_->nodes.size());
    for (std::size_t i = 0; i < key.size(); ++i) {
      const Node& n = tree_->nodes[i];
      key[i] = n.parent == no_node ? n.gain : std::min(n.gain, key[at(n.parent)]);
    }
    return key;
  }

  // Where a leaf now comes before a split that was made, by more than the rule tolerates, that split
  // is undone and the leaf split in its place. While leaves are fewer than allowed, none is undone.
  void replay_growth() {
    for (int turn = 0; turn < growing_.max_leaf_nodes; ++turn) {
      const std::vector<double> key = keys();
      NodeIndex leaf = no_node, split = no_node;
      for (std::size_t i = 0; i < key.size(); ++i) {
        if (!tree_->nodes[i].is_leaf() || !(tree_->nodes[i].gain > least_gain)) continue;
        if (leaf == no_node || key[i] > key[at(leaf)]) leaf = static_cast<NodeIndex>(i);
      }
      if (leaf == no_node) return;
      const bool full = tree_->n_leaves() >= growing_.max_leaf_nodes;
      for (std::size_t i = 0; full && i < key.size(); ++i) {
        const Node& n = tree_->nodes[i];
        if (n.is_leaf() || !node(n.left).is_leaf() || !node(n.right).is_leaf()) continue;
        if (n.left == leaf || n.right == leaf) continue;
        if (split == no_node || key[i] < key[at(split)]) split = static_cast<NodeIndex>(i);
      }
      if (full && split == no_node) return;
      const double present = full ? key[at(split)] : 0;
      const std::int64_t n = node(leaf).sums.n + (full ? node(split).sums.n : 0);
      if (!(key[at(leaf)] > present) || order_passes(key, leaf, present, n)) return;
      swap_growth(leaf, split);
    }
  }

  bool order_passes(const std::vector<double>& key, NodeIndex leaf, double present,
                    std::int64_t n) const {
    if (rule_.kind == ToleranceRule::Kind::regret) {
      return rule_.regret_passes(key[at(leaf)], present, forest_.noise, n_held_, n);
    }
    std::int64_t ahead = 0;
    for (std::size_t i = 0; i < key.size(); ++i)
      ahead += tree_->nodes[i].is_leaf() && key[i] > present;
    return static_cast<double>(ahead) <= std::ceil(rule_.tolerance * growing_.max_leaf_nodes);
  }

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

  Histogram<Sums> histogram_of(NodeIndex i) {
    if (i == 0) return (*kept_)[0];
    const Histogram<Sums> parent = histogram_of(node(i).parent);
    const Sums* own = child_histogram(i, parent.data(), 0);
    Histogram<Sums> copy(layout().histogram_size());
    std::copy_n(own, copy.size(), copy.begin());
    return copy;
  }

  Forest& forest_;
  const Change& change_;
  const ToleranceRule& rule_;
  ScoreKeeper& scores_;
  GrowingParams growing_;
  std::int64_t n_held_;
  Grower<Sums> grower_;

  std::size_t t_ = 0;
  Tree* tree_ = nullptr;
  TreeState* state_ = nullptr;
  KeptSums<Sums>* kept_ = nullptr;
  std::vector<bool> touched_;
  std::vector<Failed> failed_;
  std::deque<Histogram<Sums>> scratch_;  // one per depth; references stay valid as it grows
};

}  // namespace graftboost
