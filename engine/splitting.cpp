#include "splitting.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

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

// Integer sums on the left of consecutive candidates.
struct LeftSums {
  std::array<std::int64_t, stretch> g, h;
  std::size_t too_few = 0;  // candidates, from the first, with fewer rows than `least`
  std::size_t up_to = 0;    // candidates, from the first, with at most `most` rows
};

GRAFTBOOST_ALSO_AVX2
void unpack(const std::int64_t* packed, std::size_t n, std::int64_t least, std::int64_t most,
            LeftSums& left) {
  std::int64_t too_few = 0, up_to = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t second = packed[2 * i + 1], rows = second & PackedSums::most_rows;
    left.g[i] = packed[2 * i];
    left.h[i] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(second) >> PackedSums::count_bits);
    too_few += rows < least;
    up_to += rows <= most;
  }
  left.too_few = static_cast<std::size_t>(too_few);
  left.up_to = static_cast<std::size_t>(up_to);
}

// Sums of the cells up to and with each of n, which go on from `running`. Rows add up, so the
// candidates with enough of them on both sides are those from too_few to up_to.
void add_up(const PackedSums* cells, std::size_t n, std::int64_t least, std::int64_t most,
            PackedSums& running, LeftSums& left) {
  std::array<std::int64_t, 2 * stretch> packed;
  for (std::size_t i = 0; i < n; ++i) {
    running += cells[i];
    running.store(packed.data() + 2 * i);
  }
  unpack(packed.data(), n, least, most, left);
}
void add_up(const WideSums* cells, std::size_t n, std::int64_t least, std::int64_t most,
            WideSums& running, LeftSums& left) {
  left.too_few = left.up_to = 0;
  for (std::size_t i = 0; i < n; ++i) {
    running += cells[i];
    left.g[i] = running.g;
    left.h[i] = running.h;
    left.too_few += running.n < least;
    left.up_to += running.n <= most;
  }
}

// The largest of some scores.
double largest(const double* scores, std::size_t n) {
  constexpr std::size_t lanes = 4;
  std::array<double, lanes> top;
  top.fill(never);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::size_t j = 0; j < lanes; ++j)
      top[j] = scores[i + j] > top[j] ? scores[i + j] : top[j];
  }
  for (; i < n; ++i) top[0] = scores[i] > top[0] ? scores[i] : top[0];
  return *std::max_element(top.begin(), top.end());
}

// Keeps the best score; of equals the one with the smaller key. Keys rise by `step`.
struct Best {
  double score = never;
  std::uint32_t key = 0;

  void see(const double* scores, std::size_t n, std::uint32_t first_key, std::uint32_t step) {
    const double top = largest(scores, n);
    if (top == never || top < score) return;
    const auto at = static_cast<std::uint32_t>(std::find(scores, scores + n, top) - scores);
    const std::uint32_t found = first_key + step * at;
    if (top > score || found < key) score = top, key = found;
  }
};

// The same, and how firmly it stands.
struct Survey : Best {
  Standing standing;
  std::uint32_t first_edge = 0, last_edge = 0;  // that count, in this pass; 0: none yet

  // Candidates [0, n) with these sums on their left and these scores, of which the first is at edge
  // `first`. Those that count lie together: hessians grow from edge to edge.
  void see_edges(const double* scores, const LeftSums& left, std::size_t from, std::size_t n,
                 std::uint32_t first, const Scale& scale) {
    std::size_t begin = 0, end = n;
    while (begin < end && scores[begin] == never) ++begin;
    while (begin < end && scores[end - 1] == never) --end;
    if (begin == end) return;
    if (first_edge == 0) {
      first_edge = first + static_cast<std::uint32_t>(begin);
      see_side(static_cast<double>(left.h[from + begin]) * scale.hessian_unit);
    }
    last_edge = first + static_cast<std::uint32_t>(end - 1);
    see_side(scale.h - static_cast<double>(left.h[from + end - 1]) * scale.hessian_unit);
  }
  void see_side(double hessian) {
    standing.least_hessian = std::min(standing.least_hessian, hessian);
  }
  // A row left of the first edge that counts, or right of the last, may make others count.
  void end_pass(bool is_first) {
    const auto first = first_edge == 0 ? Code{0xffff} : static_cast<Code>(first_edge);
    const auto last = first_edge == 0 ? Code{0} : static_cast<Code>(last_edge + 1);
    standing.first = is_first ? first : std::max(standing.first, first);
    standing.last = is_first ? last : std::min(standing.last, last);
    first_edge = last_edge = 0;
  }
};

struct CountBetter {
  Scale scale;
  double gain;
  std::int64_t n_better = 0;

  void see(const double* scores, std::size_t n, std::uint32_t, std::uint32_t) {
    for (std::size_t i = 0; i < n; ++i) n_better += gain_from(scores[i], scale) > gain;
  }
};

// What judging a feature takes besides its cells.
struct Hearing {
  Scale scale;
  std::int64_t least, most;  // rows on the left
  decltype(&judge_any) judge;

  Hearing(const SplitParams& params, const Totals& node)
      : scale(scale_of(params, node)),
        least(params.min_samples_leaf),
        most(node.n - params.min_samples_leaf),
        judge(node.n < most_shiftable / params.largest_contribution ? judge_shiftable : judge_any) {
  }
};

// Each category against all others; keys are codes.
template <class Sums, class Judgement>
void judge_categories(const Hearing& hearing, const CodeLayout::Place& place, const Sums* cells,
                      Judgement& judgement) {
  for (std::uint32_t c = 0; c < place.n_codes; ++c) {
    const Totals left(cells[c]);
    if (left.n < hearing.least || left.n > hearing.most) continue;
    double score = never;
    hearing.judge(&left.g, &left.h, 1, hearing.scale, &score);
    judgement.see(&score, 1, c, 1);
    if constexpr (std::is_same_v<Judgement, Survey>) {
      if (score == never) continue;
      const double h = static_cast<double>(left.h) * hearing.scale.hessian_unit;
      judgement.see_side(std::min(h, hearing.scale.h - h));
    }
  }
}

// Each of the first n_edges edges, with `missing` added to the left side.
template <class Sums, class Judgement>
void judge_edges_with(const Hearing& hearing, const Sums* cells, std::uint32_t n_edges,
                      const Totals& missing, std::uint32_t key_offset, Judgement& judgement) {
  Sums running(missing);
  LeftSums left;
  std::array<double, stretch> scores;
  for (std::uint32_t begin = 0; begin < n_edges; begin += stretch) {
    const std::size_t n = std::min<std::size_t>(stretch, n_edges - begin);
    add_up(cells + 1 + begin, n, hearing.least, hearing.most, running, left);
    if (left.too_few < left.up_to) {
      const std::size_t n_fit = left.up_to - left.too_few;
      hearing.judge(left.g.data() + left.too_few, left.h.data() + left.too_few, n_fit,
                    hearing.scale, scores.data());
      const auto last_code = static_cast<std::uint32_t>(1 + begin + left.too_few);
      judgement.see(scores.data(), n_fit, 2 * last_code + key_offset, 2);
      if constexpr (std::is_same_v<Judgement, Survey>) {
        judgement.see_edges(scores.data(), left, left.too_few, n_fit, last_code, hearing.scale);
      }
    }
    if (left.up_to < n) break;
  }
  if constexpr (std::is_same_v<Judgement, Survey>) judgement.end_pass(key_offset == 0);
}

// Keys of edges are 2 * last code on the left, plus 1 with the missing rows on the left. The last
// code ends at no edge: there only "missing against all others" is a candidate.
template <class Sums, class Judgement>
void judge_edges(const Hearing& hearing, const CodeLayout::Place& place, const Sums* cells,
                 Judgement& judgement) {
  const Totals missing(cells[missing_code]);
  const std::uint32_t n_edges = place.n_codes - 2;
  if (missing.n == 0) {
    judge_edges_with(hearing, cells, n_edges, Totals{}, 0, judgement);
  } else {
    judge_edges_with(hearing, cells, n_edges + 1, Totals{}, 0, judgement);
    judge_edges_with(hearing, cells, n_edges, missing, 1, judgement);
  }
}

template <class Sums>
Totals sum_of_codes(const Sums* cells, std::uint32_t first, std::uint32_t last) {
  Totals sum;
  for (std::uint32_t c = first; c <= last; ++c) sum += Totals(cells[c]);
  return sum;
}

template <class Judge>
Best judge_best(Standing* standing, Judge&& judge) {
  if (standing == nullptr) {
    Best best;
    judge(best);
    return best;
  }
  Survey survey;
  judge(survey);
  *standing = survey.standing;
  return survey;
}

template <class Sums>
Split best_category(const SplitParams& params, const CodeLayout::Place& place,
                    std::uint32_t feature, const Totals& node, const Sums* cells,
                    Standing* standing) {
  const Best best = judge_best(standing, [&](auto& judgement) {
    judge_categories(Hearing(params, node), place, cells, judgement);
  });
  if (best.score == never) return {};
  const auto code = static_cast<Code>(best.key);
  return {gain_from(best.score, scale_of(params, node)), {feature, code, 0}, Totals(cells[code])};
}

template <class Sums>
Split best_edge(const SplitParams& params, const CodeLayout::Place& place, std::uint32_t feature,
                const Totals& node, const Sums* cells, Standing* standing) {
  const Best best = judge_best(standing, [&](auto& judgement) {
    judge_edges(Hearing(params, node), place, cells, judgement);
  });
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
  const Hearing hearing(params, node);
  place.categorical ? judge_categories(hearing, place, cells, count)
                    : judge_edges(hearing, place, cells, count);
  return count.n_better;
}

template <class Sums>
Split best_split_of_feature(const SplitParams& params, const CodeLayout::Place& place,
                            std::uint32_t feature, const Totals& node, const Sums* histogram,
                            Standing* standing) {
  const Sums* cells = histogram + place.offset;
  return place.categorical ? best_category(params, place, feature, node, cells, standing)
                           : best_edge(params, place, feature, node, cells, standing);
}

template std::int64_t count_better(const SplitParams&, const CodeLayout::Place&, const Totals&,
                                   const PackedSums*, double);
template std::int64_t count_better(const SplitParams&, const CodeLayout::Place&, const Totals&,
                                   const WideSums*, double);
template Split best_split_of_feature(const SplitParams&, const CodeLayout::Place&, std::uint32_t,
                                     const Totals&, const PackedSums*, Standing*);
template Split best_split_of_feature(const SplitParams&, const CodeLayout::Place&, std::uint32_t,
                                     const Totals&, const WideSums*, Standing*);

}  // namespace graftboost
