// One tree takes its changed rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "grafting.hpp"
#include "growing.hpp"
#include "path_sums.hpp"
#include "scores.hpp"
#include "training.hpp"
#include "update.hpp"

namespace graftboost {

// The slots, ascending, whose leaf is one of these. Most blocks of rows have none of a few leaves,
// which comparing them all at once finds out.
template <class LeafId>
std::vector<Slot> slots_with(const LeafId* ids, std::size_t n,
                             const std::vector<std::int32_t>& leaves) {
  constexpr std::size_t block = 32, few = 4;
  std::vector<std::uint8_t> wanted(std::size_t{1} << (8 * sizeof(LeafId)));
  for (const std::int32_t leaf : leaves) wanted[static_cast<std::size_t>(leaf)] = 1;
  std::vector<Slot> found;
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
      if (wanted[ids[i]]) found.push_back(static_cast<Slot>(i));
    }
  }
  return found;
}

// Updates trees; owns the scratch that they share. Not for two threads at once.
//
// The changed rows are booked along their paths, and the touched nodes are checked from the root down:
// book_and_check(), which needs nothing of other trees. Then the nodes that failed are regrown and
// grafted in, and the order of growth is replayed from the gains: mend(), which needs the scores that
// the trees before it give.
template <class Sums>
class TreeUpdater {
  static constexpr double never = -std::numeric_limits<double>::infinity();
  static constexpr std::int64_t largest_shift = 4;  // beyond one row in so many, regrowing is cheaper

 public:
  TreeUpdater(Forest& forest, const Change& change, const ToleranceRule& rule, ScoreKeeper& scores,
              int n_threads)
      : forest_(forest),
        change_(change),
        rule_(rule),
        scores_(scores),
        growing_(growing_params(forest)),
        n_held_(static_cast<std::int64_t>(forest.rows.size() - change.removed.size())),
        grower_(forest.rows, forest.loss, growing_, n_threads),
        path_(forest.rows.layout),
        codes_(forest.rows.layout.n_features()) {}

  // Whether the tree has any of the changed rows; if so, the topmost nodes that fail.
  using Failed = std::vector<NodeIndex>;
  std::optional<Failed> book_and_check(std::size_t t) {
    look_at(t);
    if (!state_->counted) count_sums();
    if (!book_rows()) return std::nullopt;
    ++counts.trees_touched;
    failed_.clear();
    path_.set_kept(0, (*kept_)[0]);
    check(0, 0);
    for (std::size_t i = 0; i < touched_.size(); ++i) {
      if (touched_[i]) set_value(tree_->nodes[i]);
    }
    return std::move(failed_);
  }

  void mend(std::size_t t, const Failed& failed) {
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
    replay_growth();
  }

  // After a refresh: the candidates' sums and the gains of all nodes.
  void restore(std::size_t t) {
    look_at(t);
    if (!state_->counted) count_sums();
  }

  UpdateCounts counts;

 private:
  static std::size_t at(NodeIndex i) { return static_cast<std::size_t>(i); }
  const CodeLayout& layout() const { return forest_.rows.layout; }
  Node& node(NodeIndex i) { return tree_->nodes[at(i)]; }
  bool may_split(const Node& n) const { return n.sums.n >= 2 * growing_.split.min_samples_leaf; }
  void set_value(Node& n) const {
    n.value = forest_.loss.leaf_value(n.sums, growing_.learning_rate, growing_.split.l2);
  }

  void look_at(std::size_t t) {
    t_ = t;
    tree_ = &forest_.trees[t];
    state_ = &forest_.states[t];
    kept_ = &std::get<KeptSums<Sums>>(state_->sums);
  }

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
    book_below(no_node, leaf, row, in);
    return true;
  }

  // Into or out of the nodes from a leaf up to, and without, `top`.
  void book_below(NodeIndex top, NodeIndex leaf, Slot row, bool in) {
    const Totals totals = forest_.contributions_to(t_).of(row);
    const Sums sums(totals);
    for (std::uint32_t f = 0; f < codes_.size(); ++f) codes_[f] = forest_.rows.code(row, f);
    for (NodeIndex i = leaf; i != top; i = node(i).parent) {
      touched_[at(i)] = true;
      in ? node(i).sums += totals : node(i).sums -= totals;
      watch(i).row_changed(growing_.split, totals, in,
                           [&](std::uint32_t f) { return codes_[f]; });
      Histogram<Sums>& histogram = (*kept_)[at(i)];
      if (histogram.empty()) continue;
      for (std::uint32_t f = 0; f < codes_.size(); ++f) {
        Sums& cell = histogram[layout()[f].offset + codes_[f]];
        in ? cell += sums : cell -= sums;
      }
    }
  }

  // --- checking --------------------------------------------------------------------------------

  Watch& watch(NodeIndex i) { return state_->watches[at(i)]; }

  // A child's histogram is kept, or the parent's less the sibling's, or counted.
  void enter(NodeIndex child, std::size_t depth) {
    if (!(*kept_)[at(child)].empty()) {
      path_.set_kept(depth, (*kept_)[at(child)]);
      return;
    }
    const Node& above = node(node(child).parent);
    const NodeIndex sibling = above.left == child ? above.right : above.left;
    (*kept_)[at(sibling)].empty() ? path_.set_own(depth, count_again(child))
                                  : path_.set_difference(depth, (*kept_)[at(sibling)]);
  }

  Split judge(NodeIndex i, std::size_t depth, std::uint32_t feature) {
    Standing standing;
    const Totals& sums = node(i).sums;
    const Split best = best_split_of_feature(growing_.split, layout()[feature], feature, sums,
                                             path_.with(depth, feature), &standing);
    if (watch(i).knows()) watch(i).judged(growing_.split, sums, feature, best.gain, standing);
    return best;
  }
  double bound(NodeIndex i, std::uint32_t feature) {
    return watch(i).bound(growing_.split, node(i).sums, feature);
  }

  void check(NodeIndex i, std::size_t depth) {
    ++counts.nodes_checked;
    Node& here = node(i);
    if (here.is_leaf()) {
      const Split best = may_split(here) ? find_best(i, depth) : Split{};
      here.gain = best.gain;
      here.test = best.test;
      return;
    }
    if (!passes(i, depth)) {
      failed_.push_back(i);
      return;
    }
    here.gain = present_gain(here);
    for (const NodeIndex child : {here.left, here.right}) {
      if (!touched_[at(child)]) continue;
      // Few rows without a kept histogram are not counted for nothing.
      if (!node(child).is_leaf() || may_split(node(child))) enter(child, depth + 1);
      check(child, depth + 1);
    }
  }

  // The best candidate of all; features that cannot have it are left out.
  Split find_best(NodeIndex i, std::size_t depth) {
    const bool known = watch(i).knows();
    const std::uint32_t likely = node(i).test.feature;
    if (!known) watch(i).start(growing_.split, node(i).sums, layout().n_features());
    Split best;
    const auto see = [&](std::uint32_t f) {
      if (const double most = known ? bound(i, f) : -never; most < best.gain || most == never) return;
      const Split split = judge(i, depth, f);
      if (split.better_than(best)) best = split;
    };
    see(likely);
    for (const std::uint32_t f : layout().by_offset()) {
      if (f != likely) see(f);
    }
    watch(i).sum_up();
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

  bool passes(NodeIndex i, std::size_t depth) {
    return rule_.kind == ToleranceRule::Kind::rank ? rank_passes(i, depth)
                                                   : regret_passes(i, depth);
  }

  bool rank_passes(NodeIndex i, std::size_t depth) {
    const double present = present_gain(node(i));
    if (present == never) return false;
    std::int64_t ahead = 0;
    for (const std::uint32_t f : layout().by_offset()) {
      ahead += count_better(growing_.split, layout()[f], node(i).sums, path_.with(depth, f), present);
    }
    return ahead < rule_.places;
  }

  bool tolerated(double best, double present, std::int64_t n_rows) const {
    return rule_.regret_passes(best, present, forest_.noise, n_held_, n_rows);
  }

  // Features whose bound is tolerated pass unseen. A better split of the same feature that sends only
  // few rows to the other side is made: those rows move. So it is, if there is any tolerance, where
  // the present split leaves a side too little.
  bool regret_passes(NodeIndex i, std::size_t depth) {
    const std::int64_t n = node(i).sums.n;
    const std::uint32_t own = node(i).test.feature;
    const bool known = watch(i).knows();
    const double present = present_gain(node(i));
    const bool is_void = present == never;
    if (is_void && (rule_.tolerance == 0 || !may_split(node(i)))) return false;
    if (known && tolerated(watch(i).bound(growing_.split, node(i).sums), present, 1)) return true;
    if (!known) watch(i).start(growing_.split, node(i).sums, layout().n_features());
    Split best_own;
    if (is_void || !known || !tolerated(bound(i, own), present, 1)) best_own = judge(i, depth, own);
    const double standard = is_void ? best_own.gain : present;
    if (standard == never || !tolerated(best_own.gain, standard, n)) return false;
    for (const std::uint32_t f : layout().by_offset()) {
      if (f == own || (known && tolerated(bound(i, f), standard, n))) continue;
      if (!tolerated(judge(i, depth, f).gain, standard, n)) return false;
    }
    watch(i).sum_up();
    if (!(best_own.gain > present)) return true;
    const std::int64_t n_moving = count_moving(i, depth, best_own.test);
    if (is_void && largest_shift * n_moving > n) return false;
    if (is_void || !tolerated(best_own.gain, present, n_moving)) {
      shift(i, best_own.test);
      ++counts.nodes_shifted;
      counts.rows_shifted += n_moving;
    }
    return true;
  }

  // Rows that another test of the same feature sends to the other side.
  std::int64_t count_moving(NodeIndex i, std::size_t depth, const Test& test) {
    const CodeLayout::Place& place = layout()[test.feature];
    const Sums* cells = path_.with(depth, test.feature) + place.offset;
    std::int64_t n_moving = 0;
    for (std::uint32_t c = 0; c < place.n_codes; ++c) {
      const auto code = static_cast<Code>(c);
      if (node(i).test.left(code) != test.left(code)) n_moving += Totals(cells[c]).n;
    }
    return n_moving;
  }

  void shift(NodeIndex top, const Test& test) {
    const Test before = std::exchange(node(top).test, test);
    const Reached reached = rows_in(leaf_ids_under(top));
    const std::vector<NodeIndex> leaf_nodes = tree_->leaf_nodes();
    state_->leaf_ids.visit([&](auto* leaf_ids) {
      using LeafId = std::remove_reference_t<decltype(*leaf_ids)>;
      const auto move = [&](Slot row, bool inside) {
        const auto code = [&](std::uint32_t f) { return forest_.rows.code(row, f); };
        if (before.left(code(test.feature)) == test.left(code(test.feature))) return;
        const NodeIndex from = leaf_nodes[leaf_ids[row]], to = tree_->route(code, top);
        leaf_ids[row] = static_cast<LeafId>(node(to).leaf);
        if (!inside) return;
        book_below(top, from, row, false);
        book_below(top, to, row, true);
      };
      for (const Slot row : reached.inside) move(row, true);
      for (const Slot row : reached.outside) move(row, false);
    });
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
    std::vector<Slot> rows = state_->leaf_ids.visit(
        [&](const auto* ids) { return slots_with(ids, forest_.rows.size(), leaves); });
    std::vector<Slot> held;
    std::set_difference(rows.begin(), rows.end(), change_.removed.begin(), change_.removed.end(),
                        std::back_inserter(held));
    if (forest_.params.subsample >= 1) return {std::move(held), {}};
    const auto middle = std::stable_partition(held.begin(), held.end(), [&](Slot row) {
      return forest_.in_bag(t_, forest_.rows.ids[row]);
    });
    return {{held.begin(), middle}, {middle, held.end()}};
  }

  // Reads `slots_read_ahead` slots past the end.
  Histogram<Sums> count(NodeIndex i, std::span<const Slot> slots) {
    Histogram<Sums> histogram(layout().histogram_size());
    histogram.fill(Sums(Totals{}));
    accumulate(forest_.rows, forest_.contributions_to(t_), slots, histogram.data());
    clear_none_cells(layout(), histogram.data());
    for (const std::uint32_t f : layout().by_offset()) {
      if (layout()[f].counts_only_differing())
        complete(layout()[f], node(i).sums, histogram.data());
    }
    return histogram;
  }
  Histogram<Sums> count_again(NodeIndex i) {
    std::vector<Slot> slots = rows_in(leaf_ids_under(i)).inside;
    const std::size_t n = slots.size();
    slots.resize(n + slots_read_ahead);
    return count(i, {slots.data(), n});
  }

  // Slots by leaf, leaves from left to right: each node's lie together. Before rows are booked, so
  // the removed ones still count and the added ones do not yet.
  void count_sums() {
    std::vector<std::vector<Slot>> of_leaf(tree_->leaf_nodes().size());
    state_->leaf_ids.visit([&](const auto* ids) {
      for (Slot row = 0; row < forest_.rows.size() - change_.added.size(); ++row) {
        if (forest_.in_bag(t_, forest_.rows.ids[row])) of_leaf[ids[row]].push_back(row);
      }
    });
    std::vector<Slot> slots;
    std::vector<std::pair<std::size_t, std::size_t>> range(tree_->nodes.size());
    const auto gather = [&](auto&& self, NodeIndex i) -> void {
      range[at(i)].first = slots.size();
      if (node(i).is_leaf()) {
        const std::vector<Slot>& own = of_leaf[at(node(i).leaf)];
        slots.insert(slots.end(), own.begin(), own.end());
      } else {
        self(self, node(i).left);
        self(self, node(i).right);
      }
      range[at(i)].second = slots.size();
    };
    gather(gather, 0);
    slots.resize(slots.size() + slots_read_ahead);
    const auto keep = [&](NodeIndex i) {
      const auto [begin, end] = range[at(i)];
      (*kept_)[at(i)] = count(i, {slots.data() + begin, end - begin});
    };
    keep(0);
    for (const Node& n : tree_->nodes) {
      if (n.is_leaf() || (!may_split(node(n.left)) && !may_split(node(n.right)))) continue;
      keep(node(n.left).sums.n <= node(n.right).sums.n ? n.left : n.right);
    }
    path_.set_kept(0, (*kept_)[0]);
    find_gains(0, 0);
    state_->counted = true;
  }

  void find_gains(NodeIndex i, std::size_t depth) {
    Node& here = node(i);
    if (here.is_leaf()) {
      const Split best = may_split(here) ? find_best(i, depth) : Split{};
      here.gain = best.gain;
      here.test = best.test;
      return;
    }
    here.gain = present_gain(here);
    for (const NodeIndex child : {here.left, here.right}) {
      if (!node(child).is_leaf() || may_split(node(child))) enter(child, depth + 1);
      find_gains(child, depth + 1);
    }
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
    result.watches = grower_.take_watches();
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
      watch(i).forget();
      Histogram<Sums>& histogram = (*kept_)[at(i)];
      if (histogram.empty()) continue;
      for (std::size_t c = 0; c < histogram.size(); ++c)
        histogram[c] += after[c], histogram[c] -= before[c];
    }
  }

  // Grafts, and brings the gains of the splits above them up to date: they follow from the sums.
  void join(std::vector<Graft<Sums>> grafts) {
    graft(*tree_, *kept_, state_->watches, std::move(grafts));
    for (Node& n : tree_->nodes) {
      if (!n.is_leaf()) n.gain = present_gain(n);
      set_value(n);
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
    std::vector<NodeIndex> path;
    for (NodeIndex above = i; above != 0; above = node(above).parent) path.push_back(above);
    path_.set_kept(0, (*kept_)[0]);
    for (std::size_t depth = 1; depth <= path.size(); ++depth)
      enter(path[path.size() - depth], depth);
    const Sums* whole = path_.whole(path.size());
    Histogram<Sums> copy(layout().histogram_size());
    std::copy_n(whole, copy.size(), copy.begin());
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
  Failed failed_;
  PathSums<Sums> path_;
  std::vector<Code> codes_;  // of the row that is being booked
};

}  // namespace graftboost
