#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/check.hpp"
#include "tests/random_numbers.hpp"
#include "update/leaf_sums.hpp"

namespace graftboost {
namespace {

using testing::Random;

// Rows with random leaves and gradients; most rows are in the first few leaves.
struct RecordedRows {
  LeafIds leaf_ids;
  GradientArray gradients;
  std::vector<Weight> weights;

  RecordedRows(LossKind kind, std::size_t n, std::size_t n_leaf_ids, Random& random)
      : leaf_ids(n, static_cast<int>(n_leaf_ids)), gradients(Loss::records_wide(kind)) {
    Loss loss;
    loss.kind = kind;
    const Gradient largest = loss.largest_gradient();
    for (std::size_t row = 0; row < n; ++row) {
      const std::size_t leaf =
          random.below(random.chance(0.7) ? std::min<std::size_t>(2, n_leaf_ids) : n_leaf_ids);
      leaf_ids.visit([&]<class LeafId>(LeafId* ids) { ids[row] = static_cast<LeafId>(leaf); });
      const auto size = static_cast<Gradient>(random.below(static_cast<std::size_t>(largest)));
      // Sums are to reach their limits, and zeros are those of rows outside the subsample.
      const Gradient g = random.chance(0.1) ? 0 : random.chance(0.3) ? largest : size;
      gradients.push_back(random.chance(0.5) ? g : -g);
      weights.push_back(static_cast<Weight>(random.below(5)));
    }
  }
};

void check_sums(const LeafSums& sums, const RecordedRows& rows, const RecordedGradients& recorded,
                std::size_t n_leaf_ids, std::size_t begin, std::size_t end) {
  std::vector<Totals> expected(n_leaf_ids);
  __int128 squares = 0;
  for (std::size_t row = begin; row < end; ++row) {
    expected[rows.leaf_ids[row]] += recorded.of(static_cast<Slot>(row));
    squares += recorded.square_of(static_cast<Slot>(row));
  }
  CHECK(sums.squares() == squares);
  for (std::size_t leaf = 0; leaf < n_leaf_ids; ++leaf) {
    const Totals& found = sums.of(static_cast<std::int32_t>(leaf));
    CHECK_EQ(found.g, expected[leaf].g);
    if (recorded.kind != LossKind::squared) CHECK_EQ(found.h, expected[leaf].h);
  }
}

TEST_CASE("sums of leaves are those of their rows, whatever the loss, weights and leaves") {
  constexpr std::size_t n = 3 * LeafSums::most_rows + 77;
  Random random(1);
  for (const LossKind kind : {LossKind::logistic, LossKind::softmax, LossKind::squared}) {
    for (const std::size_t n_leaf_ids : {1, 2, 31, 256, 257, 1000}) {
      const RecordedRows rows(kind, n, n_leaf_ids, random);
      for (const bool weighted : {false, true}) {
        const RecordedGradients recorded{rows.gradients.data(),
                                         weighted ? rows.weights.data() : nullptr, kind};
        LeafSums sums(n_leaf_ids);
        // Twice: nothing of the first time may be left.
        for (const std::size_t first : {std::size_t{0}, std::size_t{1001}}) {
          sums.clear();
          for (std::size_t begin = first; begin < n; begin += LeafSums::most_rows)
            sums.add(recorded, rows.leaf_ids, begin, std::min(begin + LeafSums::most_rows, n));
          check_sums(sums, rows, recorded, n_leaf_ids, first, n);
        }
      }
    }
  }
}

TEST_CASE("a full block of the largest gradients in one leaf does not overflow") {
  for (const Gradient sign : {1, -1}) {
    for (const Gradient size : {(Gradient{1} << Loss::probability_bits) - 1,
                                Gradient{1} << (Loss::probability_bits - 1)}) {
      const std::vector<NarrowGradient> gradients(LeafSums::most_rows,
                                                  static_cast<NarrowGradient>(sign * size));
      LeafIds leaf_ids(gradients.size(), 31);
      leaf_ids.narrow.fill(4);
      LeafSums sums(31);
      const RecordedGradients recorded{gradients.data(), nullptr, LossKind::logistic};
      sums.add(recorded, leaf_ids, 0, gradients.size());
      const auto n = static_cast<std::int64_t>(gradients.size());
      CHECK_EQ(sums.of(4).g, n * sign * size);
      CHECK_EQ(sums.of(4).h, n * Loss::probability_hessian(size));
      CHECK(sums.of(3) == Totals{});
      CHECK(sums.of(5) == Totals{});
    }
  }
}

}  // namespace
}  // namespace graftboost
