#include "train/split_evaluation.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/rounding.hpp"
#include "train/candidate_scores.hpp"
#include "train/histogram.hpp"

namespace graftboost {

// Observers receive the scores of candidates as they are computed. Each candidate has a key, by
// which ties are broken: its code for a category; for an edge, 2 * the last code on the left, plus
// 1 if the missing rows go left. Keys of consecutive candidates rise by `step`.

template <class Sums>
struct SplitEvaluator<Sums>::Best {
  static constexpr bool surveys = false;
  double score = no_gain;
  std::uint32_t key = 0;

  void add(const double* scores, std::size_t n, std::uint32_t first_key, std::uint32_t step) {
    const double top = largest_score(scores, n);
    if (top == no_gain || top < score) return;
    const auto at = static_cast<std::uint32_t>(std::find(scores, scores + n, top) - scores);
    const std::uint32_t found = first_key + step * at;
    if (top > score || found < key) score = top, key = found;
  }
};

// The best, and a survey of all.
template <class Sums>
struct SplitEvaluator<Sums>::FeatureObserver : Best {
  static constexpr bool surveys = true;
  const SplitEvaluator& evaluator;
  FeatureSurvey survey;
  bool any_valid = false;  // in the present pass over the edges
  bool is_open = false;  // the last candidate so far is valid: the next one has yet to be surveyed
  std::uint32_t last_valid = 0;  // the last edge with a valid candidate, in the present pass

  explicit FeatureObserver(const SplitEvaluator& of) : evaluator(of) {}

  double hessian(std::int64_t h) const {
    return static_cast<double>(h) * evaluator.scale_.hessian_unit;
  }

  void add_category(const Totals& left, double score) {
    const double h = hessian(left.h);
    if (score == no_gain) {
      add_short(left);
    } else {
      survey.add_child(std::min(h, evaluator.scale_.h - h));
    }
  }
  void add_short(const Totals& left) {
    const NodeScale& scale = evaluator.scale_;
    const double h = hessian(left.h);
    survey.add_short(evaluator.least_ - std::min(left.n, evaluator.node_.n - left.n),
                     scale.least_hessian - std::min(h, scale.h - h));
  }

  void begin_edges(const Totals& missing) {
    // The first missing row doubles the number of candidates.
    survey.first = missing.n == 0 ? 1 : 0;
    survey.last = 0xffff;
  }

  // Valid candidates are consecutive, because rows and hessians add up from edge to edge; only the
  // first and the last of them matter. `scores` are of the n_fit candidates with enough rows among
  // the n of a stretch, which begins at edge `first`.
  void add_edges(const double* scores, const LeftSums& left, std::size_t n_fit, std::size_t n,
                 std::uint32_t first) {
    std::size_t begin = 0, end = n_fit;
    while (begin < end && scores[begin] == no_gain) ++begin;
    while (begin < end && scores[end - 1] == no_gain) --end;
    const NodeScale& scale = evaluator.scale_;
    const auto left_hessian = [&](std::size_t i) { return hessian(left.h[left.too_few + i]); };
    // What the candidate after the last valid one lacks.
    const auto add_next = [&] {
      if (end < n_fit) {
        survey.add_short(0, scale.least_hessian - (scale.h - left_hessian(end)));
      } else if (left.up_to < n) {
        survey.add_short(left.rows(left.up_to) - evaluator.most_, 0);
      }
      is_open = end == n_fit && left.up_to == n;
    };
    if (begin == end) {
      if (is_open) begin = end = 0, add_next();
      return;
    }
    const auto edge = [&](std::size_t i) {
      return static_cast<std::uint32_t>(first + left.too_few + i);
    };
    add_valid(scores, left, begin, end, first);
    if (!any_valid) {
      survey.first = static_cast<Code>(std::max<std::uint32_t>(survey.first, edge(begin)));
      if (begin > 0) {
        survey.add_short(0, scale.least_hessian - left_hessian(begin - 1));
      } else if (edge(0) > 1) {
        survey.add_short(left.too_few > 0 ? evaluator.least_ - left.rows(left.too_few - 1) : 1, 0);
      }
    }
    any_valid = true;
    last_valid = edge(end - 1);
    add_next();
  }

  // Candidates [begin, end) of a stretch are valid. From edge to edge the left child grows, so the
  // first and the last of them may be outer ones.
  void add_valid(const double* scores, const LeftSums& left, std::size_t begin, std::size_t end,
                 std::uint32_t first) {
    const std::int64_t* from = left.h.data() + left.too_few;
    const std::int64_t all = evaluator.node_.h, least = all >> FeatureSurvey::central_shift;
    const auto* centre = std::lower_bound(from + begin, from + end, least);
    const auto* behind = std::upper_bound(centre, from + end, all - least);
    const auto a = static_cast<std::size_t>(centre - from);
    const auto b = static_cast<std::size_t>(behind - from);
    const auto edge = [&](std::size_t i) { return first + left.too_few + i; };
    const auto right_hessian = [&](std::size_t i) { return evaluator.scale_.h - hessian(from[i]); };
    if (begin < a) {
      survey.add_outer(hessian(from[begin]), largest_score(scores + begin, a - begin));
      const std::size_t next = edge(a - 1) + 1;
      survey.first_central = static_cast<Code>(std::max<std::size_t>(survey.first_central, next));
    }
    if (a < b) {
      survey.add_child(hessian(from[a]));
      survey.add_child(right_hessian(b - 1));
    }
    if (b < end) {
      survey.add_outer(right_hessian(end - 1), largest_score(scores + b, end - b));
      survey.last_central = static_cast<Code>(std::min<std::size_t>(survey.last_central, edge(b)));
    }
  }

  // If no candidate is valid, the survey tells what the nearest one lacks.
  void end_edges(const Sums* cells, std::uint32_t n_edges, const Totals& missing) {
    is_open = false;
    if (std::exchange(any_valid, false)) {
      survey.last = static_cast<Code>(std::min<std::uint32_t>(survey.last, last_valid + 1));
      return;
    }
    survey.first = 0xffff;
    survey.last = 0;
    Sums running(missing);
    for (std::uint32_t edge = 1; edge <= n_edges; ++edge) {
      running += cells[edge];
      add_short(Totals(running));
    }
  }
};

template <class Sums>
struct SplitEvaluator<Sums>::CountBetter {
  static constexpr bool surveys = false;
  const NodeScale& scale;
  double gain;
  std::int64_t n_better = 0;

  void add(const double* scores, std::size_t n, std::uint32_t, std::uint32_t) {
    for (std::size_t i = 0; i < n; ++i) n_better += scale.gain(scores[i]) > gain;
  }
};

// Candidates that separate the same rows have the same gain, to the last bit.
template <class Sums>
struct SplitEvaluator<Sums>::NextGain {
  static constexpr bool surveys = false;
  const NodeScale& scale;
  double gain;
  double next = no_gain;

  void add(const double* scores, std::size_t n, std::uint32_t, std::uint32_t) {
    for (std::size_t i = 0; i < n; ++i) {
      const double other = scale.gain(scores[i]);
      if (other != gain) next = std::max(next, other);
    }
  }
};

template <class Sums>
SplitEvaluator<Sums>::SplitEvaluator(const GainParams& params, const Totals& node)
    : params_(params),
      node_(node),
      scale_(params, node),
      least_(params.min_samples_leaf),
      most_(node.n - params.min_samples_leaf),
      is_shiftable_(node.n < most_shiftable / params.largest_of_row) {}

// --- long features: stretches of candidates ------------------------------------------------------

template <class Sums>
template <class Observer>
void SplitEvaluator<Sums>::evaluate_categories(const FeatureLayout& feature, const Sums* cells,
                                               Observer& observer) const {
  LeftSums left;
  std::array<double, candidates_together> scores;
  for (std::uint32_t begin = 0; begin < feature.n_codes; begin += candidates_together) {
    const std::size_t n = std::min<std::size_t>(candidates_together, feature.n_codes - begin);
    left.take(cells + begin, n);
    (is_shiftable_ ? score_shiftable : score_any)(left.g.data(), left.h.data(), n, scale_,
                                                  scores.data());
    for (std::size_t i = 0; i < n; ++i) {
      const bool enough = left.rows(i) >= least_ && left.rows(i) <= most_;
      scores[i] = enough ? scores[i] : no_gain;
    }
    observer.add(scores.data(), n, begin, 1);
    if constexpr (Observer::surveys) {
      for (std::size_t i = 0; i < n; ++i)
        observer.add_category({left.g[i], left.h[i], left.rows(i)}, scores[i]);
    }
  }
}

// Each of the first n_edges edges, with `missing` added to the left.
template <class Sums>
template <class Observer>
void SplitEvaluator<Sums>::evaluate_edges(const Sums* cells, std::uint32_t n_edges,
                                          const Totals& missing, std::uint32_t key_offset,
                                          Observer& observer) const {
  Sums running(missing);
  LeftSums left;
  std::array<double, candidates_together> scores;
  for (std::uint32_t begin = 0; begin < n_edges; begin += candidates_together) {
    const std::size_t n = std::min<std::size_t>(candidates_together, n_edges - begin);
    left.add_up(cells + 1 + begin, n, least_, most_, running);
    const std::size_t n_fit = left.up_to - std::min(left.too_few, left.up_to);
    if (n_fit != 0) {
      (is_shiftable_ ? score_shiftable : score_any)(
          left.g.data() + left.too_few, left.h.data() + left.too_few, n_fit, scale_, scores.data());
      const auto last_code = static_cast<std::uint32_t>(1 + begin + left.too_few);
      observer.add(scores.data(), n_fit, 2 * last_code + key_offset, 2);
    }
    if constexpr (Observer::surveys) observer.add_edges(scores.data(), left, n_fit, n, 1 + begin);
    if (left.up_to < n) break;
  }
  if constexpr (Observer::surveys) observer.end_edges(cells, n_edges, missing);
}

// The last code ends at no edge; there the only candidate is "missing against all others".
template <class Sums>
template <class Observer>
void SplitEvaluator<Sums>::evaluate(const FeatureLayout& feature, const Sums* cells,
                                    Observer& observer) const {
  if (feature.categorical) return evaluate_categories(feature, cells, observer);
  const Totals missing(cells[missing_code]);
  const std::uint32_t n_edges = feature.n_codes - 2;
  if constexpr (Observer::surveys) observer.begin_edges(missing);
  if (missing.n == 0) {
    evaluate_edges(cells, n_edges, Totals{}, 0, observer);
  } else {
    evaluate_edges(cells, n_edges + 1, Totals{}, 0, observer);
    evaluate_edges(cells, n_edges, missing, 1, observer);
  }
}

// --- short features: one candidate at a time -----------------------------------------------------

// Bundled and sparse features mostly have one or two candidates, for which setting up a stretch
// costs more than evaluating them. Scores are the same bits.
template <class Sums>
void SplitEvaluator<Sums>::evaluate_few(const FeatureLayout& feature, const Sums* cells, Best& best,
                                        GroupSurvey* survey) const {
  const Code common = feature.common_code;
  if (feature.categorical) {
    for (std::uint32_t c = 0; c < feature.n_codes; ++c)
      evaluate_candidate(feature, Totals(cells[c]), c, c == common, best, survey);
    return;
  }
  const auto each_edge = [&](std::uint32_t n_edges, const Totals& missing, std::uint32_t offset) {
    Sums running(missing);
    for (std::uint32_t code = 1; code <= n_edges; ++code) {
      running += cells[code];
      const bool common_left = common == missing_code ? offset == 1 : common <= code;
      evaluate_candidate(feature, Totals(running), 2 * code + offset, common_left, best, survey);
    }
  };
  const Totals missing(cells[missing_code]);
  const std::uint32_t n_edges = feature.n_codes - 2;
  each_edge(missing.n == 0 ? n_edges : n_edges + 1, Totals{}, 0);
  if (missing.n != 0) each_edge(n_edges, missing, 1);
}

// The same for a numeric sparse feature in which `others` differ from the common code. Edges
// between which no row lies are one candidate, so only the cells that have rows are looked at.
template <class Sums>
void SplitEvaluator<Sums>::evaluate_entries(const FeatureLayout& feature,
                                            const FeatureCells<Sums>& view, const Totals& others,
                                            Best& best, GroupSurvey* survey) const {
  const Code common = feature.common_code;
  const Totals rest = node_ - others;
  Totals missing = common == missing_code ? rest : Totals{};
  std::size_t first = 0;  // cell that is not of missing values
  if (!view.cells.empty() && view.cells[0] == feature.offset + missing_code)
    missing = Totals(view.sums[first++]);
  const auto each_edge = [&](std::uint32_t n_edges, const Totals& before, std::uint32_t offset) {
    Totals running = before;
    const auto evaluate_at = [&](std::uint32_t code) {
      if (code > n_edges) return;
      const bool common_left = common == missing_code ? offset == 1 : common <= code;
      evaluate_candidate(feature, running, 2 * code + offset, common_left, best, survey);
    };
    bool is_first = true, has_common = common == missing_code;
    const auto add = [&](std::uint32_t code, const Totals& sums) {
      if (is_first && code > 1 && before.n != 0) evaluate_at(1);  // missing rows against all others
      is_first = false;
      running += sums;
      evaluate_at(code);
    };
    for (std::size_t i = first; i < view.cells.size(); ++i) {
      const std::uint32_t code = view.cells[i] - feature.offset;
      const Totals sums(view.sums[i]);
      if (sums.n == 0) continue;
      if (!has_common && common < code) has_common = true, add(common, rest);
      add(code, sums);
    }
    if (!has_common) add(common, rest);
  };
  const std::uint32_t n_edges = feature.n_codes - 2;
  each_edge(missing.n == 0 ? n_edges : n_edges + 1, Totals{}, 0);
  if (missing.n != 0) each_edge(n_edges, missing, 1);
}

template <class Sums>
void SplitEvaluator<Sums>::evaluate_candidate(const FeatureLayout& feature, const Totals& left,
                                              std::uint32_t key, bool common_left, Best& best,
                                              GroupSurvey* survey) const {
  const std::int64_t n_right = node_.n - left.n, n_less = std::min(left.n, n_right);
  if (n_less < least_ && (survey == nullptr || n_less < least_ - GroupSurvey::rows_ahead)) return;
  const double left_g = static_cast<double>(left.g) * scale_.gradient_unit;
  const double left_h = static_cast<double>(left.h) * scale_.hessian_unit;
  const double right_h = scale_.h - left_h, score = scale_.score(left_g, left_h);
  const double least_hessian = scale_.least_hessian;
  if (n_less >= least_ && std::min(left_h, right_h) >= least_hessian) {
    if (score > best.score || (score == best.score && key < best.key))
      best.score = score, best.key = key;
    if (survey != nullptr)
      GroupSurvey::note(survey->valid, feature.column, scale_, score,
                        common_left ? left_h : right_h);
  } else if (survey != nullptr) {
    const bool waits = common_left ? n_right >= least_ && right_h >= least_hessian
                                   : left.n >= least_ && left_h >= least_hessian;
    if (waits)
      GroupSurvey::note(survey->waiting, feature.column, scale_, score,
                        common_left ? left_h : right_h);
  }
}

// --- what callers ask ----------------------------------------------------------------------------

template <class Sums>
const Sums* SplitEvaluator<Sums>::all_cells(const FeatureLayout& feature,
                                            const FeatureCells<Sums>& cells) {
  if (cells.is_complete) return cells.sums;
  scratch_.assign(feature.n_codes, Sums(Totals{}));
  if (cells.is_sparse) {
    for (std::size_t i = 0; i < cells.cells.size(); ++i)
      scratch_[cells.cells[i] - feature.offset] = cells.sums[i];
  } else {
    std::copy_n(cells.sums, feature.n_codes, scratch_.data());
  }
  complete(feature, node_, scratch_.data());
  return scratch_.data();
}

// Whether so few rows differ from the common code that no candidate is valid.
template <class Sums>
bool SplitEvaluator<Sums>::has_none(const FeatureLayout& feature, const Sums* cells) const {
  return feature.counts_only_differing() &&
         node_.n - Totals(cells[feature.common_code]).n < params_.min_samples_leaf;
}

template <class Sums>
BestSplit SplitEvaluator<Sums>::split_at(const FeatureLayout& feature, const Sums* cells,
                                         const Best& best) const {
  const double gain = scale_.gain(best.score);
  if (feature.categorical) {
    const auto code = static_cast<Code>(best.key);
    return {gain, {feature.column, code, 0}, Totals(cells[code])};
  }
  const auto code = static_cast<Code>(best.key / 2);
  Totals below;
  for (std::uint32_t c = 1; c <= code; ++c) below += Totals(cells[c]);
  const Totals missing(cells[missing_code]);
  const bool missing_left = missing.n != 0 ? best.key % 2 == 1 : 2 * below.n >= node_.n;
  const Split split = missing_left ? Split{feature.column, 0, code}
                                   : Split{feature.column, 1, static_cast<Code>(code - 1)};
  return {gain, split, missing_left ? below + missing : below};
}

template <class Sums>
BestSplit SplitEvaluator<Sums>::best(const FeatureLayout& feature, const FeatureCells<Sums>& view,
                                     FeatureSurvey* survey) {
  const Sums* cells = all_cells(feature, view);
  if (survey != nullptr) {
    FeatureObserver observer(*this);
    evaluate(feature, cells, observer);
    *survey = observer.survey;
    return observer.score == no_gain ? BestSplit{} : split_at(feature, cells, observer);
  }
  if (has_none(feature, cells)) return {};
  Best best;
  evaluate(feature, cells, best);
  return best.score == no_gain ? BestSplit{} : split_at(feature, cells, best);
}

template <class Sums>
bool SplitEvaluator<Sums>::is_behind(const Best& found, const FeatureLayout& feature,
                                     const BestSplit& best) const {
  if (found.score == no_gain) return true;
  const double gain = scale_.gain(found.score);
  return gain < best.gain || (gain == best.gain && feature.column > best.split.feature);
}

template <class Sums>
bool SplitEvaluator<Sums>::improve(const FeatureLayout& feature, const FeatureCells<Sums>& view,
                                   BestSplit& best, GroupSurvey* survey) {
  if (!feature.counts_only_differing()) {
    const BestSplit found = this->best(feature, view);
    if (found.better_than(best)) best = found;
    return true;
  }
  if (view.is_sparse) {
    Sums differing(Totals{});
    for (std::size_t i = 0; i < view.cells.size(); ++i) differing += view.sums[i];
    const Totals others(differing);
    if (others.n < params_.min_samples_leaf) return false;
    if (!feature.categorical) {
      Best found;
      evaluate_entries(feature, view, others, found, survey);
      if (!is_behind(found, feature, best))
        best = split_at(feature, all_cells(feature, view), found);
      return true;
    }
  }
  const Sums* cells = all_cells(feature, view);
  if (has_none(feature, cells)) return false;
  Best found;
  evaluate_few(feature, cells, found, survey);
  if (!is_behind(found, feature, best)) best = split_at(feature, cells, found);
  return true;
}

template <class Sums>
std::int64_t SplitEvaluator<Sums>::count_better(const FeatureLayout& feature,
                                                const FeatureCells<Sums>& view, double gain) {
  const Sums* cells = all_cells(feature, view);
  if (has_none(feature, cells)) return 0;
  CountBetter count{scale_, gain};
  evaluate(feature, cells, count);
  return count.n_better;
}

template <class Sums>
double SplitEvaluator<Sums>::next_gain(const FeatureLayout& feature, const FeatureCells<Sums>& view,
                                       double gain) {
  NextGain found{scale_, gain};
  evaluate(feature, all_cells(feature, view), found);
  return found.next;
}

template <class Sums>
Margin SplitEvaluator<Sums>::margin(const FeatureLayout& feature, const FeatureCells<Sums>& view,
                                    const Split& split) {
  const Sums* cells = all_cells(feature, view);
  const auto rows = [&](std::uint32_t code) { return Totals(cells[code]).n; };
  if (feature.categorical) return {rows(split.low), 0, 0};
  Margin margin{std::numeric_limits<std::int64_t>::max()};
  const auto add = [&](std::uint32_t code) {
    if (rows(code) != 0) margin.rows = std::min(margin.rows, rows(code));
  };
  const std::uint32_t edge = std::uint32_t{split.low} + split.span;
  std::uint32_t below = edge, above = edge + 1;
  while (below > 0 && rows(below) == 0) --below;
  while (above < feature.n_codes && rows(above) == 0) ++above;
  if (below > 0) add(below);
  if (above < feature.n_codes) add(above);
  add(missing_code);
  margin.below = static_cast<Code>(below);
  margin.above = static_cast<Code>(above);
  return margin;
}

template <class Sums>
std::int64_t SplitEvaluator<Sums>::rows_between(const FeatureLayout& feature,
                                                const FeatureCells<Sums>& view, const Split& one,
                                                const Split& other) {
  const Sums* cells = all_cells(feature, view);
  std::int64_t n = 0;
  for (std::uint32_t c = 0; c < feature.n_codes; ++c) {
    const auto code = static_cast<Code>(c);
    if (one.goes_left(code) != other.goes_left(code)) n += Totals(cells[c]).n;
  }
  return n;
}

template class SplitEvaluator<PackedSums>;
template class SplitEvaluator<WideSums>;

}  // namespace graftboost
