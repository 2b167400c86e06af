#include "model/recording.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/rounding.hpp"
#include "core/vectorise.hpp"

namespace graftboost {
namespace {

constexpr double probability_one = 1 << Loss::probability_bits;

// e^x for |x| <= 700 with a relative error below 2^-45 + |x| 2^-52, in operations that vectorise.
// The second part is of no account: where |x| is large, probabilities are close to 0 or 1.
constexpr double approximate_range = 700;
[[gnu::always_inline]] inline double approximate_exp(double x) {
  constexpr double log2_e = 0x1.71547652b82fep0, ln2 = 0x1.62e42fefa39efp-1;
  // As in round_to_even; the last bits of the sum are those of the nearest integer.
  constexpr double shift = 0x1.8p52;
  const double shifted = x * log2_e + shift;
  const double r = x - (shifted - shift) * ln2;  // |r| <= ln2 / 2
  // The Taylor series to r^11, whose next term is below 2^-47. Even and odd powers are added up
  // separately, so that the two sums are computed at the same time.
  const double s = r * r;
  const double even =
      1 + s * (1. / 2 + s * (1. / 24 + s * (1. / 720 + s * (1. / 40320 + s * (1. / 3628800)))));
  const double odd =
      1 + s * (1. / 6 + s * (1. / 120 + s * (1. / 5040 + s * (1. / 362880 + s * (1. / 39916800)))));
  const std::uint64_t power = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  return (even + r * odd) * std::bit_cast<double>(power);
}

// Rounding to the gradient grid hides the error of approximate_exp unless the exact value, with its
// dither, is close to half a unit from an integer. The distance of a row's value from the nearest
// integer is its doubt. Rows with more doubt than this, about one in 500,000, are computed by
// definition. The margin is a thousand times the error, so the error need not be known precisely.
constexpr double largest_doubt = 0.5 - 0x1p-20;

constexpr std::size_t stretch = RecordScratch::stretch;
using Stretch = RecordScratch::Stretch;

GRAFTBOOST_ALSO_AVX2
void raise_stretch(const double* x, double* top) {
  for (std::size_t i = 0; i < stretch; ++i) top[i] = std::max(top[i], x[i]);
}

// e^(sign * score - top), which is also added to `sum`. Beyond the range, probabilities differ from
// 0 or 1 by less than any rounding.
GRAFTBOOST_ALSO_AVX2
void exp_stretch(const double* score, double sign, const double* top, double* out, double* sum) {
  for (std::size_t i = 0; i < stretch; ++i) {
    const double x = sign * score[i] - top[i];
    out[i] = approximate_exp(std::min(std::max(x, -approximate_range), approximate_range));
    sum[i] += out[i];
  }
}

GRAFTBOOST_ALSO_AVX2
void add_stretch(const double* x, double* sum) {
  for (std::size_t i = 0; i < stretch; ++i) sum[i] += x[i];
}

GRAFTBOOST_ALSO_AVX2
void invert_stretch(double* x) {
  for (std::size_t i = 0; i < stretch; ++i) x[i] = 1 / x[i];
}

GRAFTBOOST_ALSO_AVX2
void key_stretch(const RowId* ids, dither::Key* keys) {
  for (std::size_t i = 0; i < stretch; ++i) keys[i] = dither::of_row(ids[i]);
}

GRAFTBOOST_ALSO_AVX2
void gradient_stretch(const double* part, const double* inverse, const std::int32_t* target,
                      std::int32_t label, const dither::Key* row_key, dither::Key tree_key,
                      NarrowGradient* out, double* doubt) {
  for (std::size_t i = 0; i < stretch; ++i) {
    const double slope = part[i] * inverse[i] - (target[i] == label ? 1.0 : 0.0);
    const double g = slope * probability_one + dither::of(tree_key, row_key[i]);
    const double rounded = round_to_even(g);
    doubt[i] = std::max(doubt[i], std::abs(g - rounded));
    // |g| is at most 2^15: clamped as an integer, of which a register holds more.
    constexpr Gradient most = (1 << Loss::probability_bits) - 1;
    out[i] = static_cast<NarrowGradient>(
        std::min(std::max(static_cast<Gradient>(rounded), -most), most));
  }
}

GRAFTBOOST_ALSO_AVX2
std::int64_t n_doubtful(const double* doubt) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < stretch; ++i) n += doubt[i] < largest_doubt ? 0 : 1;
  return n;
}

// A stretch of rows. If the rows do not fill it, copies are worked on.
class StretchOfRows {
 public:
  StretchOfRows(const RecordingRows& rows, std::size_t from, std::size_t end)
      : from_(from), n_(std::min(stretch, end - from)) {
    target_ = rows.targets.data() + from;
    const RowId* ids = rows.ids.data() + from;
    if (!full()) {
      last_targets_.fill(0);
      last_ids_.fill(0);
      target_ = std::copy_n(target_, n_, last_targets_.begin()) - n_;
      ids = std::copy_n(ids, n_, last_ids_.begin()) - n_;
    }
    key_stretch(ids, keys_.data());
    doubt_.fill(0.0);
  }

  bool full() const { return n_ == stretch; }
  std::size_t size() const { return n_; }
  // Numbers of the rows; those beyond the last row are 1.
  const double* of(const double* numbers, Stretch& last) const {
    if (full()) return numbers + from_;
    last.fill(1.0);
    std::copy_n(numbers + from_, n_, last.begin());
    return last.data();
  }

  void record(const double* part, const double* inverse, std::int32_t label, dither::Key tree_key,
              NarrowGradient* to) {
    std::array<NarrowGradient, stretch> last;
    gradient_stretch(part, inverse, target_, label, keys_.data(), tree_key,
                     full() ? to : last.data(), doubt_.data());
    if (!full()) std::copy_n(last.begin(), n_, to);
  }
  // Calls use(i, target, key) for the rows that are to be computed by definition.
  template <class Use>
  void for_each_doubtful(Use&& use) const {
    if (n_doubtful(doubt_.data()) == 0) return;
    for (std::size_t i = 0; i < n_; ++i)
      if (!(doubt_[i] < largest_doubt)) use(i, target_[i], keys_[i]);
  }

 private:
  std::size_t from_, n_;
  const std::int32_t* target_;
  std::array<std::int32_t, stretch> last_targets_;
  std::array<RowId, stretch> last_ids_;
  std::array<dither::Key, stretch> keys_;
  Stretch doubt_;
};

// The tree of the iteration that is of a class, and the label of its class.
std::int32_t label_of(const Loss& loss, std::size_t k) {
  return static_cast<std::int32_t>(loss.kind == LossKind::softmax ? k : 1);
}

// Works on stretches of rows, class by class, so that every loop vectorises. find_parts(rows, from,
// sum) sets the parts of all classes, and their sums. The probability of a class is its part of the
// sum; logistic is the softmax of 0 and -score, where the first part, e^0 = 1, belongs to the class
// of the tree.
template <class FindParts>
void record_stretches(const Loss& loss, const RecordingRows& rows,
                      const std::vector<GradientPointer>& gradients, std::size_t begin,
                      std::size_t end, const ExactScores& exact, RecordScratch& scratch,
                      FindParts&& find_parts) {
  const std::size_t n_scores = gradients.size();
  const bool softmax = loss.kind == LossKind::softmax;
  for (std::size_t k = 0; k < n_scores; ++k)
    scratch.tree_keys[k] = dither::of_tree(rows.seed, rows.first_tree + k);
  for (std::size_t from = begin; from < end; from += stretch) {
    StretchOfRows of_rows(rows, from, end);
    Stretch sum;
    sum.fill(softmax ? 0.0 : 1.0);
    find_parts(of_rows, sum);
    if (!softmax) {
      scratch.parts[0].fill(1.0);
      scratch.part_of[0] = scratch.parts[0].data();
    }
    invert_stretch(sum.data());
    for (std::size_t k = 0; k < n_scores; ++k) {
      of_rows.record(scratch.part_of[k], sum.data(), label_of(loss, k), scratch.tree_keys[k],
                     gradients[k].narrow + from);
    }
    of_rows.for_each_doubtful([&](std::size_t i, std::int32_t target, dither::Key key) {
      exact.of(from + i, scratch.row_scores.data());
      loss.slopes(target, {scratch.row_scores.data(), n_scores}, scratch.row_slopes.data());
      for (std::size_t k = 0; k < n_scores; ++k) {
        const double shift = dither::of(scratch.tree_keys[k], key);
        gradients[k].narrow[from + i] =
            static_cast<NarrowGradient>(loss.rounded(scratch.row_slopes[k], shift));
      }
    });
  }
}

class GivenScores final : public ExactScores {
 public:
  explicit GivenScores(const std::vector<const double*>& scores) : scores_(scores) {}
  void of(std::size_t row, double* scores) const override {
    for (std::size_t k = 0; k < scores_.size(); ++k) scores[k] = scores_[k][row];
  }

 private:
  const std::vector<const double*>& scores_;
};

}  // namespace

// Softmax subtracts the largest score.
void record_scores(const Loss& loss, const RecordingRows& rows,
                   const std::vector<const double*>& scores,
                   const std::vector<GradientPointer>& gradients, std::size_t begin,
                   std::size_t end, RecordScratch& scratch) {
  if (loss.kind == LossKind::squared) {
    for (std::size_t r = begin; r < end; ++r)
      gradients[0].wide[r] = Loss::squared_gradient(rows.targets[r], scores[0][r]);
    return;
  }
  const bool softmax = loss.kind == LossKind::softmax;
  const std::size_t n_scores = scores.size();
  record_stretches(loss, rows, gradients, begin, end, GivenScores(scores), scratch,
                   [&](const StretchOfRows& of_rows, Stretch& sum) {
                     Stretch top, last;
                     top.fill(softmax ? -std::numeric_limits<double>::infinity() : 0.0);
                     for (std::size_t k = 0; softmax && k < n_scores; ++k)
                       raise_stretch(of_rows.of(scores[k], last), top.data());
                     for (std::size_t k = 0; k < n_scores; ++k) {
                       exp_stretch(of_rows.of(scores[k], last), softmax ? 1.0 : -1.0, top.data(),
                                   scratch.parts[k].data(), sum.data());
                       scratch.part_of[k] = scratch.parts[k].data();
                     }
                   });
}

void record_exponentials(const Loss& loss, const RecordingRows& rows,
                         const std::vector<const double*>& exponentials,
                         const std::vector<GradientPointer>& gradients, std::size_t begin,
                         std::size_t end, const ExactScores& exact, RecordScratch& scratch) {
  record_stretches(loss, rows, gradients, begin, end, exact, scratch,
                   [&](const StretchOfRows& of_rows, Stretch& sum) {
                     for (std::size_t k = 0; k < exponentials.size(); ++k) {
                       scratch.part_of[k] = of_rows.of(exponentials[k], scratch.parts[k]);
                       add_stretch(scratch.part_of[k], sum.data());
                     }
                   });
}

void record_one_class(const Loss& loss, const RecordingRows& rows, std::size_t k,
                      const Stretch& part, const Stretch& inverse, NarrowGradient* gradients,
                      const ExactScores& exact, RecordScratch& scratch) {
  const dither::Key tree_key = dither::of_tree(rows.seed, rows.first_tree + k);
  StretchOfRows of_rows(rows, 0, rows.targets.size());
  of_rows.record(part.data(), inverse.data(), label_of(loss, k), tree_key, gradients);
  of_rows.for_each_doubtful([&](std::size_t i, std::int32_t target, dither::Key key) {
    exact.of(i, scratch.row_scores.data());
    loss.slopes(target, {scratch.row_scores.data(), scratch.row_scores.size()},
                scratch.row_slopes.data());
    gradients[i] =
        static_cast<NarrowGradient>(loss.rounded(scratch.row_slopes[k], dither::of(tree_key, key)));
  });
}

}  // namespace graftboost
