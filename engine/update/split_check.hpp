// The changed rows are booked along their paths in a tree, and the nodes there are checked.
#pragma once

#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "update/path_histogram.hpp"
#include "update/tree_work.hpp"

namespace graftboost {

// What is to be mended in a tree: the topmost nodes whose split does not pass, or the order of growth.
struct Findings {
  std::vector<NodeIndex> failed;
  bool order = false;
};

// Trees do not depend on each other here, but one checker is not for two threads at once.
template <class Sums>
class TreeChecker : public TreeWork<Sums> {
  using Base = TreeWork<Sums>;
  using Base::at, Base::change_, Base::count, Base::count_again, Base::forest_, Base::growing_,
      Base::is_smaller, Base::kept, Base::kept_, Base::layout, Base::leaf_ids_under, Base::look_at,
      Base::may_split, Base::never, Base::node, Base::present_gain, Base::rollback_, Base::rows_in,
      Base::rule_, Base::set_value, Base::sibling, Base::state_, Base::t_, Base::tolerated,
      Base::tree_, Base::watch;
  using typename Base::Reached;

 public:
  using Base::counts;

  TreeChecker(Forest& forest, const Change& change, const ToleranceRule& rule, Rollback* rollback)
      : Base(forest, change, rule, rollback),
        path_(forest.rows.layout),
        codes_(forest.rows.layout.size()) {}

  // Nodes' own sums and values. `gradients` are those that the added rows record in this tree; their
  // leaves' values are added to `scores`.
  void book_totals(std::size_t t, std::span<const Gradient> gradients, std::span<double> scores) {
    look_at(t);
    if (!state_->counted) {
      rollback_->save_tree(t);
      count_sums();
    }
    leaves_.clear();
    for (const Slot row : change_.removed) leaves_.push_back(leaf_of(row));
    for (const Slot row : change_.added)
      leaves_.push_back(tree_->route([&](std::uint32_t f) { return forest_.rows.code(row, f); }));
    rollback_->save_paths(t, leaves_);
    const NodeIndex* leaf = leaves_.data();
    for (const Slot row : change_.removed) book_row_totals(*leaf++, row, false);
    state_->leaf_ids.visit([&]<class LeafId>(LeafId* leaf_ids) {
      for (std::size_t i = 0; i < change_.added.size(); ++i, ++leaf) {
        const Slot row = change_.added[i];
        const bool inside = forest_.in_bag(t_, forest_.rows.ids[row]);
        state_->recorded[row] = inside ? gradients[i] : 0;
        leaf_ids[row] = static_cast<LeafId>(node(*leaf).leaf);
        if (inside) book_row_totals(*leaf, row, true);
      }
    });
    for (std::size_t i = 0; i < change_.added.size(); ++i) {
      Node& leaf = node(leaf_of(change_.added[i]));
      set_value(leaf);
      scores[i] += leaf.value;
    }
  }

  // After book_totals(): the candidates' sums, then the checks. Nothing if no row is in the tree.
  std::optional<Findings> check(std::size_t t) {
    look_at(t);
    if (change_.new_places) book_new_cells();
    touched_.assign(tree_->nodes.size(), false);
    changed_.resize(tree_->nodes.size());
    for (auto& rows : changed_) rows.clear();
    bool any = false;
    const auto book = [&](Slot row, bool in) {
      if (!forest_.in_bag(t_, forest_.rows.ids[row])) return;
      any = true;
      book_sums(no_node, leaf_of(row), row, in);
    };
    for (const Slot row : change_.removed) book(row, false);
    for (const Slot row : change_.added) book(row, true);
    if (!any) return std::nullopt;
    ++counts.trees_touched;
    findings_ = {};
    largest_change_ = 0;
    enter(0, 0);
    check_node(0, 0);
    for (std::size_t i = 0; i < touched_.size(); ++i) {
      if (!touched_[i]) continue;
      set_value(tree_->nodes[i]);
      // The rows that it waits to hear of are not known in the next update.
      if (state_->watches[i].is_pending()) state_->watches[i].forget();
    }
    // Keys of nodes change by no more than the gains on their paths do.
    state_->order_slack -= 2 * largest_change_;
    findings_.order = !findings_.failed.empty() ||
                      (!(state_->order_slack > least_gain) && this->find_swap().leaf != no_node);
    return std::move(findings_);
  }

  // After a refresh: the candidates' sums and the gains of all nodes.
  void restore(std::size_t t) {
    look_at(t);
    if (!state_->counted) count_sums();
  }

 private:
  // --- booking ---------------------------------------------------------------------------------

  NodeIndex leaf_of(Slot row) const {
    return state_->leaf_ids.visit([&](const auto* ids) { return tree_->leaves[ids[row]]; });
  }

  void book_row_totals(NodeIndex leaf, Slot row, bool in) {
    if (!forest_.in_bag(t_, forest_.rows.ids[row])) return;
    counts.work += work_of::booked_row;
    const Totals totals = forest_.contributions_to(t_).of(row);
    for (NodeIndex i = leaf; i != no_node; i = node(i).parent)
      in ? node(i).sums += totals : node(i).sums -= totals;
  }

  // Into or out of the candidates' sums of the nodes from a leaf up to, and without, `top`.
  void book_sums(NodeIndex top, NodeIndex leaf, Slot row, bool in) {
    const Totals totals = forest_.contributions_to(t_).of(row);
    const Sums sums(totals);
    cells_.clear();
    forest_.rows.for_each_cell(row, [&](std::uint32_t cell) { cells_.push_back(cell); });
    const bool one_by_one = codes_.size() <= most_watched_features && !watches_groups(layout());
    for (std::uint32_t p = 0; in && one_by_one && p < codes_.size(); ++p)
      codes_[p] = forest_.rows.code(row, layout()[p], 0);
    const auto code_of = [&](std::uint32_t p) {
      return one_by_one ? codes_[p] : forest_.rows.code(row, layout()[p], 0);
    };
    counts.work += work_of::booked_row;
    for (NodeIndex i = leaf; i != top; i = node(i).parent) {
      touched_[at(i)] = true;
      watch(i).row_changed(growing_.gain, totals, in, layout().any_commonly_missing(),
                           layout().number_of(node(i).split.feature), code_of);
      if (!one_by_one) changed_[at(i)].push_back(row);
      // As if the sums of half of the nodes were kept: what memory there is must not decide anything.
      counts.work += work_of::booked_cell * static_cast<double>(cells_.size()) / 2;
      if (kept(i).kept) kept(i).book(cells_, sums, in);
    }
  }

  void book_new_cells() {
    // Bounds of single features have no room for more.
    for (Watch& watched : state_->watches)
      if (!watched.is_in_groups() || !watches_groups(layout())) watched.forget();
    if (std::exchange(state_->counted_anew, false)) return;
    for (const RowTable::NewCell& cell : change_.new_cells) {
      if (!forest_.in_bag(t_, forest_.rows.ids[cell.row])) continue;
      const Sums sums(forest_.contributions_to(t_).of(cell.row));
      for (NodeIndex i = leaf_of(cell.row); i != no_node; i = node(i).parent)
        if (kept(i).kept) kept(i).book({&cell.cell, 1}, sums, true);
    }
  }

  // Looked up once for all trees.
  const WipedVector<std::uint32_t>& present_in(Slot row) {
    const auto found = present_.find(row);
    return found != present_.end() ? found->second
                                   : present_.emplace(row, forest_.rows.present(row)).first->second;
  }

  // --- checking --------------------------------------------------------------------------------

  // A node's sums are kept, or the parent's less the sibling's, or counted.
  void enter(NodeIndex i, std::size_t depth) {
    const Totals& sums = node(i).sums;
    if (kept(i).kept) {
      path_.set_kept(depth, sums, kept(i));
    } else if (i != 0 && kept(sibling(i)).kept) {
      path_.set_less_kept(depth, sums, kept(sibling(i)));
    } else if (i == 0 || is_smaller(i)) {
      path_.set_counted(depth, sums, [this, i] { return count_again(i); });
    } else {
      path_.set_less_counted(depth, sums, [this, i] { return count_again(sibling(i)); });
    }
  }

  BestSplit judge(NodeIndex i, std::size_t depth, std::uint32_t number) {
    Standing standing;
    const Totals& sums = node(i).sums;
    const bool watched = watch(i).knows();
    const BestSplit best =
        best_split_of_feature(growing_.gain, layout()[number], sums, path_.with(depth, number),
                              watched ? &standing : nullptr);
    if (watched) watch(i).judged(growing_.gain, sums, number, best.gain, standing);
    return best;
  }
  double bound(NodeIndex i, std::uint32_t number) {
    return watch(i).bound(growing_.gain, node(i).sums, number);
  }

  BestSplit judge_alone(NodeIndex i, std::size_t depth, std::uint32_t number) {
    return best_split_of_feature(growing_.gain, layout()[number], node(i).sums,
                                 path_.with(depth, number));
  }

  // Watched in groups are only the features that most rows do not have. Of the others, the best.
  BestSplit judge_plain(NodeIndex i, std::size_t depth) {
    BestSplit best;
    for (std::size_t k = 0; k < layout().first_sparse(); ++k) {
      const std::uint32_t number = layout().by_offset()[k];
      if (layout()[number].counts_only_differing()) continue;
      const BestSplit split = judge_alone(i, depth, number);
      if (split.better_than(best)) best = split;
    }
    return best;
  }

  // The features that rows have which came or went.
  void judge_those_present(NodeIndex i, std::size_t depth) {
    Watch& watched = watch(i);
    if (!watched.knows() || !watched.is_pending()) return;
    numbers_.clear();
    for (const Slot row : changed_[at(i)]) {
      const WipedVector<std::uint32_t>& present = present_in(row);
      numbers_.insert(numbers_.end(), present.begin(), present.end());
      if (numbers_.size() * few_present > layout().size()) return;  // then all are judged
    }
    for (std::size_t number = watched.size(); number < layout().size(); ++number)
      numbers_.push_back(static_cast<std::uint32_t>(number));
    std::sort(numbers_.begin(), numbers_.end());
    numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
    const Totals& sums = node(i).sums;
    Search<Sums> search(growing_.gain, sums, true);
    for (const std::uint32_t number : numbers_)
      search.see(layout()[number], path_.with(depth, number));
    watched.add_judged(growing_.gain, sums, search.standings(), node(i).split.feature);
    watched.all_seen(layout().size());
  }
  static constexpr std::size_t few_present = 8;  // one in so many

  // The best candidate of all features, watched in groups.
  BestSplit judge_all(NodeIndex i, std::size_t depth) {
    const Totals& sums = node(i).sums;
    Search<Sums> search(growing_.gain, sums, watch(i).knows());
    const Sums* histogram = path_.with_all(depth);
    for (const std::uint32_t number : layout().by_offset())
      search.see(layout()[number], histogram + layout()[number].offset);
    const BestSplit& best = search.best();
    // A leaf's own feature is that of its best candidate.
    const std::uint32_t own = node(i).is_leaf() ? best.split.feature : node(i).split.feature;
    if (watch(i).knows()) {
      watch(i).judged_all(growing_.gain, sums, search.standings(), own, layout().size());
    }
    return best;
  }

  void check_node(NodeIndex i, std::size_t depth) {
    ++counts.nodes_checked;
    // As if half of the features had to be judged: what a bound saves must not decide anything.
    counts.work += work_of::checked_node +
                   work_of::judged_cell * static_cast<double>(layout().histogram_size()) / 2;
    Node& here = node(i);
    if (here.is_leaf()) {
      find_best_of_leaf(i, depth);
      return;
    }
    if (!rule_.keeps_structure() && !passes(i, depth)) {
      findings_.failed.push_back(i);
      return;
    }
    set_gain(here, present_gain(here));
    for (const NodeIndex child : {here.left, here.right}) {
      if (!touched_[at(child)]) continue;
      enter_if_needed(child, depth + 1);
      check_node(child, depth + 1);
    }
  }

  // Few rows without a kept histogram are not counted for nothing.
  void enter_if_needed(NodeIndex child, std::size_t depth) {
    if (!node(child).is_leaf() || may_split(node(child))) enter(child, depth);
  }

  void find_best_of_leaf(NodeIndex i, std::size_t depth) {
    const BestSplit best = may_split(node(i)) ? find_best(i, depth) : BestSplit{};
    set_gain(node(i), best.gain);
    node(i).split = best.split;
  }

  void set_gain(Node& n, double gain) {
    if (n.gain != gain) largest_change_ = std::max(largest_change_, std::abs(gain - n.gain));
    n.gain = gain;
  }

  // The best candidate of all; features that cannot have it are left out.
  BestSplit find_best(NodeIndex i, std::size_t depth) {
    const bool known = watch(i).knows();
    const std::uint32_t likely = layout().number_of(node(i).split.feature);
    if (!known) watch(i).start(growing_.gain, node(i).sums, layout());
    if (watches_groups(layout())) {
      if (!known) return judge_all(i, depth);
      judge_those_present(i, depth);
      BestSplit best = judge_plain(i, depth);
      const BestSplit own = likely != ColumnIndex::none ? judge_alone(i, depth, likely) : BestSplit{};
      if (own.better_than(best)) best = own;
      const bool stands = watch(i).bound_of_others(growing_.gain, node(i).sums) < best.gain;
      return stands ? best : judge_all(i, depth);
    }
    BestSplit best;
    const auto see = [&](std::uint32_t number) {
      const double most = known ? bound(i, number) : -never;
      if (most < best.gain || most == never) return;
      const BestSplit split = judge(i, depth, number);
      if (split.better_than(best)) best = split;
    };
    if (likely != ColumnIndex::none) see(likely);
    for (const std::uint32_t number : layout().by_offset()) {
      if (number != likely) see(number);
    }
    watch(i).sum_up();
    return best;
  }

  bool passes(NodeIndex i, std::size_t depth) {
    return rule_.kind == ToleranceRule::Kind::rank ? rank_passes(i, depth)
                                                   : regret_passes(i, depth);
  }

  bool rank_passes(NodeIndex i, std::size_t depth) {
    const double present = present_gain(node(i));
    if (present == never) return false;
    std::int64_t ahead = 0;
    path_.with_all(depth);  // quicker than one by one
    for (const std::uint32_t number : layout().by_offset()) {
      ahead += count_better(growing_.gain, layout()[number], node(i).sums,
                            path_.with(depth, number), present);
    }
    return ahead < rule_.places;
  }

  // Features whose bound is tolerated pass unseen. A better split of the same feature that sends only
  // few rows to the other side is made: those rows move. So it is, if there is any tolerance, where
  // the present split leaves a side too little.
  bool regret_passes(NodeIndex i, std::size_t depth) {
    const std::int64_t n = node(i).sums.n;
    const std::uint32_t own = layout().number_of(node(i).split.feature);
    const bool known = watch(i).knows();
    const double present = present_gain(node(i));
    const bool is_void = present == never;
    if (is_void && (rule_.tolerance == 0 || !may_split(node(i)))) return false;
    const std::int64_t n_least = std::min(n, rows_per_move * watch(i).rows_to_move());
    const bool groups = watches_groups(layout());
    double plain = never;
    if (groups && known) {
      judge_those_present(i, depth);
      plain = judge_plain(i, depth).gain;
    }
    if (known &&
        tolerated(std::max(plain, watch(i).bound(growing_.gain, node(i).sums)), present, n_least))
      return true;
    if (!known) watch(i).start(growing_.gain, node(i).sums, layout());
    BestSplit best_own;
    if (is_void || !known || groups || !tolerated(bound(i, own), present, n_least)) {
      best_own = groups ? judge_alone(i, depth, own) : judge(i, depth, own);
      watch(i).set_margin(margin_of(layout()[own], node(i).split, path_.with(depth, own)));
    }
    const double standard = is_void ? best_own.gain : present;
    if (standard == never || !tolerated(best_own.gain, standard, n)) return false;
    if (groups) {
      const double others =
          known ? std::max(plain, watch(i).bound_of_others(growing_.gain, node(i).sums)) : -never;
      if (!tolerated(others, standard, n) && !tolerated(judge_all(i, depth).gain, standard, n))
        return false;
    }
    for (const std::uint32_t number : layout().by_offset()) {
      if (groups || number == own || (known && tolerated(bound(i, number), standard, n))) continue;
      if (!tolerated(judge(i, depth, number).gain, standard, n)) return false;
    }
    watch(i).sum_up();
    if (!(best_own.gain > present)) return true;
    const std::int64_t n_moving = count_moving(i, depth, best_own.split);
    if (is_void && largest_shift * n_moving > n) return false;
    if (is_void || !tolerated(best_own.gain, present, std::min(n, rows_per_move * n_moving))) {
      shift(i, best_own.split);
      watch(i).set_margin(margin_of(layout()[own], best_own.split, path_.with(depth, own)));
      ++counts.nodes_shifted;
      counts.rows_shifted += n_moving;
    }
    return true;
  }

  // --- shifting --------------------------------------------------------------------------------

  // To move a row costs as much as to regrow so many; beyond one row in so many, regrowing is cheaper.
  static constexpr std::int64_t rows_per_move = 5, largest_shift = 4;

  // RowTable that another split of the same feature sends to the other side.
  std::int64_t count_moving(NodeIndex i, std::size_t depth, const Split& split) {
    const std::uint32_t number = layout().number_of(split.feature);
    const FeatureLayout& place = layout()[number];
    const Sums* cells = path_.with(depth, number);
    std::int64_t n_moving = 0;
    for (std::uint32_t c = 0; c < place.n_codes; ++c) {
      const auto code = static_cast<Code>(c);
      if (node(i).split.goes_left(code) != split.goes_left(code)) n_moving += Totals(cells[c]).n;
    }
    return n_moving;
  }

  void shift(NodeIndex top, const Split& split) {
    rollback_->save_tree(t_);
    const Split before = std::exchange(node(top).split, split);
    const Reached reached = rows_in(leaf_ids_under(top));
    counts.work += work_of::sided_row * static_cast<double>(reached.inside.size());
    const auto choose = [&](std::span<const Slot> slots) {
      Array<Slot> moving;
      for (const Slot row : slots) {
        const Code code = forest_.rows.code(row, split.feature);
        if (before.goes_left(code) != split.goes_left(code)) moving.push_back(row);
      }
      rollback_->save_rows(t_, {moving.data(), moving.size()});
      return moving;
    };
    const Array<Slot> inside = choose(reached.inside), outside = choose(reached.outside);
    state_->leaf_ids.visit([&](auto* leaf_ids) {
      using LeafId = std::remove_reference_t<decltype(*leaf_ids)>;
      const auto move = [&](Slot row, bool inside) {
        const auto code = [&](std::uint32_t f) { return forest_.rows.code(row, f); };
        const NodeIndex from = leaf_of(row), to = tree_->route(code, top);
        leaf_ids[row] = static_cast<LeafId>(node(to).leaf);
        if (!inside) return;
        const Totals totals = forest_.contributions_to(t_).of(row);
        for (NodeIndex i = from; i != top; i = node(i).parent) node(i).sums -= totals;
        for (NodeIndex i = to; i != top; i = node(i).parent) node(i).sums += totals;
        book_sums(top, from, row, false);
        book_sums(top, to, row, true);
      };
      for (const Slot row : inside) move(row, true);
      for (const Slot row : outside) move(row, false);
    });
  }

  // --- after a refresh ---------------------------------------------------------------------------

  // Slots by leaf, leaves from left to right: each node's lie together. Before rows are booked, so
  // the removed ones still count and the added ones do not yet. Takes about three quarters of a refit
  // and is not counted as work: a refresh is no reason to train again.
  void count_sums() {
    std::vector<std::vector<Slot>> of_leaf(tree_->leaves.size());
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
      Histogram<Sums> histogram = count({slots.data() + begin, end - begin});
      kept(i) = NodeSums<Sums>(layout(), histogram);
    };
    keep(0);
    for (const Node& n : tree_->nodes) {
      if (n.is_leaf() || (!may_split(node(n.left)) && !may_split(node(n.right)))) continue;
      keep(node(n.left).sums.n <= node(n.right).sums.n ? n.left : n.right);
    }
    enter(0, 0);
    find_gains(0, 0);
    state_->counted = true;
    state_->counted_anew = change_.new_places;
    this->trim();
  }

  void find_gains(NodeIndex i, std::size_t depth) {
    if (node(i).is_leaf()) {
      find_best_of_leaf(i, depth);
      return;
    }
    set_gain(node(i), present_gain(node(i)));
    for (const NodeIndex child : {node(i).left, node(i).right}) {
      enter_if_needed(child, depth + 1);
      find_gains(child, depth + 1);
    }
  }

  std::vector<NodeIndex> leaves_;  // of the changed rows
  std::vector<bool> touched_;
  Findings findings_;
  double largest_change_ = 0;  // of a gain in the tree
  PathSums<Sums> path_;
  std::vector<std::vector<Slot>> changed_;  // per node, if features are watched in groups
  std::unordered_map<Slot, WipedVector<std::uint32_t>> present_;  // in a row
  WipedVector<std::uint32_t> numbers_;
  WipedVector<Code> codes_;           // of the row that is being booked
  WipedVector<std::uint32_t> cells_;  // that it counts in
};

}  // namespace graftboost
