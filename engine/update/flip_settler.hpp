// Flips are settled step by step, and the rows that have to be worked on are counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/model_state.hpp"
#include "update/flip.hpp"

namespace graftboost {

// A way to settle a flip.
struct SettlingStep {
  double below;  // it is taken if less than this is tolerated
  std::size_t t;
  std::size_t flip;
  FlipAction action;
};

// Sets the actions of flips of all trees, which it borrows, one after the other. At first there are
// none.
class FlipSettler {
 public:
  FlipSettler(const ModelState& model, std::vector<TreeFlips>& flips);

  std::int64_t n_worked_on() const { return n_worked_on_; }
  // How many more rows are worked on if this step is taken; negative if there is nothing to do.
  std::int64_t rows_for(const SettlingStep& step) const;
  // Takes a step that works on so many more rows. Returns the flips of its tree that it settles and
  // that were not settled before.
  std::vector<std::size_t> take(const SettlingStep& step, std::int64_t rows);

 private:
  const ModelState& model_;
  std::vector<TreeFlips>& flips_;
  std::vector<std::vector<std::int64_t>> worked_on_;  // rows, per flip with an action
  std::int64_t n_worked_on_ = 0;
};

}  // namespace graftboost
