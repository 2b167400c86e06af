// The leaf of each row in one tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/array.hpp"
#include "core/types.hpp"

namespace graftboost {

// One leaf id per slot: in one byte while a tree may have at most 256 leaves, in two beyond. The
// array that is not in use is empty.
struct LeafIds {
  Array<std::uint8_t> narrow;
  Array<std::uint16_t> wide;
  bool is_wide = false;  // which of them is in use, also while a shard has no rows

  LeafIds() = default;
  LeafIds(std::size_t n_rows, int max_leaf_nodes) : is_wide(max_leaf_nodes > 256) {
    is_wide ? wide.reserve(n_rows + room_to_grow(n_rows))
            : narrow.reserve(n_rows + room_to_grow(n_rows));
    resize(n_rows);
  }
  void resize(std::size_t n_rows) { is_wide ? wide.resize(n_rows) : narrow.resize(n_rows); }
  std::uint16_t operator[](std::size_t row) const { return is_wide ? wide[row] : narrow[row]; }
  // Calls `use` with the array itself, so that loops over rows do not ask for the width each time.
  template <class Use>
  decltype(auto) visit(Use&& use) {
    return is_wide ? use(wide.data()) : use(narrow.data());
  }
  template <class Use>
  decltype(auto) visit(Use&& use) const {
    return is_wide ? use(wide.data()) : use(narrow.data());
  }
};

// Writes the slots, of the first n, whose leaf is one of `leaves`, ascending, and returns how many.
// `found` has room for n.
std::size_t select_rows(const LeafIds& ids, std::size_t n, const std::vector<std::int32_t>& leaves,
                        Slot* found);

// Rows sorted by leaf, with the leaves in a given order, so that the rows of every node lie
// together if that order is from left to right.
struct RowsByLeaf {
  WipedVector<Slot> slots;         // readable for `slots_read_ahead` elements past the last row
  std::vector<std::size_t> begin;  // of the rows of the i-th leaf; the last element is the end

  std::span<const Slot> of_leaves(std::size_t first, std::size_t last) const {
    return {slots.data() + begin[first], begin[last] - begin[first]};
  }
};
template <class Belongs>
RowsByLeaf sort_by_leaf(const LeafIds& ids, std::size_t n, const std::vector<std::int32_t>& order,
                        Belongs&& belongs);

// How far histograms read past the end of a list of slots.
inline constexpr std::size_t slots_read_ahead = 16;

template <class Belongs>
RowsByLeaf sort_by_leaf(const LeafIds& ids, std::size_t n, const std::vector<std::int32_t>& order,
                        Belongs&& belongs) {
  RowsByLeaf sorted;
  std::vector<std::size_t> position(std::size_t{1} << 16);
  for (std::size_t i = 0; i < order.size(); ++i) position[static_cast<std::size_t>(order[i])] = i;
  sorted.begin.assign(order.size() + 1, 0);
  const auto each = [&](auto&& use) {
    ids.visit([&](const auto* leaf) {
      for (std::size_t row = 0; row < n; ++row)
        if (belongs(static_cast<Slot>(row))) use(static_cast<Slot>(row), position[leaf[row]]);
    });
  };
  each([&](Slot, std::size_t at) { ++sorted.begin[at + 1]; });
  for (std::size_t i = 1; i < sorted.begin.size(); ++i) sorted.begin[i] += sorted.begin[i - 1];
  sorted.slots.resize(sorted.begin.back() + slots_read_ahead);
  std::vector<std::size_t> to(sorted.begin.begin(), sorted.begin.end() - 1);
  each([&](Slot row, std::size_t at) { sorted.slots[to[at]++] = row; });
  return sorted;
}

}  // namespace graftboost
