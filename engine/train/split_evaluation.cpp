#include "train/split_evaluation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "train/histogram.hpp"
#include "core/vectorise.hpp"

namespace graftboost {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

// Candidates are judged in stretches that fit in the nearest cache and that vectorise.
constexpr std::size_t stretch = 128;

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

Scale scale_of(const GainParams& params, const Totals& node) {
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
  std::array<std::uint64_t, 2 * stretch>
      packed;  // every second has the rows, in the bits of row_bits
  std::uint64_t row_bits = ~std::uint64_t{0};
  std::size_t too_few = 0;  // candidates, from the first, with fewer rows than `least`
  std::size_t up_to = 0;    // candidates, from the first, with at most `most` rows

  std::int64_t rows(std::size_t i) const {
    return static_cast<std::int64_t>(packed[2 * i + 1] & row_bits);
  }
};

GRAFTBOOST_ALSO_AVX2
void unpack(std::size_t n, std::int64_t least, std::int64_t most, LeftSums& left) {
  const std::uint64_t* packed = left.packed.data();
  std::int64_t too_few = 0, up_to = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t rows = PackedSums::rows_in(packed[2 * i + 1]);
    left.g[i] = static_cast<std::int64_t>(packed[2 * i]);
    left.h[i] = PackedSums::hessian_in(packed[2 * i + 1]);
    too_few += rows < least;
    up_to += rows <= most;
  }
  left.too_few = static_cast<std::size_t>(too_few);
  left.up_to = static_cast<std::size_t>(up_to);
}

// Sums of the cells up to and with each of n, which go on from `running`. RowTable add up, so the
// candidates with enough of them on both sides are those from too_few to up_to.
void add_up(const PackedSums* cells, std::size_t n, std::int64_t least, std::int64_t most,
            PackedSums& running, LeftSums& left) {
  left.row_bits = PackedSums::most_rows;
  for (std::size_t i = 0; i < n; ++i) {
    running += cells[i];
    running.store(left.packed.data() + 2 * i);
  }
  unpack(n, least, most, left);
}
void add_up(const WideSums* cells, std::size_t n, std::int64_t least, std::int64_t most,
            WideSums& running, LeftSums& left) {
  left.too_few = left.up_to = 0;
  for (std::size_t i = 0; i < n; ++i) {
    running += cells[i];
    left.g[i] = running.g;
    left.h[i] = running.h;
    left.packed[2 * i + 1] = static_cast<std::uint64_t>(running.n);
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
  bool any = false;  // candidate of this pass counts

  void see_side(double hessian) {
    standing.least_hessian = std::min(standing.least_hessian, hessian);
  }
  // A candidate does not count: its sides lack so many rows and so much hessian.
  void see_short(std::int64_t rows, double hessian) {
    if (hessian > 0) {
      standing.hessian_short = std::min(standing.hessian_short, hessian);
    } else {
      standing.rows_short = std::min(standing.rows_short, rows);
    }
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

// Candidates that send the same rows to the same side have the same gain, to the last bit.
struct NextGain {
  Scale scale;
  double gain;
  double next = never;

  void see(const double* scores, std::size_t n, std::uint32_t, std::uint32_t) {
    for (std::size_t i = 0; i < n; ++i) {
      const double other = gain_from(scores[i], scale);
      if (other != gain) next = std::max(next, other);
    }
  }
};

// What judging a feature takes besides its cells.
struct Hearing {
  Scale scale;
  std::int64_t least, most;  // rows on the left
  decltype(&judge_any) judge;

  Hearing(const GainParams& params, const Totals& node)
      : scale(scale_of(params, node)),
        least(params.min_samples_leaf),
        most(node.n - params.min_samples_leaf),
        judge(node.n < most_shiftable / params.largest_contribution ? judge_shiftable : judge_any) {
  }
};

// What a candidate with this on its left lacks.
void see_short(const Hearing& hearing, const Totals& left, std::int64_t n, Survey& survey) {
  const double h = static_cast<double>(left.h) * hearing.scale.hessian_unit;
  survey.see_short(hearing.least - std::min(left.n, n - left.n),
                   hearing.scale.least_hessian - std::min(h, hearing.scale.h - h));
}

// Each category against all others; keys are codes.
template <class Sums, class Judgement>
void judge_categories(const Hearing& hearing, const FeatureLayout& place, const Sums* cells,
                      Judgement& judgement) {
  for (std::uint32_t c = 0; c < place.n_codes; ++c) {
    const Totals left(cells[c]);
    double score = never;
    if (left.n >= hearing.least && left.n <= hearing.most) {
      hearing.judge(&left.g, &left.h, 1, hearing.scale, &score);
      judgement.see(&score, 1, c, 1);
    }
    if constexpr (std::is_same_v<Judgement, Survey>) {
      const double h = static_cast<double>(left.h) * hearing.scale.hessian_unit;
      if (score == never) {
        see_short(hearing, left, hearing.least + hearing.most, judgement);
      } else {
        judgement.see_side(std::min(h, hearing.scale.h - h));
      }
    }
  }
}

// The candidates that count lie together, because rows and hessians add up from edge to edge. Looks at
// their ends. `scores` are of the n_fit candidates with rows enough among the n of a stretch, which
// begins at edge `first`.
void survey_edges(const Hearing& hearing, const double* scores, const LeftSums& left,
                  std::size_t n_fit, std::size_t n, std::uint32_t first, Survey& survey) {
  std::size_t begin = 0, end = n_fit;
  while (begin < end && scores[begin] == never) ++begin;
  while (begin < end && scores[end - 1] == never) --end;
  if (begin == end) return;
  const Scale& scale = hearing.scale;
  const auto hessian = [&](std::size_t i) {  // left of candidate i of those with rows enough
    return static_cast<double>(left.h[left.too_few + i]) * scale.hessian_unit;
  };
  Standing& standing = survey.standing;
  const auto edge = [&](std::size_t i) {
    return static_cast<std::uint32_t>(first + left.too_few + i);
  };
  if (!survey.any) {
    standing.first = static_cast<Code>(std::max<std::uint32_t>(standing.first, edge(begin)));
    survey.see_side(hessian(begin));
    if (begin > 0) {
      survey.see_short(0, scale.least_hessian - hessian(begin - 1));
    } else if (edge(0) > 1) {
      survey.see_short(left.too_few > 0 ? hearing.least - left.rows(left.too_few - 1) : 1, 0);
    }
  }
  survey.any = true;
  survey.see_side(scale.h - hessian(end - 1));
  // Of several stretches the last that counts has the last word.
  standing.last = static_cast<Code>(std::min<std::uint32_t>(standing.last, edge(end - 1) + 1));
  if (end < n_fit) {
    survey.see_short(0, scale.least_hessian - (scale.h - hessian(end)));
  } else if (left.up_to < n) {
    survey.see_short(left.rows(left.up_to) - hearing.most, 0);
  }
}

// Where no candidate counts: what the nearest one lacks.
template <class Sums>
void survey_none(const Hearing& hearing, const Sums* cells, std::uint32_t n_edges,
                 const Totals& missing, Survey& survey) {
  survey.standing.first = 0xffff;
  survey.standing.last = 0;
  Sums running(missing);
  for (std::uint32_t edge = 1; edge <= n_edges; ++edge) {
    running += cells[edge];
    see_short(hearing, Totals(running), hearing.least + hearing.most, survey);
  }
}

// Each of the first n_edges edges, with `missing` added to the left side.
template <class Sums, class Judgement>
void judge_edges_with(const Hearing& hearing, const Sums* cells, std::uint32_t n_edges,
                      const Totals& missing, std::uint32_t key_offset, Judgement& judgement) {
  constexpr bool surveys = std::is_same_v<Judgement, Survey>;
  Sums running(missing);
  LeftSums left;
  std::array<double, stretch> scores;
  if constexpr (surveys) judgement.any = false;
  for (std::uint32_t begin = 0; begin < n_edges; begin += stretch) {
    const std::size_t n = std::min<std::size_t>(stretch, n_edges - begin);
    add_up(cells + 1 + begin, n, hearing.least, hearing.most, running, left);
    if (left.too_few < left.up_to) {
      const std::size_t n_fit = left.up_to - left.too_few;
      hearing.judge(left.g.data() + left.too_few, left.h.data() + left.too_few, n_fit,
                    hearing.scale, scores.data());
      const auto last_code = static_cast<std::uint32_t>(1 + begin + left.too_few);
      judgement.see(scores.data(), n_fit, 2 * last_code + key_offset, 2);
      if constexpr (surveys) {
        survey_edges(hearing, scores.data(), left, n_fit, n, 1 + begin, judgement);
      }
    }
    if (left.up_to < n) break;
  }
  if constexpr (surveys) {
    if (!judgement.any) survey_none(hearing, cells, n_edges, missing, judgement);
  }
}

// Keys of edges are 2 * last code on the left, plus 1 with the missing rows on the left. The last
// code ends at no edge: there only "missing against all others" is a candidate.
template <class Sums, class Judgement>
void judge_edges(const Hearing& hearing, const FeatureLayout& place, const Sums* cells,
                 Judgement& judgement) {
  const Totals missing(cells[missing_code]);
  const std::uint32_t n_edges = place.n_codes - 2;
  if constexpr (std::is_same_v<Judgement, Survey>) {
    // A first missing row makes all candidates twice.
    judgement.standing.first = missing.n == 0 ? 1 : 0;
    judgement.standing.last = 0xffff;
  }
  if (missing.n == 0) {
    judge_edges_with(hearing, cells, n_edges, Totals{}, 0, judgement);
  } else {
    judge_edges_with(hearing, cells, n_edges + 1, Totals{}, 0, judgement);
    judge_edges_with(hearing, cells, n_edges, missing, 1, judgement);
  }
}

template <class Sums, class Judgement>
void judge_all(const GainParams& params, const FeatureLayout& place, const Totals& node,
               const Sums* cells, Judgement& judgement) {
  const Hearing hearing(params, node);
  place.categorical ? judge_categories(hearing, place, cells, judgement)
                    : judge_edges(hearing, place, cells, judgement);
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
BestSplit split_at_category(const GainParams& params, const FeatureLayout& place,
                        const Totals& node, const Sums* cells, const Best& best) {
  const auto code = static_cast<Code>(best.key);
  return {
      gain_from(best.score, scale_of(params, node)), {place.column, code, 0}, Totals(cells[code])};
}

template <class Sums>
BestSplit split_at_edge(const GainParams& params, const FeatureLayout& place, const Totals& node,
                    const Sums* cells, const Best& best) {
  const auto code = static_cast<Code>(best.key / 2);
  const Totals missing(cells[missing_code]), below = sum_of_codes(cells, 1, code);
  const bool missing_left = missing.n != 0 ? best.key % 2 == 1 : 2 * below.n >= node.n;
  const Split split = missing_left ? Split{place.column, 0, code}
                                 : Split{place.column, 1, static_cast<Code>(code - 1)};
  return {gain_from(best.score, scale_of(params, node)), split,
          missing_left ? below + missing : below};
}

template <class Sums>
BestSplit best_category(const GainParams& params, const FeatureLayout& place, const Totals& node,
                    const Sums* cells, Standing* standing) {
  const Best best = judge_best(standing, [&](auto& judgement) {
    judge_categories(Hearing(params, node), place, cells, judgement);
  });
  return best.score == never ? BestSplit{} : split_at_category(params, place, node, cells, best);
}

template <class Sums>
BestSplit best_edge(const GainParams& params, const FeatureLayout& place, const Totals& node,
                const Sums* cells, Standing* standing) {
  const Best best = judge_best(standing, [&](auto& judgement) {
    judge_edges(Hearing(params, node), place, cells, judgement);
  });
  return best.score == never ? BestSplit{} : split_at_edge(params, place, node, cells, best);
}

}  // namespace

double gain_of(const GainParams& params, const Totals& node, const Totals& left) {
  const Scale scale = scale_of(params, node);
  double score = never;
  judge_any(&left.g, &left.h, 1, scale, &score);
  return score == never ? never : gain_from(score, scale);
}

template <class Sums>
Margin margin_of(const FeatureLayout& place, const Split& split, const Sums* cells) {
  const auto rows = [&](std::uint32_t code) { return Totals(cells[code]).n; };
  if (place.categorical) return {rows(split.low), 0, 0};
  Margin margin{std::numeric_limits<std::int64_t>::max()};
  const auto see = [&](std::uint32_t code) {
    if (rows(code) != 0) margin.rows = std::min(margin.rows, rows(code));
  };
  const std::uint32_t edge = std::uint32_t{split.low} + split.span;
  std::uint32_t below = edge, above = edge + 1;
  while (below > 0 && rows(below) == 0) --below;
  while (above < place.n_codes && rows(above) == 0) ++above;
  if (below > 0) see(below);
  if (above < place.n_codes) see(above);
  see(missing_code);
  margin.below = static_cast<Code>(below);
  margin.above = static_cast<Code>(above);
  return margin;
}

template <class Sums>
std::int64_t count_better(const GainParams& params, const FeatureLayout& place,
                          const Totals& node, const Sums* cells, double gain) {
  if (has_none(params, place, node, cells)) return 0;
  CountBetter count{scale_of(params, node), gain};
  judge_all(params, place, node, cells, count);
  return count.n_better;
}

template <class Sums>
double next_gain(const GainParams& params, const FeatureLayout& place, const Totals& node,
                 const Sums* cells, double gain) {
  NextGain found{scale_of(params, node), gain};
  judge_all(params, place, node, cells, found);
  return found.next;
}

template <class Sums>
BestSplit best_split_of_feature(const GainParams& params, const FeatureLayout& place,
                            const Totals& node, const Sums* cells, Standing* standing) {
  if (standing == nullptr && has_none(params, place, node, cells)) return {};
  return place.categorical ? best_category(params, place, node, cells, standing)
                           : best_edge(params, place, node, cells, standing);
}

namespace {

std::size_t group_of(double hessian) {
  constexpr std::int64_t bias = 1023, lowest = -4;  // 2^lowest and less is the first group
  const auto exponent =
      static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(hessian) >> 52) - bias;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(exponent - lowest, 0, Standings::n_groups - 1));
}

}  // namespace

void Standings::add(const Standings& others) {
  const auto add = [](Group& to, const Group& from) {
    to.least_hessian = std::min(to.least_hessian, from.least_hessian);
    if (from.gain > to.gain) {
      to.next_gain = std::max(to.gain, from.next_gain);
      to.gain = from.gain;
      to.feature = from.feature;
    } else {
      to.next_gain = std::max(to.next_gain, from.gain);
    }
  };
  for (std::size_t i = 0; i < n_groups; ++i) {
    add(counting[i], others.counting[i]);
    add(waiting[i], others.waiting[i]);
  }
}

template <class Sums>
struct Search<Sums>::Found : Best {};

template <class Sums>
Search<Sums>::Search(const GainParams& params, const Totals& node, bool surveys)
    : params_(params), node_(node), surveys_(surveys), scale_(scale_of(params, node)) {}

template <class Sums>
bool Search<Sums>::see(const FeatureLayout& place, const Sums* cells) {
  if (!place.counts_only_differing()) {
    const BestSplit split = best_split_of_feature(params_, place, node_, cells);
    if (split.better_than(best_)) best_ = split;
    return true;
  }
  if (has_none(params_, place, node_, cells)) return false;
  Found found;
  if (place.categorical) {
    for (std::uint32_t c = 0; c < place.n_codes; ++c)
      see_candidate(Totals(cells[c]), c, c == place.common_code, place, found);
  } else {
    const Totals missing(cells[missing_code]);
    const std::uint32_t n_edges = place.n_codes - 2;
    see_edges(cells, missing.n == 0 ? n_edges : n_edges + 1, Totals{}, 0, place, found);
    if (missing.n != 0) see_edges(cells, n_edges, missing, 1, place, found);
  }
  if (is_behind(found, place)) return true;
  best_ = place.categorical ? split_at_category(params_, place, node_, cells, found)
                            : split_at_edge(params_, place, node_, cells, found);
  return true;
}

template <class Sums>
bool Search<Sums>::is_behind(const Found& found, const FeatureLayout& place) const {
  if (found.score == never) return true;
  const double gain = gain_from(found.score, scale_);
  return gain < best_.gain || (gain == best_.gain && place.column > best_.split.feature);
}

template <class Sums>
bool Search<Sums>::see_sparse(const FeatureLayout& place, std::span<const std::uint32_t> cells,
                              const Sums* sums) {
  Sums differing(Totals{});
  for (std::size_t i = 0; i < cells.size(); ++i) differing += sums[i];
  const Totals others(differing);
  if (others.n < params_.min_samples_leaf) return false;
  // Of many a feature the rows have one other value: there is one way to part them.
  const Code common = place.common_code;
  const bool has_one = cells.size() == 1 && cells[0] != place.offset + missing_code;
  if (has_one && !place.categorical && common != missing_code) {
    const auto code = static_cast<Code>(cells[0] - place.offset);
    Found found;
    see_candidate(code < common ? others : node_ - others, 2u * std::min(code, common),
                  common < code, place, found);
    if (is_behind(found, place)) return true;
  }
  scratch_.assign(place.n_codes, Sums(Totals{}));
  for (std::size_t i = 0; i < cells.size(); ++i) scratch_[cells[i] - place.offset] = sums[i];
  complete(place, node_, scratch_.data());
  return see(place, scratch_.data());
}

template <class Sums>
void Search<Sums>::see_edges(const Sums* cells, std::uint32_t n_edges, const Totals& missing,
                             std::uint32_t offset, const FeatureLayout& place, Found& found) {
  const Code common = place.common_code;
  Sums running(missing);
  for (std::uint32_t code = 1; code <= n_edges; ++code) {
    running += cells[code];
    see_candidate(Totals(running), 2 * code + offset,
                  common == missing_code ? offset == 1 : common <= code, place, found);
  }
}

template <class Sums>
void Search<Sums>::see_candidate(const Totals& left, std::uint32_t key, bool common_left,
                                 const FeatureLayout& place, Found& found) {
  const std::int64_t least = params_.min_samples_leaf;
  const std::int64_t n_right = node_.n - left.n, n_less = std::min(left.n, n_right);
  if (n_less < least && (!surveys_ || n_less < least - Standings::rows_ahead)) return;
  const double gl = static_cast<double>(left.g) * scale_.gradient_unit;
  const double hl = static_cast<double>(left.h) * scale_.hessian_unit;
  const double gr = scale_.g - gl, hr = scale_.h - hl;
  const double score = gl * gl / (hl + scale_.l2) + gr * gr / (hr + scale_.l2);
  if (n_less >= least && std::min(hl, hr) >= scale_.least_hessian) {
    if (score > found.score || (score == found.score && key < found.key))
      found.score = score, found.key = key;
    if (surveys_) note(standings_.counting, place.column, score, common_left ? hl : hr);
  } else if (surveys_) {
    const bool waits = common_left ? n_right >= least && hr >= scale_.least_hessian
                                   : left.n >= least && hl >= scale_.least_hessian;
    if (waits) note(standings_.waiting, place.column, score, common_left ? hl : hr);
  }
}

template <class Sums>
void Search<Sums>::note(std::array<Standings::Group, Standings::n_groups>& groups,
                        std::uint32_t feature, double score, double hessian) const {
  const bool any = hessian > 0;
  Standings::Group& group = groups[any ? group_of(hessian) : 0];
  const double gain = any ? gain_from(score, scale_) : std::numeric_limits<double>::infinity();
  group.least_hessian = std::min(group.least_hessian, std::max(hessian, 0.0));
  if (group.feature == feature && group.gain != never) {
    group.gain = std::max(group.gain, gain);
  } else if (gain > group.gain) {
    group.next_gain = group.gain;
    group.gain = gain;
    group.feature = feature;
  } else {
    group.next_gain = std::max(group.next_gain, gain);
  }
}

template class Search<PackedSums>;
template class Search<WideSums>;
template Margin margin_of(const FeatureLayout&, const Split&, const PackedSums*);
template Margin margin_of(const FeatureLayout&, const Split&, const WideSums*);
template std::int64_t count_better(const GainParams&, const FeatureLayout&, const Totals&,
                                   const PackedSums*, double);
template std::int64_t count_better(const GainParams&, const FeatureLayout&, const Totals&,
                                   const WideSums*, double);
template double next_gain(const GainParams&, const FeatureLayout&, const Totals&,
                          const WideSums*, double);
template BestSplit best_split_of_feature(const GainParams&, const FeatureLayout&, const Totals&,
                                     const PackedSums*, Standing*);
template BestSplit best_split_of_feature(const GainParams&, const FeatureLayout&, const Totals&,
                                     const WideSums*, Standing*);

}  // namespace graftboost
