#include "update/check_rounds.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "update/row_answers.hpp"

namespace graftboost {

template <class Sums>
CheckRounds<Sums>::CheckRounds(UpdateContext& context, ChangedRows& changed,
                               std::span<TreeProgress> progress)
    : context_(context),
      changed_(changed),
      progress_(progress),
      booker_(context, changed, progress),
      surveyed_(progress.size()) {
  for (int i = 0; i < std::max(context.n_threads, 1); ++i)
    checkers_.push_back(std::make_unique<SplitChecker<Sums>>(context));
  slots_.resize(checkers_.size());
}

template <class Sums>
template <class Use>
void CheckRounds<Sums>::share_out(std::size_t n, Use&& use) {
  parallel(static_cast<int>(checkers_.size()), checkers_.size(), [&](std::size_t u) {
    for (std::size_t i = u; i < n; i += checkers_.size()) use(u, i);
  });
}

// Surveys if there is a rule to survey for, and checks otherwise.
template <class Sums>
void CheckRounds<Sums>::visit(std::span<const std::size_t> trees, FlipRule* rule,
                              bool is_deferred) {
  if (trees.empty()) return;
  booker_.book_up_to(trees.back() + 1);
  const bool grouped = GainBounds::are_grouped(context_.model.layout());
  std::vector<CheckPtr> waiting(trees.size());
  std::vector<CheckPtr> free(checkers_.size());  // a finished check can be used again
  share_out(trees.size(), [&](std::size_t u, std::size_t i) {
    const std::size_t t = trees[i];
    SplitChecker<Sums>& checker = *checkers_[u];
    CheckPtr& check = free[u];
    booker_.book(t);
    if (!check) check = std::make_unique<TreeCheck<Sums>>();
    check->reset(t, context_.model.nodes.tree(t).nodes.size(), grouped);
    check->is_survey = rule != nullptr;
    const bool begun = is_deferred ? checker.begin_deferred(*check)
                                   : checker.begin(*check, changed_, progress_[t].is_counted);
    if (!begun) return;
    if (check->is_waiting()) {
      waiting[i] = std::move(check);
    } else {
      end_visit(checker, check, rule);
    }
  });
  place_elsewhere(trees);
  go_on(waiting, rule);
}

// Tells the rows of other processes where the added rows are in these trees.
template <class Sums>
void CheckRounds<Sums>::place_elsewhere(std::span<const std::size_t> trees) {
  if (!context_.model.elsewhere || changed_.n_added() == 0) return;
  for (const std::size_t t : trees) {
    WipedVector<std::uint16_t> leaves;
    WipedVector<Gradient> recorded;
    const ConstGradientPointer gradients =
        changed_.recorded_in(t, context_.model.loss.kind).gradient;
    for (std::size_t i = changed_.n_removed(); i < changed_.size(); ++i) {
      leaves.push_back(changed_.leaf(t, i));
      recorded.push_back(gradients[i]);
    }
    context_.model.elsewhere->place(t, leaves, recorded);
  }
}

// Rows of other processes are asked for all checks at once.
template <class Sums>
void CheckRounds<Sums>::answer_all(const std::vector<CheckPtr>& waiting) {
  if (!context_.model.elsewhere) {
    return share_out(waiting.size(), [&](std::size_t u, std::size_t i) {
      answer(context_, *waiting[i], slots_[u]);
    });
  }
  context_.model.elsewhere->rounds().together(waiting.size(), [&](std::size_t i) {
    Array<Slot> slots;
    answer(context_, *waiting[i], slots);
  });
}

// Continues checks that wait until all are finished.
template <class Sums>
void CheckRounds<Sums>::go_on(std::vector<CheckPtr>& waiting, FlipRule* rule) {
  std::erase(waiting, nullptr);
  while (!waiting.empty()) {
    answer_all(waiting);
    share_out(waiting.size(), [&](std::size_t u, std::size_t i) {
      checkers_[u]->resume(*waiting[i]);
      if (waiting[i]->is_waiting()) return;
      CheckPtr done = std::move(waiting[i]);
      end_visit(*checkers_[u], done, rule);
    });
    std::erase(waiting, nullptr);
  }
}

// A survey is kept until the tolerance is known; a check is finished, and can be used again.
template <class Sums>
void CheckRounds<Sums>::end_visit(SplitChecker<Sums>& checker, CheckPtr& check, FlipRule* rule) {
  if (!check->is_survey) return finish(checker, *check);
  rule->set_flips(check->t, std::move(check->flips));
  // What a survey takes counts when the work is estimated, before its flips are settled.
  progress_[check->t].counts += std::exchange(check->counts, {});
  check->drop_answers();
  surveyed_[check->t] = std::move(check);
}

template <class Sums>
void CheckRounds<Sums>::finish(SplitChecker<Sums>& checker, TreeCheck<Sums>& check) {
  checker.finish(check);
  // The order in which nodes failed depends on rounds; nothing else may.
  std::sort(check.failed.begin(), check.failed.end());
  TreeProgress& progress = progress_[check.t];
  progress.failed = check.failed;
  progress.order_changed = check.order_changed;
  progress.is_shifted = check.has_shifted;
  progress.counts += check.counts;
}

template <class Sums>
void CheckRounds<Sums>::apply_actions(FlipRule& rule) {
  rule.before_settling();
  std::vector<CheckPtr> waiting(surveyed_.size());
  share_out(surveyed_.size(), [&](std::size_t u, std::size_t t) {
    if (!surveyed_[t]) return;
    CheckPtr check = std::move(surveyed_[t]);
    check->is_survey = false;
    if (rule.has_actions(t)) checkers_[u]->apply(*check, rule.flips(t));
    if (check->is_waiting()) {
      waiting[t] = std::move(check);
    } else {
      finish(*checkers_[u], *check);
    }
  });
  go_on(waiting, nullptr);
}

template <class Sums>
void CheckRounds<Sums>::book_only() {
  booker_.book_up_to(progress_.size());
  const bool grouped = GainBounds::are_grouped(context_.model.layout());
  std::vector<TreeCheck<Sums>> checks(checkers_.size());
  share_out(progress_.size(), [&](std::size_t u, std::size_t t) {
    booker_.book(t);
    checks[u].reset(t, context_.model.nodes.tree(t).nodes.size(), grouped);
    if (checkers_[u]->book_only(checks[u], changed_, progress_[t].is_counted))
      finish(*checkers_[u], checks[u]);
  });
  std::vector<std::size_t> all(progress_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  place_elsewhere(all);
}

template <class Sums>
void CheckRounds<Sums>::book_back() {
  share_out(surveyed_.size(), [&](std::size_t u, std::size_t t) {
    if (surveyed_[t] && !progress_[t].is_counted) checkers_[u]->book_back(*surveyed_[t], changed_);
  });
}

template class CheckRounds<PackedSums>;
template class CheckRounds<WideSums>;

}  // namespace graftboost
