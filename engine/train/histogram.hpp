// Histograms: sums of what rows recorded, per candidate interval of every feature.
#pragma once

#include <span>

#include "core/sums.hpp"
#include "core/types.hpp"
#include "data/row_table.hpp"
#include "model/leaf_ids.hpp"
#include "model/loss.hpp"

namespace graftboost {

// What rows recorded in one tree: their gradients and, if there are any, their weights.
struct RecordedGradients {
  ConstGradientPointer gradient;  // wide if the loss is squared error
  const Weight* weight = nullptr;
  LossKind kind = LossKind::squared;

  // A row of weight 0 is held and routed, but adds nothing.
  Totals of(Slot row) const {
    const bool squared = kind == LossKind::squared;
    const Gradient g = squared ? gradient.wide[row] : gradient.narrow[row];
    const std::int64_t h = squared ? Loss::squared_hessian() : Loss::probability_hessian(g);
    if (weight == nullptr) return {g, h, 1};
    const std::int64_t w = weight[row];
    return {Loss::weighted_gradient(kind, g, w), h * w, w != 0};
  }
  __int128 square_of(Slot row) const {
    return Loss::weighted_square(gradient[row], weight == nullptr ? 1 : weight[row]);
  }
};

// The sum of squared gradients of rows [begin, end). Rows outside the subsample recorded 0.
__int128 sum_of_squares(const RecordedGradients& recorded, std::size_t begin, std::size_t end);

// Adds rows to a histogram: their plain cells, and the entries given for them. Of bundled and
// sparse features only the cells that differ from the common code are counted; complete() fills in
// the rest. Other implied cells are undefined. `slots` must be readable, with valid slots, for
// `slots_read_ahead` elements past its end.
template <class Sums>
void accumulate(const RowTable& rows, const RecordedGradients& recorded,
                std::span<const Slot> slots, Sums* histogram, const SparseEntries& entries);
template <class Sums>
void accumulate(const RowTable& rows, const RecordedGradients& recorded,
                std::span<const Slot> slots, Sums* histogram) {
  accumulate(rows, recorded, slots, histogram, rows.entries());
}

Totals total_of(const RecordedGradients& recorded, std::span<const Slot> slots, int n_threads);

// Fills in the cell of the common code of a bundled or sparse feature, whose cells these are: the
// total of the node less all other cells.
template <class Sums>
void complete(const FeatureLayout& feature, const Totals& node, Sums* cells) {
  Sums rest(node);
  cells[feature.common_code] = Sums(Totals{});
  for (std::uint32_t c = 0; c < feature.n_codes; ++c) rest -= cells[c];
  cells[feature.common_code] = rest;
}

}  // namespace graftboost
