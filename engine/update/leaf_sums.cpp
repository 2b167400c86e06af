#include "update/leaf_sums.hpp"

#include <algorithm>

#include "core/vectorise.hpp"

namespace graftboost {
namespace {

constexpr int hessian_bits = 32;
// What a number for gradient and hessian holds.
static_assert((std::int64_t{LeafSums::most_rows} << Loss::probability_bits) <=
              std::int64_t{1} << (63 - hessian_bits));
static_assert(std::int64_t{LeafSums::most_rows} * PackedSums::most_hessian_of_row <
              std::int64_t{1} << hessian_bits);

// Gradient and hessian of each row as one number: gradient * 2^32 + hessian. Returns the sum of
// squares.
GRAFTBOOST_ALSO_AVX2
std::uint64_t pack(const NarrowGradient* gradient, std::size_t n, std::uint64_t* packed) {
  std::uint64_t squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t g = gradient[i];
    const auto h = static_cast<std::uint32_t>(Loss::probability_hessian(g));
    packed[i] = (static_cast<std::uint64_t>(std::int64_t{g}) << hessian_bits) + h;
    squares += static_cast<std::uint32_t>(g * g);
  }
  return squares;
}

}  // namespace

void LeafSums::clear() {
  std::fill(sums_.begin(), sums_.end(), Totals{});
  squares_ = 0;
}

void LeafSums::add(const RecordedGradients& recorded, const LeafIds& leaf_ids, std::size_t begin,
                   std::size_t end) {
  const bool squared = recorded.kind == LossKind::squared;
  if (recorded.weight != nullptr || sums_.size() > table_size) {
    squares_ += sum_of_squares(recorded, begin, end);
    leaf_ids.visit([&](const auto* ids) {
      for (std::size_t row = begin; row < end; ++row) {
        const Totals totals = recorded.of(static_cast<Slot>(row));
        sums_[ids[row]].g += totals.g;
        sums_[ids[row]].h += totals.h;
      }
    });
    return;
  }
  const std::size_t n = end - begin;
  std::uint64_t* of_rows = of_rows_.data();
  if (squared) {
    squares_ += sum_of_squares(recorded, begin, end);
    const Gradient* gradients = recorded.gradient.wide;
    std::transform(gradients + begin, gradients + end, of_rows,
                   [](Gradient g) { return static_cast<std::uint64_t>(std::int64_t{g}); });
  } else {
    squares_ += pack(recorded.gradient.narrow + begin, n, of_rows);
  }
  leaf_ids.visit([&](const auto* all_ids) {
    const auto* ids = all_ids + begin;
    std::uint64_t* tables = tables_.data();
    std::size_t i = 0;
    for (; i + n_tables <= n; i += n_tables) {
      for (std::size_t j = 0; j < n_tables; ++j)
        tables[j * table_size + ids[i + j]] += of_rows[i + j];
    }
    for (; i < n; ++i) tables[ids[i]] += of_rows[i];
  });
  empty_tables(recorded.kind);
}

void LeafSums::empty_tables(LossKind kind) {
  for (std::size_t leaf = 0; leaf < sums_.size(); ++leaf) {
    std::uint64_t sum = 0;
    for (std::size_t j = 0; j < n_tables; ++j) {
      sum += tables_[j * table_size + leaf];
      tables_[j * table_size + leaf] = 0;
    }
    const std::uint64_t h =
        kind == LossKind::squared ? 0 : sum & ((std::uint64_t{1} << hessian_bits) - 1);
    const auto g = static_cast<std::int64_t>(sum - h);
    sums_[leaf].g += kind == LossKind::squared ? g : g >> hessian_bits;
    sums_[leaf].h += static_cast<std::int64_t>(h);
  }
}

}  // namespace graftboost
