// When a split is kept although rows changed.
#pragma once

#include <cstdint>
#include <limits>

namespace graftboost {

// With an infinite tolerance every split is kept, as long as the trees can represent the rows at
// all.
//   regret   keeps a split while (best gain - its gain) / noise * N / n <= tolerance: nodes of few
//            rows are regrown sooner, because they are cheap and remember single rows
//   rank     keeps a split while it is among the best `n_top` candidates (the paper's sigma)
struct UpdateRule {
  enum class Kind : std::uint8_t { regret, rank };
  Kind kind = Kind::regret;
  double tolerance = 1;
  std::int64_t n_top = 1;

  bool keeps_structure() const { return tolerance == std::numeric_limits<double>::infinity(); }

  bool tolerates_regret(double best, double present, double noise, std::int64_t n_all,
                        std::int64_t n) const {
    return (best - present) / noise * (static_cast<double>(n_all) / static_cast<double>(n)) <=
           tolerance;
  }
};

}  // namespace graftboost
