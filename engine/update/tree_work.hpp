// What the steps of a tree's update share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "train/tree_grower.hpp"
#include "update/histogram_budget.hpp"
#include "update/undo.hpp"
#include "train/boosting.hpp"
#include "update/update.hpp"
#include "update/update_cost.hpp"

namespace graftboost {

// Writes the slots, ascending, whose leaf is one of these, and returns how many. `found` has room for all.
// Most blocks of rows have none of a few leaves, which comparing them all at once finds out.
template <class LeafId>
std::size_t find_slots(const LeafId* ids, std::size_t n, const std::vector<std::int32_t>& leaves,
                       Slot* found) {
  constexpr std::size_t block = 32, few = 4;
  std::vector<std::uint8_t> wanted(std::size_t{1} << (8 * sizeof(LeafId)));
  for (const std::int32_t leaf : leaves) wanted[static_cast<std::size_t>(leaf)] = 1;
  std::size_t n_found = 0;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t end = std::min(begin + block, n);
    if (leaves.size() <= few && end - begin == block) {
      LeafId any = 0;
      for (const std::int32_t leaf : leaves) {
        const auto id = static_cast<LeafId>(leaf);
        for (std::size_t i = 0; i < block; ++i) any |= static_cast<LeafId>(ids[begin + i] == id);
      }
      if (!any) continue;
    }
    for (std::size_t i = begin; i < end; ++i) {
      found[n_found] = static_cast<Slot>(i);
      n_found += wanted[ids[i]];
    }
  }
  return n_found;
}

// One tree at a time, with its state, and what there is to know about its nodes.
template <class Sums>
class TreeWork {
 public:
  static constexpr double never = -std::numeric_limits<double>::infinity();

  // `rollback` is null if what is done changes nothing but what can be computed again.
  TreeWork(Forest& forest, const Change& change, const ToleranceRule& rule, Rollback* rollback)
      : forest_(forest),
        change_(change),
        rule_(rule),
        rollback_(rollback),
        growing_(growing_params(forest)),
        n_held_(static_cast<std::int64_t>(forest.rows.size() - change.removed.size())) {}

  UpdateCounts counts;

 protected:
  void look_at(std::size_t t) {
    t_ = t;
    tree_ = &forest_.trees[t];
    state_ = &forest_.states[t];
    kept_ = &std::get<KeptSums<Sums>>(state_->sums);
  }

  static std::size_t at(NodeIndex i) { return static_cast<std::size_t>(i); }
  const CodeLayout& layout() const { return forest_.rows.layout; }
  Node& node(NodeIndex i) { return tree_->nodes[at(i)]; }
  Watch& watch(NodeIndex i) { return state_->watches[at(i)]; }
  NodeSums<Sums>& kept(NodeIndex i) { return (*kept_)[at(i)]; }
  NodeIndex sibling(NodeIndex i) {
    const Node& above = node(node(i).parent);
    return above.left == i ? above.right : above.left;
  }

  bool may_split(const Node& n) const { return n.sums.n >= 2 * growing_.gain.min_samples_leaf; }
  void set_value(Node& n) const {
    n.value = forest_.loss.leaf_value(n.sums, growing_.learning_rate, growing_.gain.l2);
  }

  // The gain of a node's own split, which its children's sums tell.
  double present_gain(const Node& n) const {
    const Totals& left = tree_->nodes[at(n.left)].sums;
    const Totals& right = tree_->nodes[at(n.right)].sums;
    const std::int64_t least = growing_.gain.min_samples_leaf;
    if (left.n < least || right.n < least) return never;
    return gain_of(growing_.gain, n.sums, left);
  }

  bool tolerated(double best, double present, std::int64_t n_rows) const {
    return rule_.regret_passes(best, present, forest_.noise, n_held_, n_rows);
  }

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

  // The rows to be held that are in one of these leaves, those outside the subsample apart. Valid until
  // the next call; `slots_read_ahead` slots past `inside` can be read.
  struct Reached {
    std::span<const Slot> inside, outside;
  };
  Reached rows_in(const std::vector<std::int32_t>& leaves) {
    counts.work += work_of::looked_up_row * static_cast<double>(forest_.rows.size());
    return look_up(leaves);
  }
  Reached look_up(const std::vector<std::int32_t>& leaves) {
    const std::size_t n = forest_.rows.size();
    slots_.resize(n + slots_read_ahead);
    Slot* end = slots_.begin() + state_->leaf_ids.visit([&](const auto* ids) {
      return find_slots(ids, n, leaves, slots_.data());
    });
    end = without_removed(slots_.begin(), end);
    Slot* middle = forest_.params.subsample >= 1
                       ? end
                       : std::stable_partition(slots_.begin(), end, [&](Slot row) {
                           return forest_.in_bag(t_, forest_.rows.ids[row]);
                         });
    std::fill_n(end, slots_read_ahead, Slot{0});
    return {{slots_.begin(), middle}, {middle, end}};
  }

  // Counted from the rows in these slots; `slots_read_ahead` slots past the end are read.
  Histogram<Sums> count(std::span<const Slot> slots) const {
    Histogram<Sums> histogram(layout().histogram_size());
    histogram.fill(Sums(Totals{}));
    accumulate(forest_.rows, forest_.contributions_to(t_), slots, histogram.data());
    return histogram;
  }
  // Not counted as work: whether sums are kept or not must not decide anything.
  Histogram<Sums> count_again(NodeIndex i) { return count(look_up(leaf_ids_under(i)).inside); }
  void trim() { drop_surplus(forest_, *tree_, *kept_); }
  bool is_smaller(NodeIndex i) { return node(i).sums.n <= node(sibling(i)).sums.n; }

  // Best-first growth would have come to a node when all on its path had come up: with the least gain
  // on the path.
  const std::vector<double>& keys() {
    keys_.resize(tree_->nodes.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const Node& n = tree_->nodes[i];
      keys_[i] = n.parent == no_node ? n.gain : std::min(n.gain, keys_[at(n.parent)]);
    }
    return keys_;
  }

  // A leaf that now comes before a split that was made, by more than the rule tolerates. While leaves
  // are fewer than allowed no split need be undone.
  struct Swap {
    NodeIndex leaf = no_node, split = no_node;
  };
  Swap find_swap() {
    const std::vector<double>& key = keys();
    Swap found;
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (!tree_->nodes[i].is_leaf() || !(tree_->nodes[i].gain > least_gain)) continue;
      if (found.leaf == no_node || key[i] > key[at(found.leaf)])
        found.leaf = static_cast<NodeIndex>(i);
    }
    state_->order_slack = order_slack(key);
    if (found.leaf == no_node) return {};
    const bool full = tree_->n_leaves() >= growing_.max_leaf_nodes;
    for (std::size_t i = 0; full && i < key.size(); ++i) {
      const Node& n = tree_->nodes[i];
      if (n.is_leaf() || !node(n.left).is_leaf() || !node(n.right).is_leaf()) continue;
      if (n.left == found.leaf || n.right == found.leaf) continue;
      if (found.split == no_node || key[i] < key[at(found.split)])
        found.split = static_cast<NodeIndex>(i);
    }
    if (full && found.split == no_node) return {};
    const double best = key[at(found.leaf)], present = full ? key[at(found.split)] : 0;
    if (!(best > present) || order_passes(found, best, present)) return {};
    return found;
  }

 private:
  double order_slack(const std::vector<double>& key) {
    if (tree_->n_leaves() < growing_.max_leaf_nodes) return never;
    double best = never, present = -never;
    for (std::size_t i = 0; i < key.size(); ++i) {
      const Node& n = tree_->nodes[i];
      if (n.is_leaf()) {
        best = std::max(best, key[i]);
      } else if (node(n.left).is_leaf() && node(n.right).is_leaf()) {
        present = std::min(present, key[i]);
      }
    }
    return present - best;
  }

  // Both are ascending.
  Slot* without_removed(Slot* begin, Slot* end) const {
    constexpr std::size_t few = 16;
    if (change_.removed.size() > few) {
      const auto& removed = change_.removed;
      auto gone = removed.begin();
      return std::remove_if(begin, end, [&](Slot row) {
        while (gone != removed.end() && *gone < row) ++gone;
        return gone != removed.end() && *gone == row;
      });
    }
    for (const Slot row : change_.removed) {
      Slot* found = std::lower_bound(begin, end, row);
      if (found != end && *found == row) end = std::copy(found + 1, end, found);
    }
    return end;
  }

  bool order_passes(const Swap& swap, double best, double present) {
    if (rule_.keeps_structure()) return true;
    if (rule_.kind == ToleranceRule::Kind::regret) {
      const std::int64_t n_split = swap.split == no_node ? 0 : node(swap.split).sums.n;
      return tolerated(best, present, node(swap.leaf).sums.n + n_split);
    }
    std::int64_t ahead = 0;
    for (std::size_t i = 0; i < keys_.size(); ++i)
      ahead += tree_->nodes[i].is_leaf() && keys_[i] > present;
    return static_cast<double>(ahead) <= std::ceil(rule_.tolerance * growing_.max_leaf_nodes);
  }

 protected:
  Forest& forest_;
  const Change& change_;
  const ToleranceRule& rule_;
  Rollback* rollback_;
  GrowingParams growing_;
  std::int64_t n_held_;

  std::size_t t_ = 0;
  Tree* tree_ = nullptr;
  TreeState* state_ = nullptr;
  KeptSums<Sums>* kept_ = nullptr;

 private:
  std::vector<double> keys_;
  Array<Slot> slots_;
};

}  // namespace graftboost
