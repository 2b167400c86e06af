// Which nodes an update regrows.
#pragma once

#include <cstdint>
#include <limits>

namespace graftboost {

//   fidelity  regrows as much as it takes until the changed rows are forgotten, or learned, to this
//             fraction of what a retrain would achieve. Rows that the model remembers by less than
//             memory_floor need nothing. The tolerance is chosen for each update (see selection.hpp)
//   regret    keeps a split while (best gain - its gain) / noise * N / n <= tolerance: nodes of few
//             rows are regrown sooner, because they are cheap and remember single rows
//   rank      keeps a split while it is among the best `n_top` candidates (the paper's sigma)
struct UpdateRule {
  enum class Kind : std::uint8_t { fidelity, regret, rank };
  Kind kind = Kind::regret;
  double tolerance = 1;
  std::int64_t n_top = 1;
  double fidelity = 0;
  double memory_floor = 0;
  bool defers = false;  // whether rows are only booked, and nodes regrown later

  // Whether every split is kept, as long as the trees can represent the rows at all.
  bool keeps_structure() const {
    return kind == Kind::fidelity ? fidelity == 0
                                  : tolerance == std::numeric_limits<double>::infinity();
  }
};

}  // namespace graftboost
