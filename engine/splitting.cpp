#include "splitting.hpp"

#include <algorithm>
#include <array>

#include "vectorise.hpp"

namespace graftboost {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

// Candidates are judged in stretches that fit in the nearest cache and that vectorise.
constexpr std::size_t stretch = 128;

// What the judging of a candidate needs besides its left sums.
struct Scale {
  double gradient_unit, hessian_unit, l2, least_hessian;
  double g, h;  // of the node
};

// G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2), or `never` where a side has too little hessian.
template <class ToDouble>
[[gnu::always_inline]] inline void judge(const std::int64_t* left_g, const std::int64_t* left_h,
                                         std::size_t n, const Scale& scale, double* score,
                                         ToDouble to_double) {
  for (std::size_t i = 0; i < n; ++i) {
    const double gl = to_double(left_g[i]) * scale.gradient_unit;
    const double hl = to_double(left_h[i]) * scale.hessian_unit;
    const double gr = scale.g - gl, hr = scale.h - hl;
    const double value = gl * gl / (hl + scale.l2) + gr * gr / (hr + scale.l2);
    const bool enough = (hl >= scale.least_hessian) & (hr >= scale.least_hessian);
    score[i] = enough ? value : never;
  }
}

GRAFTBOOST_ALSO_AVX2
void judge_shiftable(const std::int64_t* left_g, const std::int64_t* left_h, std::size_t n,
                     const Scale& scale, double* score) {
  judge(left_g, left_h, n, scale, score, shifted_to_double);
}

void judge_any(const std::int64_t* left_g, const std::int64_t* left_h, std::size_t n,
               const Scale& scale, double* score) {
  judge(left_g, left_h, n, scale, score, [](std::int64_t x) { return static_cast<double>(x); });
}

Scale scale_of(const SplitParams& params, const Totals& node) {
  return {params.gradient_unit,
          params.hessian_unit,
          params.l2,
          params.least_hessian,
          static_cast<double>(node.g) * params.gradient_unit,
          static_cast<double>(node.h) * params.hessian_unit};
}

double gain_from(double score, const Scale& scale) {
  return score - scale.g * scale.g / (scale.h + scale.l2);
}

// Judges the candidates of one feature, which enter in the order of their keys, and shows each
// stretch of scores to `Judgement`.
template <class Judgement>
class Contest {
 public:
  Contest(const SplitParams& params, const Totals& node, Judgement& judgement)
      : judge_(node.n < most_shiftable / params.largest_contribution ? judge_shiftable : judge_any),
        scale_(scale_of(params, node)),
        judgement_(judgement) {}

  void enter(const Totals& left, std::uint32_t key) {
    left_g_[size_] = left.g;
    left_h_[size_] = left.h;
    key_[size_] = key;
    if (++size_ == stretch) settle();
  }
  void settle() {
    judge_(left_g_.data(), left_h_.data(), size_, scale_, score_.data());
    judgement_.see(score_.data(), key_.data(), size_);
    size_ = 0;
  }

 private:
  decltype(&judge_any) judge_;
  Scale scale_;
  Judgement& judgement_;
  std::array<std::int64_t, stretch> left_g_, left_h_;
  std::array<double, stretch> score_;
  std::array<std::uint32_t, stretch> key_;
  std::size_t size_ = 0;
};

// The best remains, the first of equals.
struct Best {
  double score = never;
  std::uint32_t key = 0;

  void see(const double* scores, const std::uint32_t* keys, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      if (scores[i] > score) score = scores[i], key = keys[i];
    }
  }
};

struct CountBetter {
  Scale scale;
  double gain;
  std::int64_t n_better = 0;

  void see(const double* scores, const std::uint32_t*, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) n_better += gain_from(scores[i], scale) > gain;
  }
};

// Keys of categories are their codes.
template <class Sums, class Judgement>
void judge_categories(const SplitParams& params, const CodeLayout::Place& place, const Totals& node,
                      const Sums* cells, Judgement& judgement) {
  const std::int64_t least = params.min_samples_leaf, most = node.n - least;
  Contest contest(params, node, judgement);
  for (std::uint32_t c = 0; c < place.n_codes; ++c) {
    const Totals left(cells[c]);
    if (left.n >= least && left.n <= most) contest.enter(left, c);
  }
  contest.settle();
}

// Keys of edges are 2 * last code on the left, plus 1 with the missing rows on the left.
template <class Sums, class Judgement>
void judge_edges(const SplitParams& params, const CodeLayout::Place& place, const Totals& node,
                 const Sums* cells, Judgement& judgement) {
  const std::int64_t least = params.min_samples_leaf, most = node.n - least;
  const Totals missing(cells[missing_code]);
  const bool has_missing = missing.n != 0;
  Contest contest(params, node, judgement);
  Sums running(Totals{});
  // The last code ends at no edge: there only "missing against all others" is a candidate.
  const std::uint32_t last = place.n_codes - 1;
  for (std::uint32_t c = 1; c < last + (has_missing ? 1 : 0); ++c) {
    running += cells[c];
    const Totals left(running);
    if (left.n > most) break;
    if (left.n >= least) contest.enter(left, 2 * c);
    if (has_missing && c != last && left.n + missing.n >= least && left.n + missing.n <= most) {
      contest.enter(left + missing, 2 * c + 1);
    }
  }
  contest.settle();
}

template <class Sums>
Totals sum_of_codes(const Sums* cells, std::uint32_t first, std::uint32_t last) {
  Totals sum;
  for (std::uint32_t c = first; c <= last; ++c) sum += Totals(cells[c]);
  return sum;
}

template <class Sums>
Split best_category(const SplitParams& params, const CodeLayout::Place& place,
                    std::uint32_t feature, const Totals& node, const Sums* cells) {
  Best best;
  judge_categories(params, place, node, cells, best);
  if (best.score == never) return {};
  const auto code = static_cast<Code>(best.key);
  return {gain_from(best.score, scale_of(params, node)), {feature, code, 0}, Totals(cells[code])};
}

template <class Sums>
Split best_edge(const SplitParams& params, const CodeLayout::Place& place, std::uint32_t feature,
                const Totals& node, const Sums* cells) {
  Best best;
  judge_edges(params, place, node, cells, best);
  if (best.score == never) return {};
  const auto code = static_cast<Code>(best.key / 2);
  const Totals missing(cells[missing_code]), below = sum_of_codes(cells, 1, code);
  const bool missing_left = missing.n != 0 ? best.key % 2 == 1 : 2 * below.n >= node.n;
  const Test test =
      missing_left ? Test{feature, 0, code} : Test{feature, 1, static_cast<Code>(code - 1)};
  return {gain_from(best.score, scale_of(params, node)), test,
          missing_left ? below + missing : below};
}

}  // namespace

double gain_of(const SplitParams& params, const Totals& node, const Totals& left) {
  const Scale scale = scale_of(params, node);
  double score = never;
  judge_any(&left.g, &left.h, 1, scale, &score);
  return score == never ? never : gain_from(score, scale);
}

template <class Sums>
std::int64_t count_better(const SplitParams& params, const CodeLayout::Place& place,
                          const Totals& node, const Sums* histogram, double gain) {
  CountBetter count{scale_of(params, node), gain};
  const Sums* cells = histogram + place.offset;
  place.categorical ? judge_categories(params, place, node, cells, count)
                    : judge_edges(params, place, node, cells, count);
  return count.n_better;
}

template <class Sums>
Split best_split_of_feature(const SplitParams& params, const CodeLayout::Place& place,
                            std::uint32_t feature, const Totals& node, const Sums* histogram) {
  const Sums* cells = histogram + place.offset;
  return place.categorical ? best_category(params, place, feature, node, cells)
                           : best_edge(params, place, feature, node, cells);
}

template std::int64_t count_better(const SplitParams&, const CodeLayout::Place&, const Totals&,
                                   const PackedSums*, double);
template std::int64_t count_better(const SplitParams&, const CodeLayout::Place&, const Totals&,
                                   const WideSums*, double);
template Split best_split_of_feature(const SplitParams&, const CodeLayout::Place&, std::uint32_t,
                                     const Totals&, const PackedSums*);
template Split best_split_of_feature(const SplitParams&, const CodeLayout::Place&, std::uint32_t,
                                     const Totals&, const WideSums*);

}  // namespace graftboost
