#include "train/candidate_scores.hpp"

#include <algorithm>

#include "core/rounding.hpp"
#include "core/vectorise.hpp"

namespace graftboost {
namespace {

template <class ToDouble>
[[gnu::always_inline]] inline void score(const std::int64_t* left_g, const std::int64_t* left_h,
                                         std::size_t n, const NodeScale& scale, double* scores,
                                         ToDouble to_double) {
  for (std::size_t i = 0; i < n; ++i) {
    const double g = to_double(left_g[i]) * scale.gradient_unit;
    const double h = to_double(left_h[i]) * scale.hessian_unit;
    const double value = scale.score(g, h);
    const bool enough = (h >= scale.least_hessian) & (scale.h - h >= scale.least_hessian);
    scores[i] = enough ? value : no_gain;
  }
}

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

}  // namespace

GRAFTBOOST_ALSO_AVX2
void score_shiftable(const std::int64_t* left_g, const std::int64_t* left_h, std::size_t n,
                     const NodeScale& scale, double* scores) {
  score(left_g, left_h, n, scale, scores, shifted_to_double);
}

void score_any(const std::int64_t* left_g, const std::int64_t* left_h, std::size_t n,
               const NodeScale& scale, double* scores) {
  score(left_g, left_h, n, scale, scores, [](std::int64_t x) { return static_cast<double>(x); });
}

void LeftSums::add_up(const PackedSums* cells, std::size_t n, std::int64_t least, std::int64_t most,
                      PackedSums& running) {
  row_bits = PackedSums::most_rows;
  PackedSums sums = running;  // in a register: `running` might overlap `packed`
  for (std::size_t i = 0; i < n; ++i) {
    sums += cells[i];
    sums.store(packed.data() + 2 * i);
  }
  running = sums;
  unpack(n, least, most, *this);
}

void LeftSums::add_up(const WideSums* cells, std::size_t n, std::int64_t least, std::int64_t most,
                      WideSums& running) {
  too_few = up_to = 0;
  WideSums sums = running;
  for (std::size_t i = 0; i < n; ++i) {
    sums += cells[i];
    g[i] = sums.g;
    h[i] = sums.h;
    packed[2 * i + 1] = static_cast<std::uint64_t>(sums.n);
    too_few += sums.n < least;
    up_to += sums.n <= most;
  }
  running = sums;
}

void LeftSums::take(const PackedSums* cells, std::size_t n) {
  row_bits = PackedSums::most_rows;
  for (std::size_t i = 0; i < n; ++i) cells[i].store(packed.data() + 2 * i);
  unpack(n, 0, 0, *this);
}

void LeftSums::take(const WideSums* cells, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    g[i] = cells[i].g;
    h[i] = cells[i].h;
    packed[2 * i + 1] = static_cast<std::uint64_t>(cells[i].n);
  }
}

double largest_score(const double* scores, std::size_t n) {
  constexpr std::size_t lanes = 4;
  std::array<double, lanes> top;
  top.fill(no_gain);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::size_t j = 0; j < lanes; ++j)
      top[j] = scores[i + j] > top[j] ? scores[i + j] : top[j];
  }
  for (; i < n; ++i) top[0] = scores[i] > top[0] ? scores[i] : top[0];
  return *std::max_element(top.begin(), top.end());
}

}  // namespace graftboost
