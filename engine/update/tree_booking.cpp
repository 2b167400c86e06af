#include "update/tree_booking.hpp"

#include <algorithm>

#include "core/parallel.hpp"
#include "update/booking.hpp"
#include "update/restore_histograms.hpp"

namespace graftboost {

TreeBooker::TreeBooker(UpdateContext& context, ChangedRows& changed,
                       std::span<TreeProgress> progress)
    : context_(context),
      model_(context.model),
      changed_(changed),
      progress_(progress),
      k_trees_(static_cast<std::size_t>(model_.trees_per_iteration())) {}

void TreeBooker::book(std::size_t t) {
  if (changed_.n_added() == 0) book_tree(t, {}, {});
}

// What the added rows record in a tree depends on the values of their leaves in the trees before,
// which follow from the sums of these leaves. Whether a node will be regrown is not known yet: like
// all rows, the added ones keep what they recorded until their own node is.
void TreeBooker::book_up_to(std::size_t end) {
  const std::size_t n = changed_.n_added();
  if (n == 0) return;
  if (n_booked_ == 0) start();
  std::vector<const double*> from;
  std::vector<GradientPointer> to;
  for (std::size_t k = 0; k < k_trees_; ++k) {
    from.push_back(scores_[k].data());
    to.push_back(gradients_[k].data());
  }
  const auto n_threads = static_cast<std::size_t>(std::max(context_.n_threads, 1));
  // Few rows are booked before a second thread has started.
  const std::size_t n_shares = n * k_trees_ < 64 ? 1 : std::min(k_trees_, n_threads);
  for (; n_booked_ < end; n_booked_ += k_trees_) {
    const std::size_t first = n_booked_;
    RecordScratch scratch(k_trees_);
    record_scores(model_.loss, {targets_, ids_, model_.params.seed, first}, from, to, 0, n,
                  scratch);
    parallel(context_.n_threads, n_shares, [&](std::size_t u) {
      for (std::size_t k = u; k < k_trees_; k += n_shares)
        book_tree(first + k, to[k], {scores_[k].data(), n});
    });
  }
}

void TreeBooker::start() {
  const std::size_t n = changed_.n_added();
  for (std::size_t i = changed_.n_removed(); i < changed_.size(); ++i) {
    targets_.push_back(changed_.rows().target[i]);
    ids_.push_back(changed_.rows().ids[i]);
  }
  scores_.resize(k_trees_);
  gradients_.resize(k_trees_);
  for (std::size_t k = 0; k < k_trees_; ++k) {
    scores_[k].resize(n);
    scores_[k].fill(model_.base_scores[k]);
    gradients_[k] = GradientArray(model_.loss.records_wide(), n);
  }
}

// Books the sums of a tree's nodes, and tells the shards where the added rows are.
void TreeBooker::book_tree(std::size_t t, ConstGradientPointer gradients,
                           std::span<double> scores) {
  if (!model_.nodes[t].counted && evaluates_candidates(t)) restore(t);
  book_sums(context_, t, changed_, gradients, scores, progress_[t].counts);
  context_.variance[t] = model_.variance_in(t);
  if (model_.elsewhere) return;
  const RecordedGradients recorded = changed_.recorded_in(t, model_.loss.kind);
  for (std::size_t i = changed_.n_removed(); i < changed_.size(); ++i) {
    const auto [shard, slot] = changed_.location(i);
    model_.shards[shard].place(t, slot, changed_.leaf(t, i), recorded.gradient[i]);
  }
}

// If every split is kept, nobody asks for the gains of other candidates, and histograms that a
// refresh dropped stay dropped: the gains of leaves follow from the rows whenever they are
// restored. Not so where rows are deferred: their leaves keep the gain from before these rows.
bool TreeBooker::evaluates_candidates(std::size_t t) const {
  const UpdateRule& rule = context_.rule;
  return rule.defers || !rule.keeps_structure() || !model_.nodes.tree(t)[0].deferred.empty();
}

// After a refresh, before the changed rows are booked. Takes about three quarters of a refit, and
// is not counted as work: a refresh is no reason to refit.
void TreeBooker::restore(std::size_t t) {
  context_.undo.save_tree(t);
  restore_tree(context_, t);
  progress_[t].is_counted = true;
}

}  // namespace graftboost
