// A model described for those who inspect it. Nothing here changes a model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model_state.hpp"

namespace graftboost {

// How a split compares with the other candidates of its node.
struct SplitRank {
  NodeIndex node = no_node;
  std::int64_t n_better = 0;  // candidates with a larger gain
  double gain = 0;
  double other_gain = 0;  // the largest of another feature's candidates; minus infinity without any
  double left_score = 0, right_score = 0;  // G^2 / (H + l2) of either child
  std::int64_t left_rows = 0, right_rows = 0;
  // Of the other candidates of its feature: the largest gain, and the fewest rows that one sends to
  // the other child. Minus infinity and 0 if there are none.
  double next_gain = 0;
  std::int64_t next_rows = 0;
};

// Of every split of a tree, from recomputed histograms.
std::vector<SplitRank> rank_splits(const ModelState& model, std::size_t t);

// Rows as the model holds them, in the order of the given ids. The cells of row i that do not have
// the code of the value 0 are those from begin[i] to begin[i + 1], columns ascending.
struct HeldRows {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> columns;
  std::vector<Code> codes;
  std::vector<double> target;  // class, or target in its own units
};
HeldRows held_rows(ModelState& model, std::span<const RowId> ids);

// For each code of a feature 1 if a row has it, else 0.
std::vector<std::uint8_t> held_codes(const ModelState& model, std::uint32_t feature);

// The sum of the gains of each feature's splits.
std::vector<double> gain_importances(const ModelState& model);

}  // namespace graftboost
