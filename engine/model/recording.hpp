// What rows record: gradients, from scores or from their exponentials.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "model/dither.hpp"
#include "model/gradient_array.hpp"
#include "model/loss.hpp"

namespace graftboost {

// Rows that record gradients in the trees of an iteration.
struct RecordingRows {
  std::span<const std::int32_t> targets;
  std::span<const RowId> ids;
  std::uint64_t seed;      // of the model
  std::size_t first_tree;  // of the iteration
};

// Memory for recording gradients, for so many trees per iteration. One per thread.
struct RecordScratch {
  static constexpr std::size_t stretch = 64;  // rows together
  using Stretch = std::array<double, stretch>;

  explicit RecordScratch(std::size_t n_scores)
      : parts(n_scores),
        part_of(n_scores),
        row_scores(n_scores),
        row_slopes(n_scores),
        tree_keys(n_scores) {}

  WipedVector<Stretch> parts;
  std::vector<const double*> part_of;  // where the parts of each tree are
  WipedVector<double> row_scores, row_slopes;
  std::vector<dither::Key> tree_keys;
};

// Tells the scores of a row, one per tree of an iteration, without an error.
class ExactScores {
 public:
  virtual void of(std::size_t row, double* scores) const = 0;

 protected:
  ~ExactScores() = default;
};

// What rows [begin, end) record: gradients[k][r] from scores[k][r], both one array per tree of an
// iteration. The same bits as by Loss::slopes() and Loss::rounded(), but faster.
void record_scores(const Loss& loss, const RecordingRows& rows,
                   const std::vector<const double*>& scores,
                   const std::vector<GradientPointer>& gradients, std::size_t begin,
                   std::size_t end, RecordScratch& scratch);

// The same for class losses from the exponentials of scores, e^score for softmax and e^-score for
// logistic, with a relative error of up to 2^-40. If a row is so close to a boundary of rounding
// that the error might matter, its exact scores are asked for.
void record_exponentials(const Loss& loss, const RecordingRows& rows,
                         const std::vector<const double*>& exponentials,
                         const std::vector<GradientPointer>& gradients, std::size_t begin,
                         std::size_t end, const ExactScores& exact, RecordScratch& scratch);

// The same for tree k of the iteration alone: p = part * inverse. At most RecordScratch::stretch
// rows. `exact` is asked by the position of the row.
void record_one_class(const Loss& loss, const RecordingRows& rows, std::size_t k,
                      const RecordScratch::Stretch& part, const RecordScratch::Stretch& inverse,
                      NarrowGradient* gradients, const ExactScores& exact, RecordScratch& scratch);

}  // namespace graftboost
