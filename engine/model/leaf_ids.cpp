#include "model/leaf_ids.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/vectorise.hpp"

namespace graftboost {
namespace {

constexpr std::size_t block = 64;
using Marks = std::array<std::uint8_t, block>;

// Marks with 1 the rows of a block whose leaf is one of these. Compares all rows with one leaf
// after the other, which vectorises.
template <class LeafId>
[[gnu::always_inline]] inline void compare(const LeafId* ids, const LeafId* leaves, std::size_t n,
                                           std::uint8_t* marks) {
  std::array<LeafId, block> found{};
  for (std::size_t l = 0; l < n; ++l)
    for (std::size_t i = 0; i < block; ++i)
      found[i] |= static_cast<LeafId>(ids[i] == leaves[l] ? 1 : 0);
  for (std::size_t i = 0; i < block; ++i) marks[i] = static_cast<std::uint8_t>(found[i]);
}

GRAFTBOOST_ALSO_AVX2
void mark(const std::uint8_t* ids, const std::uint8_t* leaves, std::size_t n, std::uint8_t* marks) {
  compare(ids, leaves, n, marks);
}
GRAFTBOOST_ALSO_AVX2
void mark(const std::uint16_t* ids, const std::uint16_t* leaves, std::size_t n,
          std::uint8_t* marks) {
  compare(ids, leaves, n, marks);
}

// Appends the rows from begin to end whose leaf is wanted, and returns how many.
template <class LeafId>
std::size_t append(const LeafId* ids, std::size_t begin, std::size_t end,
                   const std::uint8_t* is_wanted, Slot* found) {
  std::size_t n = 0;
  for (std::size_t row = begin; row < end; ++row) {
    found[n] = static_cast<Slot>(row);
    n += is_wanted[ids[row]];
  }
  return n;
}

// Where few rows are wanted, blocks are marked first and only marked rows are looked at. Where
// there are many, nothing predicts which: every row is written, and overwritten if it was not
// wanted.
template <class LeafId>
std::size_t select(const LeafId* ids, std::size_t n, const std::vector<std::int32_t>& leaves,
                   Slot* found) {
  constexpr std::size_t rows_together = 16 * block, many = rows_together / 8;
  constexpr std::size_t most_compared = 8;
  const std::vector<LeafId> wanted(leaves.begin(), leaves.end());
  std::vector<std::uint8_t> is_wanted(std::size_t{1} << (8 * sizeof(LeafId)));
  for (const LeafId leaf : wanted) is_wanted[leaf] = 1;
  Marks marks;
  std::size_t n_found = 0, n_before = many;
  for (std::size_t begin = 0; begin < n; begin += rows_together) {
    const std::size_t end = std::min(begin + rows_together, n);
    const bool marks_first = n_found - n_before < many && wanted.size() <= most_compared;
    n_before = n_found;
    std::size_t row = begin;
    for (; marks_first && row + block <= end; row += block) {
      mark(ids + row, wanted.data(), wanted.size(), marks.data());
      for (std::size_t from = 0; from < block; from += sizeof(std::uint64_t)) {
        std::uint64_t bytes;
        std::memcpy(&bytes, marks.data() + from, sizeof(bytes));
        if constexpr (std::endian::native == std::endian::big) bytes = __builtin_bswap64(bytes);
        for (; bytes != 0; bytes &= bytes - 1) {
          const auto byte = static_cast<std::size_t>(std::countr_zero(bytes)) / 8;
          found[n_found++] = static_cast<Slot>(row + from + byte);
        }
      }
    }
    n_found += append(ids, row, end, is_wanted.data(), found + n_found);
  }
  return n_found;
}

}  // namespace

std::size_t select_rows(const LeafIds& ids, std::size_t n, const std::vector<std::int32_t>& leaves,
                        Slot* found) {
  return ids.visit([&](const auto* array) { return select(array, n, leaves, found); });
}

}  // namespace graftboost
