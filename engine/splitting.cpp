#include "splitting.hpp"

#include <algorithm>
#include <array>

namespace graftboost {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

// Scores are worked out in stretches that fit on the stack and that the compiler can vectorise.
constexpr std::size_t stretch = 128;

// For x86 the loop is compiled for AVX2 as well and chosen at load time; without fused operations
// both give the same bits.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define GRAFTBOOST_CLONES [[gnu::target_clones("avx2", "default")]]
#else
#define GRAFTBOOST_CLONES
#endif

struct NodeScale {
  double g, h, l2;
};

// G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2), or `never` where a side has too little hessian.
GRAFTBOOST_CLONES
void score_candidates(const double* left_g, const double* left_h, std::size_t n, NodeScale node,
                      double* score) {
  for (std::size_t i = 0; i < n; ++i) {
    const double gl = left_g[i], hl = left_h[i];
    const double gr = node.g - gl, hr = node.h - hl;
    const double value = gl * gl / (hl + node.l2) + gr * gr / (hr + node.l2);
    const bool enough = (hl >= least_hessian) & (hr >= least_hessian);
    score[i] = enough ? value : never;
  }
}

// Collects candidates of one feature and remembers the best; among equals the first.
class Contest {
 public:
  Contest(const SplitParams& params, const Totals& node)
      : params_(params), node_(node),
        scale_{static_cast<double>(node.g) * params.gradient_unit,
               static_cast<double>(node.h) * params.hessian_unit, params.l2} {}

  void enter(const Totals& left, std::uint32_t key) {
    left_g_[size_] = static_cast<double>(left.g) * params_.gradient_unit;
    left_h_[size_] = static_cast<double>(left.h) * params_.hessian_unit;
    key_[size_] = key;
    if (++size_ == stretch) judge();
  }
  void judge() {
    score_candidates(left_g_.data(), left_h_.data(), size_, scale_, score_.data());
    for (std::size_t i = 0; i < size_; ++i) {
      if (score_[i] > best_score_) best_score_ = score_[i], best_key_ = key_[i];
    }
    size_ = 0;
  }
  bool decided() const { return best_score_ != never; }
  std::uint32_t best_key() const { return best_key_; }
  double gain() const { return best_score_ - scale_.g * scale_.g / (scale_.h + scale_.l2); }

 private:
  const SplitParams& params_;
  const Totals& node_;
  NodeScale scale_;
  std::array<double, stretch> left_g_, left_h_, score_;
  std::array<std::uint32_t, stretch> key_;
  std::size_t size_ = 0;
  double best_score_ = never;
  std::uint32_t best_key_ = 0;
};

template <class Sums>
Totals sum_of_codes(const Sums* cells, std::uint32_t first, std::uint32_t last) {
  Totals sum;
  for (std::uint32_t c = first; c <= last; ++c) sum += Totals(cells[c]);
  return sum;
}

template <class Sums>
Split best_category(const SplitParams& params, const CodeLayout::Place& place,
                    std::uint32_t feature, const Totals& node, const Sums* cells) {
  const std::int64_t least = params.min_samples_leaf, most = node.n - least;
  Contest contest(params, node);
  for (std::uint32_t c = 0; c < place.n_codes; ++c) {
    const Totals left(cells[c]);
    if (left.n >= least && left.n <= most) contest.enter(left, c);
  }
  contest.judge();
  if (!contest.decided()) return {};
  const auto code = static_cast<Code>(contest.best_key());
  return {contest.gain(), {feature, code, 0}, Totals(cells[code])};
}

// Keys are 2 * last code on the left, plus 1 with the missing rows on the left.
template <class Sums>
Split best_edge(const SplitParams& params, const CodeLayout::Place& place, std::uint32_t feature,
                const Totals& node, const Sums* cells) {
  const std::int64_t least = params.min_samples_leaf, most = node.n - least;
  const Totals missing(cells[missing_code]);
  const bool has_missing = missing.n != 0;
  Contest contest(params, node);
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
  contest.judge();
  if (!contest.decided()) return {};
  const auto code = static_cast<Code>(contest.best_key() / 2);
  const Totals below = sum_of_codes(cells, 1, code);
  const bool missing_left =
      has_missing ? contest.best_key() % 2 == 1 : 2 * below.n >= node.n;
  const Test test = missing_left ? Test{feature, 0, code} : Test{feature, 1, static_cast<Code>(code - 1)};
  return {contest.gain(), test, missing_left ? below + missing : below};
}

}  // namespace

template <class Sums>
Split best_split_of_feature(const SplitParams& params, const CodeLayout::Place& place,
                            std::uint32_t feature, const Totals& node, const Sums* histogram) {
  const Sums* cells = histogram + place.offset;
  return place.categorical ? best_category(params, place, feature, node, cells)
                           : best_edge(params, place, feature, node, cells);
}

template Split best_split_of_feature(const SplitParams&, const CodeLayout::Place&, std::uint32_t,
                                     const Totals&, const PackedSums*);
template Split best_split_of_feature(const SplitParams&, const CodeLayout::Place&, std::uint32_t,
                                     const Totals&, const WideSums*);

}  // namespace graftboost
