#include "histogram.hpp"

#include <numeric>
#include <vector>

#include "parallel.hpp"

namespace graftboost {
namespace {

template <class Sums, bool weighted, bool squared>
void accumulate_as(const Rows& rows, const Contributions& contributions,
                   std::span<const Slot> slots, Sums* histogram) {
  const CodeLayout& layout = rows.layout;
  const std::size_t n_narrow = layout.narrow().size(), n_wide = layout.wide().size();
  const std::size_t row_bytes = layout.row_bytes();
  const std::uint32_t* narrow_offset = layout.narrow_offsets().data();
  const std::uint32_t* wide_offset = layout.wide_offsets().data();
  const std::size_t wide_position = n_wide == 0 ? 0 : layout[layout.wide()[0]].position;
  const bool has_sparse = !layout.sparse().empty();
  const std::uint8_t* cells = rows.cells.data();

  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot row = slots[i];
    const Slot ahead = slots.data()[i + slots_read_ahead];
    __builtin_prefetch(cells + ahead * row_bytes);
    __builtin_prefetch(contributions.gradient + ahead);
    const Gradient g = contributions.gradient[row];
    Totals totals{g, squared ? Loss::squared_hessian() : Loss::probability_hessian(g), 1};
    if constexpr (weighted) {
      const std::int64_t w = contributions.weight[row];
      totals = {totals.g * w, totals.h * w, w != 0};
    }
    const Sums sums(totals);
    const std::uint8_t* narrow = cells + row * row_bytes;
    for (std::size_t j = 0; j < n_narrow; ++j) histogram[narrow_offset[j] + narrow[j]] += sums;
    if (n_wide != 0) {
      const auto* wide = reinterpret_cast<const std::uint16_t*>(narrow) + wide_position;
      for (std::size_t j = 0; j < n_wide; ++j) histogram[wide_offset[j] + wide[j]] += sums;
    }
    if (has_sparse) {
      for (const std::uint32_t entry : rows.sparse_codes(row)) histogram[entry] += sums;
    }
  }
}

}  // namespace

template <class Sums>
void accumulate(const Rows& rows, const Contributions& contributions, std::span<const Slot> slots,
                Sums* histogram) {
  const bool weighted = contributions.weight != nullptr;
  const bool squared = contributions.kind == LossKind::squared;
  const auto run = weighted ? (squared ? accumulate_as<Sums, true, true> : accumulate_as<Sums, true, false>)
                            : (squared ? accumulate_as<Sums, false, true> : accumulate_as<Sums, false, false>);
  run(rows, contributions, slots, histogram);
}

Totals total_of(const Contributions& contributions, std::span<const Slot> slots, int n_threads) {
  constexpr std::size_t together = 1 << 15;
  std::vector<Totals> parts(slots.size() / together + 1);
  parallel_blocks(n_threads, slots.size(), together, [&](std::size_t begin, std::size_t end) {
    Totals sum;
    for (std::size_t i = begin; i < end; ++i) sum += contributions.of(slots[i]);
    parts[begin / together] = sum;
  });
  return std::accumulate(parts.begin(), parts.end(), Totals{});
}

template void accumulate(const Rows&, const Contributions&, std::span<const Slot>, PackedSums*);
template void accumulate(const Rows&, const Contributions&, std::span<const Slot>, WideSums*);

}  // namespace graftboost
