// What the rows of a tree recorded, added up by leaf.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/array.hpp"
#include "core/sums.hpp"
#include "model/leaf_ids.hpp"
#include "train/histogram.hpp"

namespace graftboost {

// Sums of gradients, hessians and squares over blocks of rows that lie side by side. One per
// thread.
//
// Most rows have no weights, and most trees few leaves. Gradient and hessian of a row are then
// added as one number, to one of four tables in turn: consecutive rows often share a leaf, and an
// addition would wait for the one before it. The tables are emptied into wide sums before a number
// could overflow.
class LeafSums {
 public:
  // At most so many rows may be added at once.
  static constexpr std::size_t most_rows = 2048;

  explicit LeafSums(std::size_t n_leaf_ids) : sums_(n_leaf_ids) {}

  void clear();
  // Rows outside the tree's subsample must have recorded 0, and then add nothing.
  void add(const RecordedGradients& recorded, const LeafIds& leaf_ids, std::size_t begin,
           std::size_t end);

  // Sums of gradients and, unless the loss is squared error, of hessians. Rows are not counted.
  const Totals& of(std::int32_t leaf) const { return sums_[static_cast<std::size_t>(leaf)]; }
  __int128 squares() const { return squares_; }

 private:
  static constexpr std::size_t n_tables = 4, table_size = 256;

  void empty_tables(LossKind kind);

  WipedVector<Totals> sums_;  // by leaf id
  __int128 squares_ = 0;
  WipedVector<std::uint64_t> of_rows_ = WipedVector<std::uint64_t>(most_rows);
  WipedVector<std::uint64_t> tables_ = WipedVector<std::uint64_t>(n_tables * table_size);
};

}  // namespace graftboost
