#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/gradient_array.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::random_rows;

TEST_CASE("gradients take two bytes or four, and keep their width without rows") {
  const GradientArray narrow(false, 10), wide(true, 10);
  CHECK_EQ(narrow.narrow.size(), 10);
  CHECK(narrow.wide.empty());
  CHECK_EQ(wide.wide.size(), 10);
  CHECK(wide.narrow.empty());
  GradientArray grown = wide;
  grown.resize(15);
  CHECK_EQ(grown.size(), 15);
  CHECK(grown.narrow.empty());
  grown.resize(0);
  const GradientArray copy = grown;
  for (GradientArray gradients : {grown, copy, GradientArray(true)}) {
    gradients.resize(3);
    CHECK_EQ(gradients.wide.size(), 3);
    CHECK(gradients.narrow.empty());
  }
}

TEST_CASE("gradients are read as they were written, in either width") {
  for (const bool is_wide : {false, true}) {
    const Gradient largest = is_wide ? 1 << 30 : 32767;
    GradientArray gradients(is_wide, 3);
    gradients.set(0, -largest);
    gradients.set(1, 0);
    gradients.set(2, largest);
    gradients.push_back(-5);
    const std::vector<Gradient> expected{-largest, 0, largest, -5};
    const ConstGradientPointer pointer = gradients.data();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK_EQ(gradients[i], expected[i]);
      CHECK_EQ(pointer[i], expected[i]);
      if (i > 0) CHECK_EQ((pointer + 1)[i - 1], expected[i]);
      CHECK_EQ(pointer.visit([&](const auto* of_rows) { return Gradient{of_rows[i]}; }),
               expected[i]);
    }
    gradients.visit([&](auto* of_rows) {
      const std::vector<std::int32_t> marks{-1, -1, 0, -1};
      keep_marked(of_rows, marks.data(), marks.size());
    });
    CHECK_EQ(gradients[0], -largest);
    CHECK_EQ(gradients[2], 0);
    CHECK_EQ(gradients[3], -5);
  }
}

TEST_CASE("rows of classes take three bytes per tree, those of squared error five") {
  for (const LossKind loss : {LossKind::logistic, LossKind::softmax, LossKind::squared}) {
    ModelOptions options;
    options.loss = loss;
    options.n_classes = loss == LossKind::softmax ? 3 : loss == LossKind::logistic ? 2 : 1;
    const ModelState model = fit_state(random_rows(options, 100, 1), options);
    for (const RowShard& shard : model.shards) {
      for (const TreeRows& tree : shard.trees) {
        const std::size_t n_bytes = tree.leaf_ids.narrow.size() + 2 * tree.leaf_ids.wide.size() +
                                    2 * tree.recorded.narrow.size() + 4 * tree.recorded.wide.size();
        CHECK_EQ(n_bytes, (loss == LossKind::squared ? 5 : 3) * shard.size());
      }
    }
  }
}

}  // namespace
}  // namespace graftboost
