// Checks and surveys of many trees, in rounds.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "update/changed_rows.hpp"
#include "update/flip_rule.hpp"
#include "update/split_check.hpp"
#include "update/tree_booking.hpp"
#include "update/tree_progress.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// Visits trees: books the changed rows, then checks or surveys the nodes they touch. What checks
// need from the rows they ask for in rounds, for all trees of a round at once: histograms that are
// not cached, and the rows that shifted splits move. What a finished check found is entered in the
// progress of its tree.
//
// If rows are added, trees are visited in order. Owns a checker per thread, and the surveys of
// trees until their flips are settled.
template <class Sums>
class CheckRounds {
 public:
  CheckRounds(UpdateContext& context, ChangedRows& changed, std::span<TreeProgress> progress);

  void check(std::span<const std::size_t> trees) { visit(trees, nullptr, false); }
  // The rule gets the flips that are found, and must outlive the rounds.
  void survey(std::span<const std::size_t> trees, FlipRule& rule) { visit(trees, &rule, false); }
  // Surveys the nodes at which rows of earlier updates are deferred; there are no changed rows.
  void survey_deferred(std::span<const std::size_t> trees, FlipRule& rule) {
    visit(trees, &rule, true);
  }
  // When all trees are surveyed and actions are selected: does everything but for regrowing.
  void apply_actions(FlipRule& rule);

  // Books the changed rows in all trees, and checks nothing.
  void book_only();
  // Books them back in the histograms of all trees that have been surveyed.
  void book_back();

  std::span<const std::unique_ptr<SplitChecker<Sums>>> checkers() const { return checkers_; }

 private:
  using CheckPtr = std::unique_ptr<TreeCheck<Sums>>;

  void visit(std::span<const std::size_t> trees, FlipRule* rule, bool is_deferred);
  void place_elsewhere(std::span<const std::size_t> trees);
  void answer_all(const std::vector<CheckPtr>& waiting);
  void go_on(std::vector<CheckPtr>& waiting, FlipRule* rule);
  void end_visit(SplitChecker<Sums>& checker, CheckPtr& check, FlipRule* rule);
  void finish(SplitChecker<Sums>& checker, TreeCheck<Sums>& check);
  // Calls use(u, i) for every i below n; on the thread that uses the checker u.
  template <class Use>
  void share_out(std::size_t n, Use&& use);

  UpdateContext& context_;
  ChangedRows& changed_;
  std::span<TreeProgress> progress_;
  TreeBooker booker_;
  std::vector<std::unique_ptr<SplitChecker<Sums>>> checkers_;  // one per thread
  std::vector<Array<Slot>> slots_;                             // likewise
  std::vector<CheckPtr> surveyed_;                             // per tree
};

}  // namespace graftboost
