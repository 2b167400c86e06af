// Which rows a tree is grown from.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/hashing.hpp"
#include "core/types.hpp"

namespace graftboost {

// The rows of one tree's subsample. A hash of the row id decides, so membership survives updates
// and nothing is stored.
class Subsample {
 public:
  Subsample(std::uint64_t seed, std::size_t tree, double fraction)
      : key_(mix(mix(seed) + tree)),
        limit_(static_cast<std::int64_t>(std::ceil(fraction * 0x1p53))) {}

  // as_fraction(hash(seed, tree, id)) < fraction, without a conversion.
  bool contains(RowId id) const {
    return static_cast<std::int64_t>(mix(key_ + static_cast<std::uint64_t>(id)) >> 11) < limit_;
  }

  // The same for n rows: -1, all bits, for those that belong to it, else 0.
  void find(const RowId* ids, std::size_t n, std::int32_t* inside) const;

 private:
  std::uint64_t key_;
  std::int64_t limit_;
};

// Divides slots [begin, begin + n) into those inside the subsample and those outside, both in
// order; `inside` is what Subsample::find() found for them. Both lists need room for n slots.
// Returns how many are inside. Nothing predicts where a row belongs, so there is no branch.
inline std::size_t divide(const std::int32_t* inside, std::size_t begin, std::size_t n,
                          Slot* insiders, Slot* outsiders) {
  std::size_t n_inside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    insiders[n_inside] = outsiders[i - n_inside] = static_cast<Slot>(begin + i);
    n_inside += static_cast<std::uint32_t>(inside[i]) & 1;
  }
  return n_inside;
}

}  // namespace graftboost
