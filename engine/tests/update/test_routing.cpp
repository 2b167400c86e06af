#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "update/routing.hpp"

namespace graftboost {
namespace {

using testing::ModelOptions;
using testing::StartedUpdate;
using testing::various_models;

TEST_CASE("rows are routed by the numbers of features as by columns") {
  std::size_t n_possible = 0;
  for (const ModelOptions& options : various_models()) {
    const StartedUpdate update(options, 300, 40, 0.05, 1);
    const ModelState& model = update.model;
    const ChangedRows& changed = *update.changed;
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      const Tree& tree = model.nodes.tree(t);
      const auto expected = [&](std::size_t row) {
        const auto slot = static_cast<Slot>(row);
        return tree.route([&](std::uint32_t c) { return changed.rows().code(slot, c); });
      };
      // Few rows are routed one by one.
      for (const std::size_t begin : {std::size_t{0}, changed.size() - 1}) {
        std::size_t n_routed = 0;
        changed.route(tree, begin, changed.size(), [&](std::size_t row, NodeIndex leaf) {
          CHECK_EQ(leaf, expected(row));
          ++n_routed;
        });
        CHECK_EQ(n_routed, changed.size() - begin);
      }
      if (GainBounds::are_grouped(model.layout())) continue;
      const Routing routing(tree, model.layout());
      n_possible += routing.is_possible();
      for (std::size_t row = 0; row < changed.size() && routing.is_possible(); ++row)
        CHECK_EQ(routing.leaf_of(changed.codes_of(row)), expected(row));
    }
  }
  CHECK(n_possible > 0);
}

TEST_CASE("a tree is not routed by numbers if a feature is not in the layout") {
  Tree tree;
  tree.nodes.resize(3);
  tree.nodes[0].left = 1, tree.nodes[0].right = 2;
  tree.nodes[0].split.feature = 5;
  CHECK(!Routing(tree, CodeLayout()).is_possible());
}

}  // namespace
}  // namespace graftboost
