#include "train/histogram.hpp"

#include <array>
#include <numeric>
#include <vector>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// RowTable counted together: a feature's offset is looked up once for all of them, and while one
// row's cell waits for memory the others' go on.
constexpr std::size_t rows_together = 4;

template <class Sums, bool weighted, bool squared>
Sums sums_of(const RecordedGradients& recorded, Slot row) {
  const Gradient g = recorded.gradient[row];
  Totals totals{g, squared ? Loss::squared_hessian() : Loss::probability_hessian(g), 1};
  if constexpr (weighted) {
    const std::int64_t w = recorded.weight[row];
    constexpr auto kind = squared ? LossKind::squared : LossKind::logistic;
    totals = {Loss::weighted_gradient(kind, g, w), totals.h * w, w != 0};
  }
  return Sums(totals);
}

// The dense cells of `n_rows` rows (a constant to the compiler).
//
// Inlined, with its own copy of the sums: they stay in registers only if no store can change them.
template <std::size_t n_rows, class Sums>
[[gnu::always_inline]] inline void add_dense(const RowTable& rows, const Slot* slots,
                                             std::array<Sums, n_rows> sums, Sums* histogram) {
  const CodeLayout& layout = rows.layout;
  std::array<const std::uint8_t*, n_rows> bytes;
  for (std::size_t i = 0; i < n_rows; ++i) bytes[i] = rows.narrow_codes(slots[i]);
  const std::uint32_t* offset = layout.byte_offsets().data();
  for (std::size_t j = 0, n = layout.first_bundle(); j < n; ++j) {
    Sums* cells = histogram + offset[j];
    for (std::size_t i = 0; i < n_rows; ++i) cells[bytes[i][j]] += sums[i];
  }
  for (std::size_t j = layout.first_bundle(), n = layout.n_bytes(); j < n; ++j) {
    const std::uint32_t* cell = layout.bundle_cells(j);
    for (std::size_t i = 0; i < n_rows; ++i) histogram[cell[bytes[i][j]]] += sums[i];
  }
  offset = layout.word_offsets().data();
  for (std::size_t j = 0, n = layout.n_words(), first = layout.first_word(); j < n; ++j) {
    Sums* cells = histogram + offset[j];
    for (std::size_t i = 0; i < n_rows; ++i) cells[rows.wide_codes(slots[i])[first + j]] += sums[i];
  }
}

template <class Sums, bool weighted, bool squared>
void accumulate_as(const RowTable& rows, const RecordedGradients& recorded,
                   std::span<const Slot> slots, Sums* histogram, const SparseEntries& entries) {
  const bool has_sparse = entries.begin != nullptr;
  const auto add_rows = [&]<std::size_t n_rows>(const Slot* from) {
    std::array<Sums, n_rows> sums;
    for (std::size_t i = 0; i < n_rows; ++i) {
      sums[i] = sums_of<Sums, weighted, squared>(recorded, from[i]);
      __builtin_prefetch(rows.narrow_codes(from[i + slots_read_ahead]));
      if (has_sparse) __builtin_prefetch(entries.count + from[i + slots_read_ahead]);
    }
    add_dense<n_rows>(rows, from, sums, histogram);
    if (!has_sparse) return;
    for (std::size_t i = 0; i < n_rows; ++i) {
      if (entries.count[from[i]] == 0) continue;
      for (const std::uint32_t entry : entries.of(from[i])) histogram[entry] += sums[i];
    }
  };
  std::size_t i = 0;
  for (; i + rows_together <= slots.size(); i += rows_together) {
    add_rows.template operator()<rows_together>(slots.data() + i);
  }
  for (; i < slots.size(); ++i) add_rows.template operator()<1>(slots.data() + i);
}

}  // namespace

template <class Sums>
void accumulate(const RowTable& rows, const RecordedGradients& recorded,
                std::span<const Slot> slots, Sums* histogram, const SparseEntries& entries) {
  const bool weighted = recorded.weight != nullptr;
  const bool squared = recorded.kind == LossKind::squared;
  const auto run =
      weighted ? (squared ? accumulate_as<Sums, true, true> : accumulate_as<Sums, true, false>)
               : (squared ? accumulate_as<Sums, false, true> : accumulate_as<Sums, false, false>);
  run(rows, recorded, slots, histogram, entries);
}

Totals total_of(const RecordedGradients& recorded, std::span<const Slot> slots, int n_threads) {
  constexpr std::size_t together = 1 << 15;
  std::vector<Totals> parts(slots.size() / together + 1);
  parallel_blocks(n_threads, slots.size(), together, [&](std::size_t begin, std::size_t end) {
    Totals sum;
    for (std::size_t i = begin; i < end; ++i) sum += recorded.of(slots[i]);
    parts[begin / together] = sum;
  });
  return std::accumulate(parts.begin(), parts.end(), Totals{});
}

template void accumulate(const RowTable&, const RecordedGradients&, std::span<const Slot>,
                         PackedSums*, const SparseEntries&);
template void accumulate(const RowTable&, const RecordedGradients&, std::span<const Slot>,
                         WideSums*, const SparseEntries&);

}  // namespace graftboost
