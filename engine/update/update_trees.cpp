#include "update/update_trees.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "model/running_scores.hpp"
#include "update/deferral.hpp"
#include "update/fidelity_rule.hpp"
#include "update/histogram_budget.hpp"
#include "update/regrow.hpp"
#include "update/row_answers.hpp"
#include "update/split_check.hpp"

namespace graftboost {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// What the check of a tree found.
struct Findings {
  std::vector<NodeIndex> failed;
  bool order_changed = false;
  bool is_shifted = false;  // at least one split was
};

// Recomputes the histograms and gains of a tree.
template <class Sums>
void restore_tree(const UpdateContext& context, SplitChecker<Sums>& checker, std::size_t t) {
  TreeNodes& nodes = context.model.nodes[t];
  recount_tree<Sums>(context.model, t, context.gain);
  TreeCheck<Sums> check;
  check.reset(t, nodes.tree.nodes.size(), false);
  checker.evaluate_all(check);
  nodes.counted = true;
  trim_histograms(context.model, nodes.tree, std::get<TreeHistograms<Sums>>(nodes.histograms));
}

template <class Sums>
void restore_all(const UpdateContext& context) {
  parallel(context.n_threads, context.model.nodes.size(), [&](std::size_t t) {
    if (context.model.nodes[t].counted) return;
    SplitChecker<Sums> checker(context);
    restore_tree(context, checker, t);
  });
}

// One update of all trees.
//
// The node half books the changed rows, which it has as values, and checks the nodes they touch.
// What it needs from the rows it asks for in rounds, for all trees of a round at once: histograms
// that are not cached, and the rows that shifted splits move. Then failed nodes are regrown,
// iteration by iteration. Everything is counted per tree and added up in the order of trees, so
// that neither threads nor shards make a difference.
//
// By the fidelity rule, the nodes are surveyed first. When all trees are, the flips tell what the
// model remembers of the changed rows, and the tolerance follows from that.
template <class Sums>
class Updater {
  using CheckPtr = std::unique_ptr<TreeCheck<Sums>>;

 public:
  Updater(UpdateContext& context, ChangedRows& changed)
      : context_(context),
        model_(context.model),
        changed_(changed),
        n_threads_(std::max(context.n_threads, 1)),
        k_trees_(static_cast<std::size_t>(model_.trees_per_iteration())),
        findings_(model_.nodes.size()),
        surveyed_(model_.nodes.size()),
        counts_(model_.nodes.size()),
        is_counted_(model_.nodes.size()) {
    for (int i = 0; i < n_threads_; ++i)
      checkers_.push_back(std::make_unique<SplitChecker<Sums>>(context));
    slots_.resize(checkers_.size());
  }

  // False if a refit is cheaper.
  bool run() {
    const Clock::time_point start = Clock::now();
    if (context_.rule.defers) {
      defer();
      seconds_checking_ = seconds_between(start, Clock::now());
      return true;
    }
    if (context_.rule.kind == UpdateRule::Kind::fidelity && !context_.rule.keeps_structure())
      flip_rule_ = std::make_unique<FidelityRule>(context_, changed_);
    std::vector<std::size_t> sample, others;
    choose_sample(sample, others);
    if (!(flip_rule_ ? check_by_fidelity(sample, others) : check_by_tolerance(sample, others)))
      return false;
    const double refit_work = work_of_refit(sample) * static_cast<double>(findings_.size()) /
                              static_cast<double>(sample.size());
    if (work_to_regrow(sample) + work_to_regrow(others) > cost::most_to_regrow * refit_work)
      return false;
    regrow_all(start);
    return true;
  }

  // Regrows nodes for rows that earlier updates deferred; there are no changed rows. False if a
  // refit is cheaper and the work is not limited.
  bool run_deferred(double most_work, bool& reaches_target) {
    const Clock::time_point start = Clock::now();
    const DeferredRule& rule = survey_deferred(most_work);
    const std::vector<std::size_t> trees = all_trees();
    for (const std::size_t t : trees) findings_[t].failed = rule.nodes_to_regrow(t);
    if (most_work >= 1 && is_too_much_work(trees, cost::most_work)) return false;
    for (const std::size_t t : trees) findings_[t].failed.clear();
    reaches_target = rule.reaches_target();
    apply_actions();
    regrow_all(start);
    return true;
  }

  // What is deferred, and what it would take to regrow it. The caller restores nodes.
  PendingSurvey survey_pending() {
    const DeferredRule& rule = survey_deferred(std::numeric_limits<double>::infinity());
    PendingSurvey found{context_.model.deferred, rule.n_flips(), rule.work(), {}};
    for (const std::size_t t : all_trees())
      if (is_counted_[t] == 0) context_.undo.keep_histograms(t);
    found.now = rule.estimate_before();
    return found;
  }

  // Books the changed rows, looks what the model remembers of them, and books them back.
  MemorySurvey survey() {
    const std::vector<std::size_t> trees = all_trees();
    auto rule = std::make_unique<FidelityRule>(context_, changed_);
    const FidelityRule& fidelity = *rule;
    flip_rule_ = std::move(rule);
    visit(trees);
    foresee(trees);
    MemorySurvey found;
    for (const std::int64_t units : fidelity.memory())
      found.memory.push_back(static_cast<double>(units) * memory_unit);
    found.work = work_to_regrow(trees) / work_of_refit(trees);
    parallel(n_threads_, checkers_.size(), [&](std::size_t u) {
      for (std::size_t t = u; t < trees.size(); t += checkers_.size())
        if (surveyed_[t] && is_counted_[t] == 0) checkers_[u]->book_back(*surveyed_[t], changed_);
    });
    for (const std::size_t t : trees)
      if (is_counted_[t] == 0) context_.undo.keep_histograms(t);
    return found;
  }

  UpdateCounts counts() const {
    UpdateCounts sum;
    for (const UpdateCounts& counts : counts_) sum += counts;
    sum.fidelity = estimate_;
    sum.seconds_checking = seconds_checking_;
    sum.seconds_regrowing = seconds_regrowing_;
    return sum;
  }

 private:
  std::vector<std::size_t> all_trees() const {
    std::vector<std::size_t> trees(findings_.size());
    std::iota(trees.begin(), trees.end(), std::size_t{0});
    return trees;
  }

  // When all trees are checked.
  void regrow_all(Clock::time_point start) {
    const Clock::time_point checked = Clock::now();
    regrow();
    if (flip_rule_) estimate_ = flip_rule_->estimate(restructured());
    seconds_checking_ = seconds_between(start, checked);
    seconds_regrowing_ = seconds_between(checked, Clock::now());
  }

  const DeferredRule& survey_deferred(double most_work) {
    auto rule = std::make_unique<DeferredRule>(context_, most_work);
    const DeferredRule& found = *rule;
    flip_rule_ = std::move(rule);
    is_deferred_ = true;
    visit(all_trees());
    flip_rule_->select(all_trees());
    return found;
  }

  // Books the changed rows in all trees and leaves their structure as it is.
  void defer() {
    const ChangedScores before = scores_before(context_, changed_);
    if (changed_.n_added() != 0) book_added(findings_.size());
    const bool grouped = GainBounds::are_grouped(model_.layout());
    parallel(n_threads_, checkers_.size(), [&](std::size_t u) {
      TreeCheck<Sums> check;
      for (std::size_t t = u; t < findings_.size(); t += checkers_.size()) {
        if (changed_.n_added() == 0) book(*checkers_[u], t, {}, {});
        check.reset(t, model_.nodes.tree(t).nodes.size(), grouped);
        if (checkers_[u]->book_only(check, changed_, is_counted_[t] != 0))
          finish(*checkers_[u], check);
      }
    });
    defer_rows(context_, changed_, before);
  }

  // Check all trees and find out which nodes are to be regrown; false if a refit is cheaper.
  bool check_by_tolerance(std::span<const std::size_t> sample,
                          std::span<const std::size_t> others) {
    const std::size_t n_first = (cost::fewest_checked_first + k_trees_ - 1) / k_trees_ * k_trees_;
    const auto first = sample.first(std::min(n_first, sample.size()));
    visit(first);
    if (is_too_much_work(first, cost::far_too_much_work)) return false;
    visit(sample.subspan(first.size()));
    if (is_too_much_work(sample, cost::most_work)) return false;
    visit(others);
    return true;
  }
  bool check_by_fidelity(std::span<const std::size_t> sample, std::span<const std::size_t> others) {
    visit(sample);
    if (cost::fewest_foreseen * static_cast<double>(changed_.size()) >
        static_cast<double>(context_.n_rows)) {
      foresee(sample);
      if (is_too_much_work(sample, cost::most_work)) return false;
    }
    visit(others);
    flip_rule_->select(all_trees());
    apply_actions();
    return true;
  }

  // --- which trees are checked first ------------------------------------------------------------

  // Evenly spaced trees; but what added rows record is found out from the first tree on, so if
  // there are any, the first trees.
  void choose_sample(std::vector<std::size_t>& sample, std::vector<std::size_t>& others) const {
    const std::size_t n_trees = findings_.size();
    const std::size_t stride =
        std::clamp<std::size_t>(n_trees / cost::fewest_sampled, 1, cost::trees_per_sample) *
        (1 + cost::rows_per_sample * changed_.size() / model_.n_rows());
    const std::size_t n_first = (n_trees / stride / k_trees_ + 1) * k_trees_;
    for (std::size_t t = 0; t < n_trees; ++t) {
      const bool chosen =
          changed_.n_added() == 0 ? t % stride == std::min(stride, n_trees) / 2 : t < n_first;
      (chosen ? sample : others).push_back(t);
    }
  }

  double work_of_refit(std::span<const std::size_t> trees) const {
    double work = 0;
    for (const std::size_t t : trees) work += context_.cost.of_growing(model_.nodes.tree(t), 0);
    return work;
  }

  // Whether what was done with these trees, and is left to do, exceeds this share of a refit's
  // work.
  bool is_too_much_work(std::span<const std::size_t> trees, double share) const {
    const double to_regrow =
        work_to_regrow(trees) * (changed_.n_added() == 0 ? 1 : cost::first_trees);
    return !context_.rule.keeps_structure() &&
           counts().work.amount() + to_regrow > share * work_of_refit(trees);
  }

  // Besides growing, scores have to be gathered: from half of the trees, on average.
  double work_to_regrow(std::span<const std::size_t> trees) const {
    double work = 0;
    for (const std::size_t t : trees) {
      const Tree& tree = model_.nodes.tree(t);
      for (const NodeIndex i : findings_[t].failed) {
        work += context_.cost.of_growing(tree, i) + cost::gathered_value *
                                                        static_cast<double>(tree[i].sums.n) *
                                                        static_cast<double>(t) / 2;
      }
    }
    return work * cost::regrowing;
  }

  // --- booking ----------------------------------------------------------------------------------

  // What the added rows record in a tree depends on the values of their leaves in the trees before,
  // which follow from the sums of these leaves. Whether a node will be regrown is not known yet:
  // like all rows, the added ones keep what they recorded until their own node is.
  void book_added(std::size_t last_tree) {
    const std::size_t n = changed_.n_added();
    if (n_booked_ == 0) {
      const RowTable& rows = changed_.rows();
      for (std::size_t i = changed_.n_removed(); i < changed_.size(); ++i)
        added_targets_.push_back(rows.target[i]);
      added_scores_.resize(k_trees_);
      added_gradients_.resize(k_trees_);
      for (std::size_t k = 0; k < k_trees_; ++k) {
        added_scores_[k].resize(n);
        added_scores_[k].fill(model_.base_scores[k]);
        added_gradients_[k].resize(n);
      }
    }
    std::vector<const double*> from;
    std::vector<Gradient*> to;
    for (std::size_t k = 0; k < k_trees_; ++k) {
      from.push_back(added_scores_[k].data());
      to.push_back(added_gradients_[k].data());
    }
    // Few rows are booked before a second thread has started.
    const std::size_t n_shares =
        n * k_trees_ < 64 ? 1 : std::min<std::size_t>(k_trees_, checkers_.size());
    for (; n_booked_ < last_tree; n_booked_ += k_trees_) {
      const std::size_t first = n_booked_;
      model_.loss.record(added_targets_, from, to, 0, n);
      parallel(n_threads_, n_shares, [&](std::size_t u) {
        for (std::size_t k = u; k < k_trees_; k += n_shares)
          book(*checkers_[u], first + k, {to[k], n}, {added_scores_[k].data(), n});
      });
    }
  }

  // Books the sums of a tree's nodes, and tells the shards where the added rows are.
  void book(SplitChecker<Sums>& checker, std::size_t t, std::span<const Gradient> gradients,
            std::span<double> scores) {
    if (!model_.nodes[t].counted) recount(checker, t);
    book_sums(context_, t, changed_, gradients, scores, counts_[t]);
    context_.variance[t] = model_.variance_in(t);
    const RecordedGradients recorded = changed_.recorded_in(t, model_.loss.kind);
    for (std::size_t i = changed_.n_removed(); i < changed_.size(); ++i) {
      const auto [shard, slot] = changed_.location(i);
      model_.shards[shard].place(t, slot, changed_.leaf(t, i), recorded.gradient[i]);
    }
  }

  // After a refresh, before the changed rows are booked. Takes about three quarters of a refit, and
  // is not counted as work: a refresh is no reason to refit.
  void recount(SplitChecker<Sums>& checker, std::size_t t) {
    context_.undo.save_tree(t);
    restore_tree(context_, checker, t);
    is_counted_[t] = 1;
  }

  // --- checking, in rounds ----------------------------------------------------------------------

  // Books the changed rows in trees, and checks or surveys them. If rows are added, these trees come
  // after those that were visited before.
  void visit(std::span<const std::size_t> trees) {
    if (trees.empty()) return;
    if (changed_.n_added() != 0) book_added(trees.back() + 1);
    const bool grouped = GainBounds::are_grouped(model_.layout());
    std::vector<CheckPtr> waiting(trees.size());
    parallel(n_threads_, checkers_.size(), [&](std::size_t u) {
      CheckPtr check;
      for (std::size_t i = u; i < trees.size(); i += checkers_.size()) {
        const std::size_t t = trees[i];
        if (changed_.n_added() == 0) book(*checkers_[u], t, {}, {});
        if (!check) check = std::make_unique<TreeCheck<Sums>>();
        check->reset(t, model_.nodes.tree(t).nodes.size(), grouped);
        check->is_survey = flip_rule_ != nullptr;
        const bool begun = is_deferred_
                               ? checkers_[u]->begin_deferred(*check)
                               : checkers_[u]->begin(*check, changed_, is_counted_[t] != 0);
        if (!begun) continue;
        if (check->is_waiting()) {
          waiting[i] = std::move(check);
        } else {
          end_visit(*checkers_[u], check);
        }
      }
    });
    go_on(waiting);
  }

  // Continues checks that wait until all are finished.
  void go_on(std::vector<CheckPtr>& waiting) {
    std::erase(waiting, nullptr);
    while (!waiting.empty()) {
      parallel(n_threads_, checkers_.size(), [&](std::size_t u) {
        for (std::size_t i = u; i < waiting.size(); i += checkers_.size())
          answer(context_, *waiting[i], slots_[u]);
      });
      parallel(n_threads_, checkers_.size(), [&](std::size_t u) {
        for (std::size_t i = u; i < waiting.size(); i += checkers_.size()) {
          checkers_[u]->resume(*waiting[i]);
          if (waiting[i]->is_waiting()) continue;
          CheckPtr done = std::move(waiting[i]);
          end_visit(*checkers_[u], done);
        }
      });
      std::erase(waiting, nullptr);
    }
  }

  // A survey is kept until the tolerance is known; a check is finished, and can be used again.
  void end_visit(SplitChecker<Sums>& checker, CheckPtr& check) {
    if (!check->is_survey) return finish(checker, *check);
    flip_rule_->set_flips(check->t, std::move(check->flips));
    check->drop_answers();
    surveyed_[check->t] = std::move(check);
  }

  void finish(SplitChecker<Sums>& checker, TreeCheck<Sums>& check) {
    checker.finish(check);
    // The order in which nodes failed depends on rounds; nothing else may.
    std::sort(check.failed.begin(), check.failed.end());
    findings_[check.t] = {check.failed, check.order_changed, check.has_shifted};
    counts_[check.t] += check.counts;
  }

  // --- rules that survey first ------------------------------------------------------------------------

  // Notes which nodes of these surveyed trees would be regrown if they stood for all.
  void foresee(std::span<const std::size_t> trees) {
    flip_rule_->select(trees);
    for (const std::size_t t : trees) findings_[t].failed = flip_rule_->nodes_to_regrow(t);
  }

  // When all trees are surveyed and actions are selected: does everything but for regrowing.
  void apply_actions() {
    flip_rule_->before_settling();
    std::vector<CheckPtr> waiting(findings_.size());
    parallel(n_threads_, checkers_.size(), [&](std::size_t u) {
      for (std::size_t t = u; t < findings_.size(); t += checkers_.size()) {
        if (!surveyed_[t]) continue;
        CheckPtr check = std::move(surveyed_[t]);
        check->is_survey = false;
        if (flip_rule_->has_actions(t)) checkers_[u]->apply(*check, flip_rule_->flips(t));
        if (check->is_waiting()) {
          waiting[t] = std::move(check);
        } else {
          end_visit(*checkers_[u], check);
        }
      }
    });
    go_on(waiting);
  }

  // --- regrowing --------------------------------------------------------------------------------

  // In order, because scores come from the trees before. The nodes of one iteration are regrown
  // side by side, the largest first, so that threads finish at about the same time.
  void regrow() {
    const auto changed = [](const Findings& findings) { return findings.order_changed; };
    if (std::none_of(findings_.begin(), findings_.end(), changed)) return;
    RunningScores scores(model_, n_threads_);
    const GrowingCells cells = GrowingCells::of_layout(model_.shards);
    for (std::size_t i = 0; i < checkers_.size(); ++i)
      regrowers_.push_back(
          std::make_unique<Regrower<Sums>>(context_, scores, cells, *checkers_[i]));
    for (std::size_t first = 0; first < findings_.size(); first += k_trees_)
      regrow_iteration(first, scores);
    regrowers_.clear();
  }

  void regrow_iteration(std::size_t first, RunningScores& scores) {
    struct Task {
      std::size_t t;
      NodeIndex node;
      std::int64_t n_rows;
      UpdateCounts counts;
      Regrown<Sums> regrown;
    };
    std::vector<std::size_t> trees;
    std::vector<Task> tasks;
    for (std::size_t t = first; t < first + k_trees_; ++t) {
      if (!findings_[t].order_changed) continue;
      trees.push_back(t);
      context_.undo.save_tree(t);
      for (const NodeIndex i : findings_[t].failed)
        tasks.push_back({t, i, model_.nodes.tree(t)[i].sums.n, {}, {}});
    }
    if (trees.empty()) return;
    scores.begin_iteration(first);
    std::stable_sort(tasks.begin(), tasks.end(),
                     [](const Task& a, const Task& b) { return a.n_rows > b.n_rows; });
    with_regrowers(tasks.size(), [&](Regrower<Sums>& regrower, std::size_t i) {
      tasks[i].regrown = regrower.regrow(tasks[i].t, tasks[i].node, tasks[i].counts);
    });
    for (const Task& task : tasks) counts_[task.t] += task.counts;
    with_regrowers(trees.size(), [&](Regrower<Sums>& regrower, std::size_t j) {
      std::vector<Regrown<Sums>> regrown;
      for (Task& task : tasks) {
        if (task.t == trees[j]) regrown.push_back(std::move(task.regrown));
      }
      regrower.graft_in(trees[j], std::move(regrown), counts_[trees[j]]);
    });
  }

  std::vector<bool> restructured() const {
    std::vector<bool> trees;
    for (const Findings& findings : findings_)
      trees.push_back(findings.order_changed || findings.is_shifted);
    return trees;
  }

  // Calls `use` with every number below n and a regrower that no other thread has at the time.
  template <class Use>
  void with_regrowers(std::size_t n, Use&& use) {
    parallel(n_threads_, n, [&](std::size_t i) {
      std::unique_ptr<Regrower<Sums>> regrower;
      {
        std::lock_guard lock(regrowers_lock_);
        regrower = std::move(regrowers_.back());
        regrowers_.pop_back();
      }
      use(*regrower, i);
      std::lock_guard lock(regrowers_lock_);
      regrowers_.push_back(std::move(regrower));
    });
  }

  UpdateContext& context_;
  ModelState& model_;
  ChangedRows& changed_;
  int n_threads_;
  std::size_t k_trees_;
  std::vector<Findings> findings_;       // per tree
  std::unique_ptr<FlipRule> flip_rule_;  // if trees are surveyed before nodes are regrown
  bool is_deferred_ = false;             // whether nodes are visited for rows of earlier updates
  std::vector<CheckPtr> surveyed_;       // per tree
  FidelityEstimate estimate_;
  std::vector<UpdateCounts> counts_;      // per tree
  std::vector<std::uint8_t> is_counted_;  // per tree: its histograms were counted in this update
  double seconds_checking_ = 0, seconds_regrowing_ = 0;
  std::size_t n_booked_ = 0;  // trees in which the added rows have recorded their gradients
  WipedVector<std::int32_t> added_targets_;
  std::vector<Array<double>> added_scores_;  // before the next iteration, per tree of one
  std::vector<Array<Gradient>> added_gradients_;
  std::vector<std::unique_ptr<SplitChecker<Sums>>> checkers_;  // one per thread
  std::vector<Array<Slot>> slots_;                             // likewise
  std::mutex regrowers_lock_;
  std::vector<std::unique_ptr<Regrower<Sums>>> regrowers_;  // those that are idle
};

template <class Sums>
bool update_all(UpdateContext& context, ChangedRows& changed, UpdateCounts& counts) {
  Updater<Sums> updater(context, changed);
  const bool done = updater.run();
  counts = updater.counts();
  return done;
}

}  // namespace

bool regrow_deferred(UpdateContext& context, ChangedRows& none, double most_work,
                     bool& reaches_target, UpdateCounts& counts) {
  const auto run = [&](auto updater) {
    const bool done = updater->run_deferred(most_work, reaches_target);
    counts = updater->counts();
    return done;
  };
  return context.model.nodes.holds_packed_sums()
             ? run(std::make_unique<Updater<PackedSums>>(context, none))
             : run(std::make_unique<Updater<WideSums>>(context, none));
}

PendingSurvey survey_deferred(UpdateContext& context, ChangedRows& none) {
  return context.model.nodes.holds_packed_sums()
             ? Updater<PackedSums>(context, none).survey_pending()
             : Updater<WideSums>(context, none).survey_pending();
}

MemorySurvey survey_trees(UpdateContext& context, ChangedRows& changed) {
  return context.model.nodes.holds_packed_sums() ? Updater<PackedSums>(context, changed).survey()
                                                 : Updater<WideSums>(context, changed).survey();
}

bool update_trees(UpdateContext& context, ChangedRows& changed, UpdateCounts& counts) {
  const auto run =
      context.model.nodes.holds_packed_sums() ? update_all<PackedSums> : update_all<WideSums>;
  return run(context, changed, counts);
}

void restore_histograms(ModelState& model, int n_threads) {
  const auto is_stale = [](const TreeNodes& nodes) { return !nodes.counted; };
  if (std::none_of(model.nodes.begin(), model.nodes.end(), is_stale)) return;
  const UpdateRule rule;
  NodeUndo undo(model);  // gains change, but nothing that does not follow from the rows
  undo.commit();
  const UpdateContext context(model, rule, undo, n_threads);
  model.nodes.holds_packed_sums() ? restore_all<PackedSums>(context)
                                  : restore_all<WideSums>(context);
}

}  // namespace graftboost
