// How a model stands, for those who want to look into it: nothing here changes a model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.hpp"

namespace graftboost {

// A split among the candidates of its node, by the sums as they are.
struct SplitRank {
  NodeIndex node = no_node;
  std::int64_t n_better = 0;  // candidates with a larger gain
  double gain = 0;
  double other_gain = 0;  // the largest of another feature's candidates; minus infinity without any
  double left_score = 0, right_score = 0;  // G^2 / (H + l2) of either side
  std::int64_t left_rows = 0, right_rows = 0;
  // Of the other candidates of its feature: the largest gain, and the fewest rows that one sends to the
  // other side. Minus infinity and 0 where there are none.
  double next_gain = 0;
  std::int64_t next_rows = 0;
};

// Of every split in a tree, from sums that are counted anew.
std::vector<SplitRank> split_ranks(const Forest& forest, std::size_t t);

// RowTable as the model holds them, in the order of these ids: the cells of row i that do not have the code
// of the value 0 are those from begin[i] to begin[i + 1], columns ascending.
struct HeldRows {
  std::vector<std::int64_t> begin{0};
  std::vector<std::int32_t> columns;
  std::vector<Code> codes;
  std::vector<double> target;  // class, or target in its own units
};
HeldRows held_rows(Forest& forest, std::span<const RowId> ids);

// For each code of a feature 1 if a row that is held has it, else 0.
std::vector<std::uint8_t> held_codes(const Forest& forest, std::uint32_t feature);

}  // namespace graftboost
