// Sums of what rows recorded, per candidate interval of every feature.
#pragma once

#include <span>

#include "model/loss.hpp"
#include "data/row_table.hpp"
#include "core/types.hpp"
#include "core/sums.hpp"

namespace graftboost {

// What the rows put into one tree: their recorded gradients and, if there are any, their weights.
struct Contributions {
  const Gradient* gradient = nullptr;
  const Weight* weight = nullptr;
  LossKind kind = LossKind::squared;

  // With weight 0 a row is held and routed, but counts for nothing.
  Totals of(Slot row) const {
    const Gradient g = gradient[row];
    const std::int64_t h =
        kind == LossKind::squared ? Loss::squared_hessian() : Loss::probability_hessian(g);
    if (weight == nullptr) return {g, h, 1};
    const std::int64_t w = weight[row];
    return {Loss::weighted_gradient(kind, g, w), h * w, w != 0};
  }
};

// Adds the rows to a histogram: their plain cells, and the entries that are given for them. Bundled and sparse features get only
// the cells that differ from their common code: complete() does the rest. Other implied cells are not to
// be relied on. `rows` must be readable, with valid slots, for `slots_read_ahead` elements past its end.
inline constexpr std::size_t slots_read_ahead = 16;
template <class Sums>
void accumulate(const RowTable& rows, const Contributions& contributions, std::span<const Slot> slots,
                Sums* histogram, const SparseEntries& entries);
template <class Sums>
void accumulate(const RowTable& rows, const Contributions& contributions, std::span<const Slot> slots,
                Sums* histogram) {
  accumulate(rows, contributions, slots, histogram, rows.entries());
}

Totals total_of(const Contributions& contributions, std::span<const Slot> slots, int n_threads);

// Fills the common code's cell of one such feature, whose cells these are: the node's total less all
// others.
template <class Sums>
void complete(const FeatureLayout& place, const Totals& node, Sums* cells) {
  Sums rest(node);
  cells[place.common_code] = Sums(Totals{});
  for (std::uint32_t c = 0; c < place.n_codes; ++c) rest -= cells[c];
  cells[place.common_code] = rest;
}

}  // namespace graftboost
