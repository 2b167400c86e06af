// Nodes that failed are regrown, and the order of growth is replayed.
#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "update/split_check.hpp"
#include "update/grafting.hpp"
#include "core/parallel.hpp"
#include "model/running_scores.hpp"
#include "update/tree_work.hpp"

namespace graftboost {

// A node that has been regrown, before it is grafted in.
template <class Sums>
struct Regrown {
  Graft<Sums> graft;
  NodeSums<Sums> before;  // the node's, that ancestors still have in theirs
};

// Needs the scores that the trees before give, so these are to be mended first. Nodes of one iteration
// can be regrown side by side, but one mender is not for two threads at once.
template <class Sums>
class TreeMender : public TreeWork<Sums> {
  using Base = TreeWork<Sums>;
  using Base::at, Base::count_again, Base::forest_, Base::growing_, Base::kept, Base::kept_,
      Base::layout, Base::leaf_ids_under, Base::look_at, Base::node, Base::present_gain,
      Base::rollback_, Base::rows_in, Base::set_value, Base::sibling, Base::state_, Base::t_,
      Base::tree_, Base::watch;
  using typename Base::Reached;

 public:
  using Base::counts;

  TreeMender(Forest& forest, const Change& change, const ToleranceRule& rule, Rollback* rollback,
             ScoreKeeper& scores, int n_threads)
      : Base(forest, change, rule, rollback),
        scores_(scores),
        n_threads_(n_threads),
        cells_(WorkingCells::as_laid_out(forest.rows)),
        grower_(forest.rows, forest.loss, growing_, cells_, n_threads) {}

  // What is under a node, to as many leaves as it has. The tree itself is not changed.
  Regrown<Sums> regrow(std::size_t t, NodeIndex i) {
    look_at(t);
    return regrow(i, static_cast<int>(leaf_ids_under(i).size()), {});
  }

  // Grafts in what was regrown, and replays the order of growth.
  void mend(std::size_t t, std::vector<Regrown<Sums>> regrown) {
    look_at(t);
    if (!regrown.empty()) join(std::move(regrown), {});
    for (int turn = 0; turn < growing_.max_leaf_nodes; ++turn) {
      const auto swap = this->find_swap();
      if (swap.leaf == no_node) return;
      swap_growth(swap.leaf, swap.split);
    }
  }

 private:
  // --- regrowing -------------------------------------------------------------------------------

  // Whoever is above wants to know what changes in its sums.
  NodeSums<Sums> sums_of(NodeIndex i) {
    if (kept(i).kept) return kept(i);
    if (follows(i)) {
      NodeSums<Sums> sums = sums_of(node(i).parent);
      sums -= kept(sibling(i));
      return sums;
    }
    Histogram<Sums> histogram = count_again(i);
    return NodeSums<Sums>(layout(), histogram);
  }
  bool follows(NodeIndex i) {
    return kept(i).kept || (i != 0 && kept(sibling(i)).kept && follows(node(i).parent));
  }

  bool any_kept_above(NodeIndex i) {
    do i = node(i).parent;
    while (i != no_node && !kept(i).kept);
    return i != no_node;
  }

  void record_afresh(std::span<const Slot> slots) {
    counts.work += work_of::gathered_value * static_cast<double>(scores_.n_looked_up(slots.size()));
    constexpr std::size_t rows_together = 2048;
    parallel_blocks(n_threads_, slots.size(), rows_together,
                    [&](std::size_t begin, std::size_t end) {
                      record_block(slots.subspan(begin, end - begin));
                    });
  }
  void record_block(std::span<const Slot> slots) {
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

  // Regrows what is under a node, to so many leaves, from fresh gradients of its rows. `spare` are leaf
  // ids that may be used besides its own.
  Regrown<Sums> regrow(NodeIndex top, int n_leaves, std::vector<std::int32_t> spare) {
    Regrown<Sums> result;
    if (any_kept_above(top))
      result.before = sums_of(top);  // rows_in() forgets what it found before
    std::vector<std::int32_t> leaves = leaf_ids_under(top);
    const Reached reached = rows_in(leaves);
    leaves.insert(leaves.end(), spare.begin(), spare.end());
    rollback_->save_rows(t_, reached.inside);
    rollback_->save_rows(t_, reached.outside);
    record_afresh(reached.inside);
    std::copy(reached.inside.begin(), reached.inside.end(), grower_.start(reached.inside.size()));
    Graft<Sums>& g = result.graft;
    g.node = top;
    g.leaf_ids = std::move(leaves);
    g.subtree = grower_.grow(forest_.contributions_to(t_), n_leaves);
    place_rows(g, reached.outside);
    g.kept = grower_.take_kept_sums();
    g.watches = grower_.take_watches();
    ++counts.nodes_retrained;
    counts.rows_retrained += static_cast<std::int64_t>(reached.inside.size());
    counts.work += work_to_grow(g.subtree, 0, forest_.rows);
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

  // What changed in the sums of a regrown node changes in those of its ancestors.
  void book_difference(const Regrown<Sums>& regrown) {
    const NodeIndex top = regrown.graft.node;
    const Totals difference = regrown.graft.subtree.nodes[0].sums - node(top).sums;
    for (NodeIndex i = node(top).parent; i != no_node; i = node(i).parent) {
      node(i).sums += difference;
      watch(i).forget();
      // As if the sums of half of the nodes were kept.
      counts.work += work_of::judged_cell * static_cast<double>(layout().histogram_size()) / 2;
      if (kept(i).kept) kept(i).exchange(regrown.before, regrown.graft.kept[0]);
    }
  }

  // Grafts, and brings gains and values up to date: they follow from the sums.
  void join(std::vector<Regrown<Sums>> regrown, std::vector<Graft<Sums>> grafts) {
    for (Regrown<Sums>& r : regrown) {
      book_difference(r);
      grafts.push_back(std::move(r.graft));
    }
    Replaced<Sums> replaced = graft(*tree_, *kept_, state_->watches, std::move(grafts));
    rollback_->keep_replaced(t_, std::move(replaced.kept), std::move(replaced.watches));
    for (Node& n : tree_->nodes) {
      if (!n.is_leaf()) n.gain = present_gain(n);
      set_value(n);
    }
    this->trim();
  }

  // --- the order of growth -----------------------------------------------------------------------

  // Undoes a split, if one is given, and splits a leaf in its place.
  void swap_growth(NodeIndex leaf, NodeIndex split) {
    std::vector<Graft<Sums>> undo;
    std::vector<std::int32_t> spare;
    if (split != no_node) {
      const std::int32_t stays = node(node(split).left).leaf, goes = node(node(split).right).leaf;
      state_->leaf_ids.visit([&]<class LeafId>(LeafId* ids) {
        Array<Slot> moving(forest_.rows.size());
        moving.resize(find_slots(ids, moving.size(), {goes}, moving.data()));
        rollback_->save_rows(t_, {moving.data(), moving.size()});
        for (const Slot row : moving) ids[row] = static_cast<LeafId>(stays);
      });
      Graft<Sums> undone;
      undone.node = split;
      undone.leaf_ids = {stays};
      undo.push_back(std::move(undone));
      spare = {goes};
    } else {
      spare = {free_leaf_id()};
    }
    std::vector<Regrown<Sums>> regrown;
    regrown.push_back(regrow(leaf, 2, std::move(spare)));
    join(std::move(regrown), std::move(undo));
  }

  std::int32_t free_leaf_id() {
    const std::vector<std::int32_t> used = leaf_ids_under(0);
    std::int32_t id = 0;
    while (std::binary_search(used.begin(), used.end(), id)) ++id;
    return id;
  }

  ScoreKeeper& scores_;
  int n_threads_;
  WorkingCells cells_;
  Grower<Sums> grower_;
};

}  // namespace graftboost
