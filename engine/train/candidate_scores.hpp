// Scores of consecutive candidates, in stretches that stay in the nearest cache and vectorise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/sums.hpp"
#include "train/gain.hpp"

namespace graftboost {

inline constexpr std::size_t candidates_together = 128;

// The integer sums on the left of consecutive candidates. From edge to edge row counts only grow,
// so the candidates with enough rows in both children are the ones from too_few to before up_to.
struct LeftSums {
  std::array<std::int64_t, candidates_together> g, h;
  // Pairs of which the second has the row count, in the bits of row_bits.
  std::array<std::uint64_t, 2 * candidates_together> packed;
  std::uint64_t row_bits = ~std::uint64_t{0};
  std::size_t too_few = 0;  // candidates, from the first, with fewer than `least` rows
  std::size_t up_to = 0;    // candidates, from the first, with at most `most` rows

  std::int64_t rows(std::size_t i) const {
    return static_cast<std::int64_t>(packed[2 * i + 1] & row_bits);
  }

  // Sums of the cells up to and including each of n, continued from `running`.
  void add_up(const PackedSums* cells, std::size_t n, std::int64_t least, std::int64_t most,
              PackedSums& running);
  void add_up(const WideSums* cells, std::size_t n, std::int64_t least, std::int64_t most,
              WideSums& running);
  // Sums of each of n cells by itself. Row counts do not ascend: too_few and up_to are undefined.
  void take(const PackedSums* cells, std::size_t n);
  void take(const WideSums* cells, std::size_t n);
};

// The scores of n candidates with these sums on the left; no_gain where a child has too little
// hessian. The first is faster, for sums below most_shiftable.
void score_shiftable(const std::int64_t* left_g, const std::int64_t* left_h, std::size_t n,
                     const NodeScale& scale, double* scores);
void score_any(const std::int64_t* left_g, const std::int64_t* left_h, std::size_t n,
               const NodeScale& scale, double* scores);

// The largest of some scores.
double largest_score(const double* scores, std::size_t n);

}  // namespace graftboost
