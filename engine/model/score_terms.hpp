// Scores of rows, in the form from which gradients are computed fastest.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "model/model_state.hpp"
#include "model/recording.hpp"

namespace graftboost {

// The scores of a row before an iteration, from the leaves that it is in. Without an error, and
// without allocating.
class ScoresFromLeaves final : public ExactScores {
 public:
  // `slots` translates the positions that are asked for into rows of the shard; empty if they are
  // the rows themselves.
  ScoresFromLeaves(const ModelState& model, std::size_t shard, std::size_t first_tree,
                   std::span<const Slot> slots = {})
      : model_(model), shard_(model.shards[shard]), first_tree_(first_tree), slots_(slots) {}
  void of(std::size_t row, double* scores) const override;

 private:
  const ModelState& model_;
  const RowShard& shard_;
  std::size_t first_tree_;
  std::span<const Slot> slots_;
};

// A term is what trees contribute to a score: for squared error a value, and terms add up; for
// class losses an exponential (see record_exponentials), and terms multiply. A product of the
// exponentials of leaf values is the exponential of their sum, so no exponential has to be computed
// per row. Its rounding error grows with the number of trees; where the error might matter, the
// exact score is added up from leaves. If scores might leave the range of doubles, or if rows do not
// keep the leaves that they are in, terms are the scores of class losses, too.
class ScoreTerms {
 public:
  ScoreTerms(const ModelState& model, int n_iterations, bool are_leaves_kept);

  // The term of a base score or of a leaf's value.
  double of(double value) const {
    return are_products_ ? std::exp(model_.loss.kind == LossKind::softmax ? value : -value) : value;
  }
  std::vector<double> of_leaves(const Tree& tree) const;
  double combine(double a, double b) const { return are_products_ ? a * b : a + b; }
  // Brings the terms of rows [begin, end) past a tree.
  void pass(const LeafIds& leaf_ids, const std::vector<double>& of_leaves, double* terms,
            std::size_t begin, std::size_t end) const;

  // What rows [begin, end) record: gradients[k][r] from terms[k][r].
  void record(const RecordingRows& rows, const std::vector<const double*>& terms,
              const std::vector<GradientPointer>& gradients, std::size_t begin, std::size_t end,
              const ExactScores& exact, RecordScratch& scratch) const;
  // Whether the terms of class losses are exponentials.
  bool are_products() const { return are_products_; }

 private:
  const ModelState& model_;
  bool are_products_;
};

}  // namespace graftboost
