#include "model/score_terms.hpp"

#include <algorithm>

namespace graftboost {

void ScoresFromLeaves::of(std::size_t row, double* scores) const {
  const Slot slot = slots_.empty() ? static_cast<Slot>(row) : slots_[row];
  const std::size_t k_trees = model_.base_scores.size();
  std::copy(model_.base_scores.begin(), model_.base_scores.end(), scores);
  for (std::size_t t = 0; t < first_tree_; ++t) {
    const Tree& tree = model_.nodes.tree(t);
    const std::size_t leaf = shard_.trees[t].leaf_ids[slot];
    scores[t % k_trees] += tree[tree.leaves[leaf]].value;
  }
}

ScoreTerms::ScoreTerms(const ModelState& model, int n_iterations, bool are_leaves_kept)
    : model_(model) {
  // Neither e^600 nor the sum of any number of such terms leaves the range of doubles, and the
  // products of so many trees have a relative error below 2^-40.
  constexpr double largest_score = 600, most_iterations = 1500;
  const Loss& loss = model.loss;
  double score = 0;
  for (const double base : model.base_scores) score = std::max(score, std::abs(base));
  if (loss.kind != LossKind::squared)
    score += n_iterations * loss.largest_step() * model.params.learning_rate;
  are_products_ = are_leaves_kept && loss.kind != LossKind::squared && score <= largest_score &&
                  n_iterations <= most_iterations;
}

std::vector<double> ScoreTerms::of_leaves(const Tree& tree) const {
  std::vector<double> terms = tree.leaf_values();
  for (double& term : terms) term = of(term);
  return terms;
}

void ScoreTerms::pass(const LeafIds& leaf_ids, const std::vector<double>& of_leaves, double* terms,
                      std::size_t begin, std::size_t end) const {
  leaf_ids.visit([&](const auto* ids) {
    if (are_products_) {
      for (std::size_t r = begin; r < end; ++r) terms[r] *= of_leaves[ids[r]];
    } else {
      for (std::size_t r = begin; r < end; ++r) terms[r] += of_leaves[ids[r]];
    }
  });
}

void ScoreTerms::record(const RecordingRows& rows, const std::vector<const double*>& terms,
                        const std::vector<GradientPointer>& gradients, std::size_t begin,
                        std::size_t end, const ExactScores& exact, RecordScratch& scratch) const {
  if (are_products_) {
    record_exponentials(model_.loss, rows, terms, gradients, begin, end, exact, scratch);
  } else {
    record_scores(model_.loss, rows, terms, gradients, begin, end, scratch);
  }
}

}  // namespace graftboost
