#include "model/leaf_ids.hpp"

#include <algorithm>

namespace graftboost {
namespace {

// Most blocks of rows have none of a few leaves; comparing a whole block at once finds that out.
template <class LeafId>
std::size_t select(const LeafId* ids, std::size_t n, const std::vector<std::int32_t>& leaves,
                   Slot* found) {
  constexpr std::size_t block = 32, few = 4;
  std::vector<std::uint8_t> wanted(std::size_t{1} << (8 * sizeof(LeafId)));
  for (const std::int32_t leaf : leaves) wanted[static_cast<std::size_t>(leaf)] = 1;
  std::size_t n_found = 0;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t end = std::min(begin + block, n);
    if (leaves.size() <= few && end - begin == block) {
      LeafId any = 0;
      for (const std::int32_t leaf : leaves) {
        const auto id = static_cast<LeafId>(leaf);
        for (std::size_t i = 0; i < block; ++i) any |= static_cast<LeafId>(ids[begin + i] == id);
      }
      if (!any) continue;
    }
    for (std::size_t i = begin; i < end; ++i) {
      found[n_found] = static_cast<Slot>(i);
      n_found += wanted[ids[i]];
    }
  }
  return n_found;
}

}  // namespace

std::size_t select_rows(const LeafIds& ids, std::size_t n, const std::vector<std::int32_t>& leaves,
                        Slot* found) {
  return ids.visit([&](const auto* array) { return select(array, n, leaves, found); });
}

}  // namespace graftboost
