#include "train/histogram.hpp"

#include <cstdlib>
#include <numeric>
#include <vector>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

template <class Sums, bool weighted, bool squared>
Sums sums_of(const RecordedGradients& recorded, Slot row) {
  const Gradient g = squared ? recorded.gradient.wide[row] : recorded.gradient.narrow[row];
  Totals totals{g, squared ? Loss::squared_hessian() : Loss::probability_hessian(g), 1};
  if constexpr (weighted) {
    const std::int64_t w = recorded.weight[row];
    constexpr auto kind = squared ? LossKind::squared : LossKind::logistic;
    totals = {Loss::weighted_gradient(kind, g, w), totals.h * w, w != 0};
  }
  return Sums(totals);
}

// Where the plain cells of rows are, and which cells of a histogram they mean. Copied before the
// loops: stores to a histogram might change the layout, as far as the compiler knows.
struct PlainCells {
  const std::uint8_t* cells;
  std::size_t row_bytes;
  std::size_t n_narrow, n_bytes, first_word, n_words;
  const std::uint32_t *byte_offsets, *bundle_cells, *word_offsets;

  explicit PlainCells(const RowTable& rows)
      : cells(rows.cells.data()),
        row_bytes(rows.layout.row_bytes()),
        n_narrow(rows.layout.first_bundle()),
        n_bytes(rows.layout.n_bytes()),
        first_word(rows.layout.first_word()),
        n_words(rows.layout.n_words()),
        byte_offsets(rows.layout.byte_offsets().data()),
        bundle_cells(n_bytes > n_narrow ? rows.layout.bundle_cells(n_narrow) : nullptr),
        word_offsets(rows.layout.word_offsets().data()) {}

  const std::uint8_t* of(Slot row) const { return cells + row * row_bytes; }

  template <class Sums>
  [[gnu::always_inline]] void add(Slot row, const Sums sums, Sums* histogram) const {
    const std::uint8_t* bytes = of(row);
    for (std::size_t j = 0; j < n_narrow; ++j) histogram[byte_offsets[j] + bytes[j]] += sums;
    const std::uint32_t* cell = bundle_cells;
    for (std::size_t j = n_narrow; j < n_bytes; ++j, cell += CodeLayout::n_byte_values)
      histogram[cell[bytes[j]]] += sums;
    const auto* words = reinterpret_cast<const std::uint16_t*>(bytes) + first_word;
    for (std::size_t j = 0; j < n_words; ++j) histogram[word_offsets[j] + words[j]] += sums;
  }
};

// Row by row: several rows at once would add to the same cell one after the other wherever most of
// them have the same code, and each addition would wait for the store before it.
template <class Sums, bool weighted, bool squared>
void accumulate_as(const RowTable& rows, const RecordedGradients& recorded,
                   std::span<const Slot> slots, Sums* histogram, const SparseEntries& entries) {
  const PlainCells plain(rows);
  const bool has_sparse = entries.begin != nullptr;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot row = slots.data()[i], ahead = slots.data()[i + slots_read_ahead];
    __builtin_prefetch(plain.of(ahead));
    const Sums sums = sums_of<Sums, weighted, squared>(recorded, row);
    plain.add(row, sums, histogram);
    if (!has_sparse) continue;
    __builtin_prefetch(entries.count + ahead);
    for (const std::uint32_t entry : entries.of(row)) histogram[entry] += sums;
  }
}

// A square has up to 30 bits, so no sum over the rows of a shard overflows.
__int128 squares_of(const NarrowGradient* gradients, std::size_t n) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t g = gradients[i];
    sum += static_cast<std::uint32_t>(g * g);
  }
  return sum;
}

// A square has up to 60 bits; its halves are added up separately, which vectorises.
__int128 squares_of(const Gradient* gradients, std::size_t n) {
  std::uint64_t high = 0, low = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = static_cast<std::uint32_t>(gradients[i]);
    // Not std::abs: a corrupted file may have the one gradient whose negation overflows.
    const std::uint32_t g = gradients[i] < 0 ? 0 - bits : bits;
    const std::uint64_t square = std::uint64_t{g} * g;
    high += square >> 32;
    low += square & 0xffffffff;
  }
  return (static_cast<__int128>(high) << 32) + low;
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

__int128 sum_of_squares(const RecordedGradients& recorded, std::size_t begin, std::size_t end) {
  __int128 sum = 0;
  if (recorded.weight != nullptr) {
    for (std::size_t row = begin; row < end; ++row)
      sum += recorded.square_of(static_cast<Slot>(row));
    return sum;
  }
  return recorded.gradient.visit(
      [&](const auto* gradients) { return squares_of(gradients + begin, end - begin); });
}

template void accumulate(const RowTable&, const RecordedGradients&, std::span<const Slot>,
                         PackedSums*, const SparseEntries&);
template void accumulate(const RowTable&, const RecordedGradients&, std::span<const Slot>,
                         WideSums*, const SparseEntries&);

}  // namespace graftboost
