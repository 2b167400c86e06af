#include "update/update_trees.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "update/check_rounds.hpp"
#include "update/deferral.hpp"
#include "update/fidelity_rule.hpp"
#include "update/regrow_trees.hpp"
#include "update/tree_progress.hpp"
#include "update/work_estimate.hpp"

namespace graftboost {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// One update of all trees.
//
// The node half books the changed rows, which it has as values, and checks the nodes they touch
// (CheckRounds). Then failed nodes are regrown, iteration by iteration (regrow_trees). Estimates
// before and in between tell whether a refit is cheaper (WorkEstimate).
//
// By the fidelity rule, the nodes are surveyed first. When all trees are, the flips tell what the
// model remembers of the changed rows, and the tolerance follows from that. Nodes with deferred
// rows are regrown likewise, but without changed rows.
//
// Owns the progress of all trees and the rule that surveys are for.
template <class Sums>
class Updater {
 public:
  Updater(UpdateContext& context, ChangedRows& changed)
      : context_(context),
        changed_(changed),
        all_trees_(context.model.nodes.size()),
        progress_(context.model.nodes.size()),
        work_(context, changed, progress_),
        rounds_(context, changed, progress_) {
    std::iota(all_trees_.begin(), all_trees_.end(), std::size_t{0});
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
    const TreeSample sample = choose_sample(context_.model, changed_);
    if (!(flip_rule_ ? check_by_fidelity(sample) : check_by_tolerance(sample))) return false;
    const double refit_work = work_.of_refit(sample.chosen) *
                              static_cast<double>(progress_.size()) /
                              static_cast<double>(sample.chosen.size());
    if (work_.to_regrow(sample.chosen) + work_.to_regrow(sample.others) >
        cost::most_to_regrow * refit_work)
      return false;
    regrow_all(start);
    return true;
  }

  // Regrows nodes for rows that earlier updates deferred; there are no changed rows. False if a
  // refit is cheaper and the work is not limited.
  bool run_deferred(double most_work, bool& reaches_target) {
    const Clock::time_point start = Clock::now();
    const DeferredRule& rule = survey_deferred(most_work);
    note_failing(all_trees_);
    if (most_work >= 1 &&
        work_.to_regrow(all_trees_) > cost::most_to_regrow * work_.of_refit(all_trees_))
      return false;
    for (TreeProgress& tree : progress_) tree.failed.clear();
    reaches_target = rule.reaches_target();
    rounds_.apply_actions(*flip_rule_);
    regrow_all(start);
    return true;
  }

  // What is deferred, and what it would take to regrow it. The caller restores nodes.
  PendingSurvey survey_pending() {
    const DeferredRule& rule = survey_deferred(std::numeric_limits<double>::infinity());
    PendingSurvey found{context_.model.deferred, rule.n_flips(), rule.work(), {}};
    keep_histograms();
    found.now = rule.estimate_before();
    return found;
  }

  // Books the changed rows, looks what the model remembers of them, and books them back.
  MemorySurvey survey() {
    auto rule = std::make_unique<FidelityRule>(context_, changed_);
    const FidelityRule& fidelity = *rule;
    flip_rule_ = std::move(rule);
    rounds_.survey(all_trees_, *flip_rule_);
    foresee(all_trees_);
    MemorySurvey found;
    for (const std::int64_t units : fidelity.memory())
      found.memory.push_back(static_cast<double>(units) * memory_unit);
    found.work = work_.to_regrow(all_trees_) / work_.of_refit(all_trees_);
    rounds_.book_back();
    keep_histograms();
    return found;
  }

  UpdateCounts counts() const {
    UpdateCounts sum = total_counts(progress_);
    sum.fidelity = estimate_;
    sum.seconds_checking = seconds_checking_;
    sum.seconds_regrowing = seconds_regrowing_;
    return sum;
  }

 private:
  using Trees = std::span<const std::size_t>;

  // Books the changed rows in all trees and leaves their structure as it is.
  void defer() {
    const ChangedScores before = scores_before(context_, changed_);
    rounds_.book_only();
    defer_rows(context_, changed_, before);
  }

  // Check all trees and find out which nodes are to be regrown; false if a refit is cheaper.
  bool check_by_tolerance(const TreeSample& sample) {
    const auto k_trees = static_cast<std::size_t>(context_.model.trees_per_iteration());
    const std::size_t n_first = (cost::fewest_checked_first + k_trees - 1) / k_trees * k_trees;
    const Trees chosen = sample.chosen, first = chosen.first(std::min(n_first, chosen.size()));
    rounds_.check(first);
    if (work_.exceeds(first, cost::far_too_much_work)) return false;
    rounds_.check(chosen.subspan(first.size()));
    if (work_.exceeds(chosen, cost::most_work)) return false;
    rounds_.check(sample.others);
    return true;
  }
  bool check_by_fidelity(const TreeSample& sample) {
    rounds_.survey(sample.chosen, *flip_rule_);
    if (cost::fewest_foreseen * static_cast<double>(changed_.size()) >
            static_cast<double>(context_.n_rows) &&
        work_.share_done(sample.chosen) > cost::cheap_survey) {
      foresee(sample.chosen);
      if (work_.exceeds(sample.chosen, cost::most_work)) return false;
    }
    rounds_.survey(sample.others, *flip_rule_);
    flip_rule_->select(all_trees_);
    rounds_.apply_actions(*flip_rule_);
    return true;
  }

  const DeferredRule& survey_deferred(double most_work) {
    auto rule = std::make_unique<DeferredRule>(context_, most_work);
    const DeferredRule& found = *rule;
    flip_rule_ = std::move(rule);
    rounds_.survey_deferred(all_trees_, *flip_rule_);
    flip_rule_->select(all_trees_);
    return found;
  }

  // Notes which nodes of these surveyed trees would be regrown if they stood for all.
  void foresee(Trees trees) {
    flip_rule_->select(trees);
    note_failing(trees);
  }
  void note_failing(Trees trees) {
    for (const std::size_t t : trees) progress_[t].failed = flip_rule_->nodes_to_regrow(t);
  }

  // When all trees are checked.
  void regrow_all(Clock::time_point start) {
    const Clock::time_point checked = Clock::now();
    regrow_trees<Sums>(context_, rounds_.checkers(), progress_);
    if (flip_rule_) estimate_ = flip_rule_->estimate(restructured());
    seconds_checking_ = seconds_between(start, checked);
    seconds_regrowing_ = seconds_between(checked, Clock::now());
  }

  std::vector<bool> restructured() const {
    std::vector<bool> trees;
    for (const TreeProgress& tree : progress_)
      trees.push_back(tree.order_changed || tree.is_shifted);
    return trees;
  }

  // After a survey, histograms are as before unless they were counted for it.
  void keep_histograms() {
    for (const std::size_t t : all_trees_)
      if (!progress_[t].is_counted) context_.undo.keep_histograms(t);
  }

  UpdateContext& context_;
  ChangedRows& changed_;
  std::vector<std::size_t> all_trees_;
  std::vector<TreeProgress> progress_;
  WorkEstimate work_;
  std::unique_ptr<FlipRule> flip_rule_;  // if trees are surveyed before nodes are regrown
  CheckRounds<Sums> rounds_;
  FidelityEstimate estimate_;
  double seconds_checking_ = 0, seconds_regrowing_ = 0;
};

// Calls use(updater) with an updater for the kind of sums that the model has.
template <class Use>
auto with_updater(UpdateContext& context, ChangedRows& changed, Use&& use) {
  if (context.model.nodes.holds_packed_sums()) {
    Updater<PackedSums> updater(context, changed);
    return use(updater);
  }
  Updater<WideSums> updater(context, changed);
  return use(updater);
}

}  // namespace

bool update_trees(UpdateContext& context, ChangedRows& changed, UpdateCounts& counts) {
  return with_updater(context, changed, [&](auto& updater) {
    const bool done = updater.run();
    counts = updater.counts();
    return done;
  });
}

bool regrow_deferred(UpdateContext& context, ChangedRows& none, double most_work,
                     bool& reaches_target, UpdateCounts& counts) {
  return with_updater(context, none, [&](auto& updater) {
    const bool done = updater.run_deferred(most_work, reaches_target);
    counts = updater.counts();
    return done;
  });
}

MemorySurvey survey_trees(UpdateContext& context, ChangedRows& changed) {
  return with_updater(context, changed, [](auto& updater) { return updater.survey(); });
}

PendingSurvey survey_deferred(UpdateContext& context, ChangedRows& none) {
  return with_updater(context, none, [](auto& updater) { return updater.survey_pending(); });
}

}  // namespace graftboost
