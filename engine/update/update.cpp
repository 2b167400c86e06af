#include "update/update.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "update/split_check.hpp"
#include "update/regrow.hpp"
#include "core/parallel.hpp"
#include "update/undo.hpp"
#include "model/running_scores.hpp"

namespace graftboost {
namespace {

// Beyond one row in so many, booking the changed rows alone costs as much as counting all again.
constexpr double largest_change = 4;

// Some trees are looked at first, to see what all will cost: one in so many, but not fewer than so many.
constexpr std::size_t trees_per_sample = 6, fewest_sampled = 6;
// The more rows change, the surer a refit and the dearer the look: half as many trees from one row in so
// many on, and so on.
constexpr std::size_t rows_per_look = 40;

// An update that is likely to take more than this share of a refit's work becomes one: on the whole, or,
// once all trees are checked, for what is left to mend.
constexpr double most_work = 0.65, most_to_mend = 0.9;
// And at once if the first few trees are far beyond it.
constexpr double far_too_much_work = 1.2;
constexpr std::size_t fewest_glanced = 2;
// The first trees, which are looked at when rows are added, have about half as much to mend as all.
constexpr double first_trees = 2;

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// One update, tree by tree. The rows are appended but not yet vacated.
template <class Sums>
class Updater {
 public:
  Updater(Forest& forest, const Change& change, const ToleranceRule& rule, Rollback& rollback,
          int n_threads)
      : forest_(forest),
        change_(change),
        rule_(rule),
        rollback_(rollback),
        n_threads_(std::max(n_threads, 1)),
        k_trees_(static_cast<std::size_t>(forest.trees_per_iteration())),
        findings_(forest.trees.size()) {
    for (int i = 0; i < n_threads_; ++i) {
      checkers_.push_back(std::make_unique<TreeChecker<Sums>>(forest, change, rule, &rollback));
    }
  }

  // False if a refit is cheaper.
  bool run() {
    const Clock::time_point start = Clock::now();
    std::vector<std::size_t> sample, others;
    choose_sample(sample, others);
    const std::span<const std::size_t> looked_at(sample);
    const std::size_t n_glanced = (fewest_glanced + k_trees_ - 1) / k_trees_ * k_trees_;
    const auto glanced = looked_at.first(std::min(n_glanced, sample.size()));
    check(glanced);
    if (too_much_work(glanced, far_too_much_work)) return false;
    check(looked_at.subspan(glanced.size()));
    if (too_much_work(looked_at, most_work)) return false;
    check(others);
    const double refit_work = work_of_refit(looked_at) * static_cast<double>(findings_.size()) /
                              static_cast<double>(looked_at.size());
    if (work_to_mend(sample) + work_to_mend(others) > most_to_mend * refit_work) return false;
    const Clock::time_point checked = Clock::now();
    mend();
    seconds_checking_ = seconds_between(start, checked);
    seconds_mending_ = seconds_between(checked, Clock::now());
    return true;
  }

  UpdateCounts counts() const {
    UpdateCounts sum;
    for (const auto& checker : checkers_) sum += checker->counts;
    for (const auto& mender : menders_) sum += mender->counts;
    sum.seconds_checking = seconds_checking_;
    sum.seconds_mending = seconds_mending_;
    return sum;
  }

 private:
  // Every so many trees; but what rows record when they are added has to be found out from the first
  // tree on, so then it is the first ones.
  void choose_sample(std::vector<std::size_t>& sample, std::vector<std::size_t>& others) const {
    const std::size_t n_trees = findings_.size();
    const std::size_t n_changed = change_.added.size() + change_.removed.size();
    const std::size_t stride =
        std::clamp<std::size_t>(n_trees / fewest_sampled, 1, trees_per_sample) *
        (1 + rows_per_look * n_changed / forest_.rows.size());
    const std::size_t n_first = (n_trees / stride / k_trees_ + 1) * k_trees_;
    for (std::size_t t = 0; t < n_trees; ++t) {
      const bool chosen =
          change_.added.empty() ? t % stride == std::min(stride, n_trees) / 2 : t < n_first;
      (chosen ? sample : others).push_back(t);
    }
  }

  // What the added rows record in each tree depends on the values of their leaves in those before,
  // which follow from the rows of the leaves. What will be retrained is not known yet: like all rows,
  // the added ones keep what they recorded until their own node is.
  void record_added(std::size_t last_tree) {
    const std::size_t n = change_.added.size();
    if (n_recorded_ == 0) {
      for (const Slot row : change_.added) added_targets_.push_back(forest_.rows.target[row]);
      added_scores_.resize(k_trees_);
      added_gradients_.resize(k_trees_);
      for (std::size_t k = 0; k < k_trees_; ++k) {
        added_scores_[k].resize(n);
        added_scores_[k].fill(forest_.base_scores[k]);
        added_gradients_[k].resize(n);
      }
    }
    std::vector<const double*> from;
    std::vector<Gradient*> to;
    for (std::size_t k = 0; k < k_trees_; ++k) {
      from.push_back(added_scores_[k].data());
      to.push_back(added_gradients_[k].data());
    }
    // Few rows are done before a second thread has started.
    const std::size_t n_shares =
        n * k_trees_ < 64 ? 1 : std::min<std::size_t>(k_trees_, checkers_.size());
    for (; n_recorded_ < last_tree; n_recorded_ += k_trees_) {
      const std::size_t first = n_recorded_;
      forest_.loss.record(added_targets_, from, to, 0, n);
      parallel(n_threads_, n_shares, [&](std::size_t u) {
        for (std::size_t k = u; k < k_trees_; k += n_shares) {
          checkers_[u]->book_totals(first + k, {to[k], n}, {added_scores_[k].data(), n});
        }
      });
    }
  }

  // Trees after those that were checked before, if rows are added.
  void check(std::span<const std::size_t> trees) {
    if (trees.empty()) return;
    if (!change_.added.empty()) record_added(trees.back() + 1);
    parallel(n_threads_, checkers_.size(), [&](std::size_t u) {
      for (std::size_t i = u; i < trees.size(); i += checkers_.size()) {
        if (change_.added.empty()) checkers_[u]->book_totals(trees[i], {}, {});
        findings_[trees[i]] = checkers_[u]->check(trees[i]);
      }
    });
  }

  double work_of_refit(std::span<const std::size_t> trees) const {
    double work = 0;
    for (const std::size_t t : trees) work += work_to_grow(forest_.trees[t], 0, forest_.rows);
    return work;
  }

  // Whether what was done with these trees, and is still to be done, is more than this share of a refit's.
  bool too_much_work(std::span<const std::size_t> trees, double share) const {
    const double to_mend = work_to_mend(trees) * (change_.added.empty() ? 1 : first_trees);
    return !rule_.keeps_structure() && counts().work + to_mend > share * work_of_refit(trees);
  }

  // Besides growing, their scores have to be gathered: from half of the trees, on average.
  double work_to_mend(std::span<const std::size_t> trees) const {
    double work = 0;
    for (const std::size_t t : trees) {
      if (!findings_[t]) continue;
      for (const NodeIndex i : findings_[t]->failed) {
        const Tree& tree = forest_.trees[t];
        const std::int64_t n = tree.nodes[static_cast<std::size_t>(i)].sums.n;
        work += work_to_grow(tree, i, forest_.rows) +
                work_of::gathered_value * static_cast<double>(n) * static_cast<double>(t) / 2;
      }
    }
    return work * work_of::mending;
  }

  // In order, because scores come from the trees before. All nodes of one iteration are regrown side by
  // side, the largest first, so that threads are done at about the same time.
  void mend() {
    ScoreKeeper scores(forest_, n_threads_);
    for (std::size_t first = 0; first < findings_.size(); first += k_trees_) {
      std::vector<std::size_t> trees;
      std::vector<std::pair<std::size_t, NodeIndex>> nodes;
      for (std::size_t t = first; t < first + k_trees_; ++t) {
        if (!findings_[t] || !findings_[t]->order) continue;
        trees.push_back(t);
        rollback_.save_tree(t);
        for (const NodeIndex i : findings_[t]->failed) nodes.emplace_back(t, i);
      }
      if (trees.empty()) continue;
      while (menders_.size() < checkers_.size()) {
        menders_.push_back(std::make_unique<TreeMender<Sums>>(forest_, change_, rule_, &rollback_,
                                                              scores, n_threads_));
      }
      scores.begin_iteration(first);
      const auto n_rows = [&](const std::pair<std::size_t, NodeIndex>& node) {
        return forest_.trees[node.first].nodes[static_cast<std::size_t>(node.second)].sums.n;
      };
      std::stable_sort(nodes.begin(), nodes.end(),
                       [&](const auto& a, const auto& b) { return n_rows(a) > n_rows(b); });
      std::vector<Regrown<Sums>> regrown(nodes.size());
      with_menders(nodes.size(), [&](TreeMender<Sums>& mender, std::size_t i) {
        regrown[i] = mender.regrow(nodes[i].first, nodes[i].second);
      });
      with_menders(trees.size(), [&](TreeMender<Sums>& mender, std::size_t j) {
        std::vector<Regrown<Sums>> of_tree;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          if (nodes[i].first == trees[j]) of_tree.push_back(std::move(regrown[i]));
        }
        mender.mend(trees[j], std::move(of_tree));
      });
    }
  }

  // Calls with every number up to n, and a mender that nobody else has at the time.
  template <class Use>
  void with_menders(std::size_t n, Use&& use) {
    parallel(n_threads_, n, [&](std::size_t i) {
      std::unique_ptr<TreeMender<Sums>> mender;
      {
        std::lock_guard lock(menders_lock_);
        mender = std::move(menders_.back());
        menders_.pop_back();
      }
      use(*mender, i);
      std::lock_guard lock(menders_lock_);
      menders_.push_back(std::move(mender));
    });
  }

  Forest& forest_;
  const Change& change_;
  const ToleranceRule& rule_;
  Rollback& rollback_;
  int n_threads_;
  std::size_t k_trees_;
  std::vector<std::optional<Findings>> findings_;  // per tree; nothing where no row is in it
  double seconds_checking_ = 0, seconds_mending_ = 0;
  std::size_t n_recorded_ = 0;  // trees in which the added rows have their gradients
  WipedVector<std::int32_t> added_targets_;
  std::vector<Array<double>> added_scores_;  // before the next iteration, per tree of one
  std::vector<Array<Gradient>> added_gradients_;
  std::vector<std::unique_ptr<TreeChecker<Sums>>> checkers_;  // one per thread
  std::mutex menders_lock_;
  std::vector<std::unique_ptr<TreeMender<Sums>>> menders_;  // those that are idle
};

template <class Sums>
bool update_all(Forest& forest, const Change& change, const ToleranceRule& rule, Rollback& rollback,
                UpdateCounts& counts, int n_threads) {
  Updater<Sums> updater(forest, change, rule, rollback, n_threads);
  const bool done = updater.run();
  counts = updater.counts();
  return done;
}

bool holds_packed_sums(const Forest& forest) {
  return std::holds_alternative<KeptSums<PackedSums>>(forest.states[0].sums);
}

// Takes the removed rows out of every tree and puts the added rows in, regrowing the nodes whose split
// no longer passes. The removed rows stay in their slots. False if a refit is cheaper: then the trees
// are to be rolled back.
bool update_trees(Forest& forest, const Change& change, const ToleranceRule& rule,
                  Rollback& rollback, UpdateCounts& counts, int n_threads) {
  const auto run = holds_packed_sums(forest) ? update_all<PackedSums> : update_all<WideSums>;
  return run(forest, change, rule, rollback, counts, n_threads);
}

}  // namespace

void restore_sums(Forest& forest, int n_threads) {
  const auto stale = [](const TreeState& state) { return !state.counted; };
  if (std::none_of(forest.states.begin(), forest.states.end(), stale)) return;
  const Change none;
  const ToleranceRule rule;
  parallel(n_threads, forest.trees.size(), [&](std::size_t t) {
    std::visit([&]<class Sums>(
                   KeptSums<Sums>&) { TreeChecker<Sums>(forest, none, rule, nullptr).restore(t); },
               forest.states[t].sums);
  });
}

namespace {

// --- what can be wrong ---------------------------------------------------------------------------

std::vector<Slot> slots_of_ids(const Forest& forest, std::span<const RowId> ids,
                               const std::string& argument) {
  std::vector<Slot> slots;
  for (const RowId id : ids) slots.push_back(forest.slot_of(id, argument));
  std::sort(slots.begin(), slots.end());
  const auto twice = std::adjacent_find(slots.begin(), slots.end());
  if (twice != slots.end()) {
    throw std::invalid_argument(argument + ": the id " + std::to_string(forest.rows.ids[*twice]) +
                                " is to be removed twice; name each row once");
  }
  return slots;
}

// Ids that no other row has.
void check_added_ids(const Forest& forest, std::span<const RowId> added,
                     const std::vector<Slot>& removed) {
  for (const RowId id : added) {
    const auto slot = forest.index.find(forest.rows.ids, id);
    if (slot && !std::binary_search(removed.begin(), removed.end(), *slot)) {
      throw std::invalid_argument("row_ids: the model already holds a row with id " +
                                  std::to_string(id) +
                                  "; remove it in the same update, or choose another id");
    }
  }
  WipedVector<RowId> ids(added.begin(), added.end());
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) {
    throw std::invalid_argument("row_ids: the id " + std::to_string(*twice) +
                                " is given to two rows");
  }
}

// The classes of a model that grows are numbered anew: each former one has a number of its own.
void check_relabel(const Forest& forest, std::span<const std::int32_t> relabel, int n_classes) {
  std::vector<bool> taken(static_cast<std::size_t>(n_classes));
  bool fine = relabel.size() == static_cast<std::size_t>(forest.loss.n_classes);
  for (const std::int32_t label : relabel) {
    fine = fine && label >= 0 && label < n_classes && !taken[static_cast<std::size_t>(label)];
    if (fine) taken[static_cast<std::size_t>(label)] = true;
  }
  if (!fine) throw std::invalid_argument("relabel: each class needs a number of its own");
}

// Whether a refit can set a scale that holds the targets of all rows there will be.
bool can_scale(const Forest& forest, std::span<const double> added,
               const std::vector<Slot>& removed) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  const auto see = [&](double y) { least = std::min(least, y), most = std::max(most, y); };
  for (Slot slot = 0; slot < forest.rows.size(); ++slot) {
    if (!std::binary_search(removed.begin(), removed.end(), slot))
      see(forest.rows.raw_target[slot]);
  }
  for (const double y : added) see(y);
  return Loss(forest.loss).set_scale(least, most);
}

// Targets and weights that the grids can hold: as they are, or as a refit will set them. RowTable without a
// weight have weight 1.
template <class Table>
void check_added_values(const Forest& forest, const Sample<Table>& added,
                        const std::vector<Slot>& removed, bool refits) {
  if (forest.loss.kind == LossKind::squared && !(refits && can_scale(forest, added.y, removed))) {
    for (const double y : added.y) forest.loss.target_on_grid(y);
  }
  if (refits || !forest.loss.weighted) return;
  for (const double weight : added.weight) forest.loss.weight_on_grid(weight);
  if (added.weight.empty()) forest.loss.weight_on_grid(1);
}

template <class Table>
void check_what_is_left(const Forest& forest, const Sample<Table>* added,
                        const std::vector<Slot>& removed, const std::string& argument) {
  if (forest.rows.size() + (added == nullptr ? 0 : added->x.rows) == removed.size()) {
    throw std::invalid_argument(argument +
                                ": these are all the rows that the model holds; a model needs at "
                                "least one, so add rows in the same update or fit anew");
  }
  if (forest.rows.weight.empty()) return;
  std::int64_t left = forest.target_sums.weight;
  for (const Slot slot : removed) left -= forest.rows.weight[slot];
  const bool any_added =
      added != nullptr &&
      (added->weight.empty() ||
       std::any_of(added->weight.begin(), added->weight.end(), [](double w) { return w > 0; }));
  if (left == 0 && !any_added) {
    throw std::invalid_argument(argument +
                                ": all rows that would be left have weight 0; a model needs one "
                                "that counts, so add one in the same update or fit anew");
  }
}

// Whether the weights of all rows there will be may add up to more than the sums can hold.
template <class Table>
bool too_heavy(const Forest& forest, const Sample<Table>& added) {
  const Loss& loss = forest.loss;
  const auto units = [&](double weight) {
    return std::min(weight / loss.weight_scale / loss.weight_unit, Loss::largest_weight) + 1;
  };
  auto sum = static_cast<double>(forest.target_sums.weight);
  for (const double weight : added.weight) sum += units(weight);
  if (added.weight.empty()) sum += units(1) * static_cast<double>(added.x.rows);
  return sum > static_cast<double>(loss.most_weight());
}

// Whether the trees cannot stay: there are more classes, or many changed rows, or rows that the
// histograms as they are cannot represent.
template <class Table>
bool must_refit(const Forest& forest, const Sample<Table>* added, std::size_t n_removed, bool grows,
                bool keeps_structure) {
  const std::size_t n_added = added == nullptr ? 0 : added->x.rows;
  const std::size_t n_rows = forest.rows.size() + n_added;
  const bool many =
      largest_change * static_cast<double>(n_removed + n_added) > static_cast<double>(n_rows);
  if (grows || (many && !keeps_structure)) return true;
  if (holds_packed_sums(forest) && static_cast<std::int64_t>(n_rows) > PackedSums::most_rows)
    return true;
  if (n_added == 0) return false;
  return forest.loss.weighted ? too_heavy(forest, *added) : !added->weight.empty();
}

// --- in place ------------------------------------------------------------------------------------

std::int64_t weight_of(const Forest& forest, std::size_t slot) {
  return forest.rows.weight.empty() ? 1 : forest.rows.weight[slot];
}

template <class Table>
void append_rows(Forest& forest, const Sample<Table>& added, Change& change, int n_threads) {
  const std::size_t n_before = forest.rows.size();
  forest.append(added, n_threads);
  forest.put_on_grids(n_before);
  for (std::size_t slot = n_before; slot < forest.rows.size(); ++slot) {
    change.added.push_back(static_cast<Slot>(slot));
    forest.index.insert(forest.rows.ids, static_cast<Slot>(slot));
  }
  for (TreeState& state : forest.states) {
    state.recorded.resize(forest.rows.size());
    state.leaf_ids.resize(forest.rows.size());
  }
}

// Rare columns that enough rows have now get a place.
void place_frequent_columns(Forest& forest, Change& change, Rollback& rollback) {
  const std::size_t first_added = forest.rows.size() - change.added.size();
  const std::vector<std::uint32_t> frequent = forest.rows.find_frequent(
      static_cast<Slot>(first_added), static_cast<std::size_t>(forest.params.min_samples_leaf));
  if (frequent.empty()) return;
  CodeLayout next = forest.rows.layout;
  next.add(frequent);
  change.new_places = true;
  change.new_cells = forest.rows.cells_to_place(next, frequent);
  forest.rows.give_places(next, frequent, change.new_cells);
  rollback.keep_layout(std::move(next));
  std::erase_if(change.new_cells,
                [&](const RowTable::NewCell& cell) { return cell.row >= first_added; });
}

// Columns that no row has any more lose their places: nothing may tell that one had them. Where a tree
// still splits by such a column, it stays as long as the tree does.
std::optional<CodeLayout> layout_to_be(const Forest& forest, const Change& change) {
  if (!forest.rows.have_added_columns(change.removed)) return std::nullopt;
  std::vector<std::uint32_t> asked_for;
  for (const Tree& tree : forest.trees) {
    for (const Node& node : tree.nodes) asked_for.push_back(node.split.feature);
  }
  std::sort(asked_for.begin(), asked_for.end());
  return forest.rows.layout_without_unused(*forest.bins, asked_for, change.removed);
}

// The removed rows leave their slots.
void vacate(Forest& forest, const std::vector<Slot>& removed,
            const std::vector<RowTable::Move>& moves) noexcept {
  if (removed.empty()) return;
  const std::size_t left = forest.rows.size() - removed.size();
  for (const RowTable::Move& move : moves) forest.index.erase(forest.rows.ids, move.from);
  forest.rows.vacate(removed, moves);
  for (const RowTable::Move& move : moves) forest.index.insert(forest.rows.ids, move.to);
  for (TreeState& state : forest.states) {
    move_and_shrink(state.recorded, moves, left);
    move_and_shrink(state.leaf_ids.narrow, moves, left);
    move_and_shrink(state.leaf_ids.wide, moves, left);
  }
}

void retire_columns(Forest& forest, CodeLayout& next) noexcept {
  forest.rows.exchange_layout(next);
  for (TreeState& state : forest.states) {
    for (Watch& watch : state.watches) watch.forget();
    std::visit(
        [&](auto& kept) {
          for (auto& sums : kept) sums.move_cells(next, forest.rows.layout);
        },
        state.sums);
  }
}

// False, and nothing has changed, if a refit is cheaper.
template <class Table>
bool update_in_place(Forest& forest, const Sample<Table>* added, Change& change,
                     const ToleranceRule& rule, UpdateCounts& counts, int n_threads) {
  Rollback rollback(forest);
  for (const Slot slot : change.removed) {
    forest.index.erase(forest.rows.ids, slot);
    forest.target_sums.add(forest.rows.target[slot], -weight_of(forest, slot));
  }
  if (added != nullptr) append_rows(forest, *added, change, n_threads);
  forest.base_scores = forest.loss.base_scores(forest.target_sums);
  place_frequent_columns(forest, change, rollback);
  if (!update_trees(forest, change, rule, rollback, counts, n_threads)) return false;

  const std::vector<RowTable::Move> moves = forest.rows.moves_to_vacate(change.removed);
  std::optional<CodeLayout> next = layout_to_be(forest, change);

  // Nothing below can fail.
  rollback.commit();
  vacate(forest, change.removed, moves);
  if (next) retire_columns(forest, *next);
  return true;
}

// --- by a refit ----------------------------------------------------------------------------------

void grow_classes(Forest& forest, std::span<const std::int32_t> relabel, int n_classes) {
  forest.loss.kind = LossKind::softmax;
  forest.loss.n_classes = n_classes;
  for (std::int32_t& target : forest.rows.target)
    target = relabel[static_cast<std::size_t>(target)];
}

}  // namespace

template <class Table>
UpdateCounts update(Forest& forest, const Sample<Table>* added, std::span<const RowId> removed,
                    const std::string& removed_argument, std::span<const std::int32_t> relabel,
                    int n_classes, const ToleranceRule& rule, int n_threads) {
  const Forest::Exclusive lock(forest);
  if (!forest.index.built()) forest.index.build(forest.rows.ids);
  const bool grows = forest.loss.kind != LossKind::squared && n_classes > forest.loss.n_classes;
  if (grows) check_relabel(forest, relabel, n_classes);
  Change change;
  change.removed = slots_of_ids(forest, removed, removed_argument);
  if (added != nullptr)
    check_sample(*added, *forest.bins, grows ? n_classes : forest.loss.n_classes);
  const bool refits =
      must_refit(forest, added, change.removed.size(), grows, rule.keeps_structure());
  if (added != nullptr) {
    check_added_ids(forest, added->ids, change.removed);
    check_added_values(forest, *added, change.removed, refits);
  }
  check_what_is_left(forest, added, change.removed, removed_argument);

  UpdateCounts counts;
  if (refits || !update_in_place(forest, added, change, rule, counts, n_threads)) {
    counts = {};
    counts.refitted = true;
    const Clock::time_point start = Clock::now();
    forest.refit(n_threads, [&](Forest& next) {
      if (grows) grow_classes(next, relabel, n_classes);
      if (added != nullptr) next.append(*added, n_threads);
      next.rows.vacate(change.removed, next.rows.moves_to_vacate(change.removed));
    });
    counts.seconds_refitting = seconds_between(start, Clock::now());
  }
  forest.publish_change();
  return counts;
}

#define GRAFTBOOST_FOR_TABLE(Table)                                                    \
  template UpdateCounts update(Forest&, const Sample<Table>*, std::span<const RowId>,  \
                               const std::string&, std::span<const std::int32_t>, int, \
                               const ToleranceRule&, int);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
