// Random cells of one feature, in every form in which SplitEvaluator accepts them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/sums.hpp"
#include "data/code_layout.hpp"
#include "model/loss.hpp"
#include "tests/random_numbers.hpp"
#include "train/split_evaluation.hpp"

namespace graftboost::testing {

// What one random row adds to the cells it falls into.
struct RandomRow {
  static Totals of(const GainParams& params, bool squared, Random& random) {
    const std::int64_t weight =
        params.largest_of_row > (std::int64_t{1} << 30)
            ? 1 + static_cast<std::int64_t>(
                      random.below(static_cast<std::size_t>(params.largest_of_row >> 30)))
            : 1;
    if (squared) {
      const auto g = static_cast<std::int64_t>(random.normal() * 0x1p24);
      return {g * weight, Loss::squared_hessian() * weight, 1};
    }
    const auto g = static_cast<Gradient>((random.fraction() * 2 - 1) * 0x1p15);
    return {g * weight, Loss::probability_hessian(g) * weight, 1};
  }
};

// A feature with the sums of each of its codes.
struct RandomFeature {
  FeatureLayout layout;
  std::vector<Totals> cells;  // one per code

  std::int64_t n_differing(const Totals& node) const {
    return node.n - cells[layout.common_code].n;
  }
};

// The cells of a feature as PackedSums or WideSums.
template <class Sums>
class CellsView {
 public:
  enum class Form { complete, without_common, sparse };

  CellsView(const RandomFeature& feature, Form form) : form_(form) {
    const FeatureLayout& layout = feature.layout;
    for (std::uint32_t c = 0; c < layout.n_codes; ++c) {
      const bool is_common = c == layout.common_code;
      if (form == Form::sparse) {
        if (is_common || feature.cells[c] == Totals{}) continue;
        cells_.push_back(layout.offset + c);
        sums_.push_back(Sums(feature.cells[c]));
      } else {
        // A cell that is not filled in may hold anything.
        const bool undefined = is_common && form == Form::without_common;
        sums_.push_back(Sums(undefined ? Totals{-77, 5, 3} : feature.cells[c]));
      }
    }
  }
  FeatureCells<Sums> get() const {
    const bool is_sparse = form_ == Form::sparse;
    return {sums_.data(),
            is_sparse ? std::span<const std::uint32_t>(cells_) : std::span<const std::uint32_t>{},
            is_sparse, form_ == Form::complete};
  }

 private:
  Form form_;
  std::vector<std::uint32_t> cells_;
  std::vector<Sums> sums_;
};

}  // namespace graftboost::testing
