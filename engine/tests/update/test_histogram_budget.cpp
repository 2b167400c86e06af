#include <cstdint>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "update/histogram_budget.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::random_rows;

TEST_CASE("the histograms that are kept fit a tree's share, the ones of many rows first") {
  for (const bool many_columns : {false, true}) {
    ModelOptions options;
    options.many_columns = many_columns;
    ModelState model = fit_state(random_rows(options, 250, 1), options);
    const Tree& tree = model.nodes.tree(1);
    const auto& all = std::get<TreeHistograms<PackedSums>>(model.nodes[1].histograms);
    std::size_t n_bytes = 0;
    for (const auto& histogram : all) n_bytes += histogram.bytes();
    for (const double part : {0.0, 0.2, 0.5, 0.8, 1.0}) {
      const auto share = static_cast<std::size_t>(part * static_cast<double>(n_bytes));
      model.histogram_memory = share * model.n_trees_meant();
      TreeHistograms<PackedSums> kept = all;
      trim_histograms(model, tree, kept);
      // What is kept of nodes with at least so many rows.
      const auto kept_of = [&](std::int64_t n_rows) {
        std::size_t n = 0;
        for (std::size_t i = 0; i < kept.size(); ++i)
          if (tree.nodes[i].sums.n >= n_rows) n += kept[i].bytes();
        return n;
      };
      for (std::size_t i = 0; i < kept.size(); ++i) {
        if (kept[i].cached) {
          CHECK(all[i].cached);
          CHECK(kept[i] == all[i]);
        } else {
          CHECK_EQ(kept[i].bytes(), 0);
          // It had no room beside those of more rows.
          if (all[i].cached) CHECK(kept_of(tree.nodes[i].sums.n) + all[i].bytes() > share);
        }
      }
      CHECK(kept_of(0) <= share);
      CHECK_EQ(kept_of(0) == n_bytes, part == 1);
    }
  }
}

}  // namespace
}  // namespace graftboost
