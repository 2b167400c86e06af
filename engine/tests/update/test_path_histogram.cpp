#include <cstdint>
#include <deque>
#include <vector>

#include "model/rows_by_node.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "update/path_histogram.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::naive_histogram;
using testing::Random;
using testing::random_rows;

enum class From { cached, counted };

// Walks random paths from the root of a tree. The histogram of each node comes from a random
// source: its own or its sibling's, cached or counted, now or only after it was missing.
template <class Sums>
class Walker {
 public:
  Walker(const ModelState& model, std::size_t t, Random& random)
      : model_(model),
        t_(t),
        tree_(model.nodes.tree(t)),
        random_(random),
        rows_(model, t),
        path_(model.layout()) {
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
      const auto node = static_cast<NodeIndex>(i);
      counted_.push_back(rows_.template count<Sums>(node));
      Histogram<Sums> copy = counted_.back();
      cached_.emplace_back(model.layout(), copy);
      expected_.push_back(naive_histogram(model, t, node));
    }
  }

  void walk() {
    NodeIndex node = 0;
    for (std::size_t depth = 0;; ++depth) {
      enter(depth, node);
      if (random_.chance(0.7)) check(depth, node);
      if (tree_[node].is_leaf()) break;
      node = random_.chance(0.5) ? tree_[node].left : tree_[node].right;
    }
  }

 private:
  static std::size_t at(NodeIndex i) { return static_cast<std::size_t>(i); }

  void set(std::size_t depth, NodeIndex node, NodeIndex source) {
    const Totals& totals = tree_[node].sums;
    if (random_.chance(0.5)) {
      path_.set_cached(depth, totals, cached_[at(source)], source != node);
    } else {
      path_.set_counted(depth, totals, counted_[at(source)], source != node);
    }
  }

  void enter(std::size_t depth, NodeIndex node) {
    const bool by_sibling = node != 0 && random_.chance(0.5);
    const NodeIndex source = by_sibling ? tree_.sibling(node) : node;
    if (random_.chance(0.3)) {
      path_.set_missing(depth, tree_[node].sums, source, by_sibling);
      CHECK(!path_.is_available(depth));
      std::vector<NodeIndex> missing;
      path_.find_missing(depth, missing);
      CHECK_EQ(missing.size(), 1);  // those above are available
      CHECK_EQ(missing[0], source);
    }
    set(depth, node, source);
    CHECK(path_.is_available(depth));
    std::vector<NodeIndex> missing;
    path_.find_missing(depth, missing);
    CHECK(missing.empty());
  }

  void check(std::size_t depth, NodeIndex node) {
    const CodeLayout& layout = model_.layout();
    const bool all = random_.chance(0.3);
    for (std::uint32_t f = 0; f < layout.size(); ++f) {
      if (!all && random_.chance(0.5)) continue;
      const FeatureCells<Sums> cells = all ? path_.of_all(depth, f) : path_.of_feature(depth, f);
      CHECK(cells.is_complete);
      CHECK(!cells.is_sparse);
      for (std::uint32_t c = 0; c < layout[f].n_codes; ++c)
        CHECK(Totals(cells.sums[c]) == expected_[at(node)][layout[f].offset + c]);
    }
  }

  const ModelState& model_;
  std::size_t t_;
  const Tree& tree_;
  Random& random_;
  RowsByNode rows_;
  PathHistogram<Sums> path_;
  std::deque<Histogram<Sums>> counted_;
  std::deque<NodeHistogram<Sums>> cached_;
  std::vector<std::vector<Totals>> expected_;
};

TEST_CASE("histograms along paths are those of a naive count, whatever they are made from") {
  ModelOptions plain, weighted, sparse;
  plain.training.max_leaf_nodes = 16;
  plain.training.min_samples_leaf = 3;
  weighted.weighted = true;
  weighted.n_shards = 2;
  sparse.many_columns = true;
  for (const ModelOptions& options : {plain, weighted, sparse}) {
    Random random(1);
    const ModelState model = fit_state(random_rows(options, 160, 1), options);
    for (std::size_t t = 0; t < 2; ++t) {
      const auto walk = [&]<class Sums>(Walker<Sums> walker) {
        for (int i = 0; i < 20; ++i) walker.walk();
      };
      model.nodes.holds_packed_sums() ? walk(Walker<PackedSums>(model, t, random))
                                      : walk(Walker<WideSums>(model, t, random));
    }
  }
}

TEST_CASE("all missing histograms up to the next one that is known are named") {
  ModelOptions options;
  const ModelState model = fit_state(random_rows(options, 120, 2), options);
  PathHistogram<PackedSums> path(model.layout());
  const Histogram<PackedSums> none(model.layout().histogram_size());
  path.set_counted(0, {}, none, false);
  path.set_missing(1, {}, 1, false);
  path.set_missing(2, {}, 6, true);
  path.set_counted(3, {}, none, true);
  path.set_missing(4, {}, 9, false);
  const auto missing = [&](std::size_t depth) {
    std::vector<NodeIndex> nodes;
    path.find_missing(depth, nodes);
    return nodes;
  };
  CHECK(missing(0).empty());
  CHECK(missing(1) == std::vector<NodeIndex>{1});
  CHECK(missing(2) == (std::vector<NodeIndex>{6, 1}));
  CHECK(missing(3) == (std::vector<NodeIndex>{6, 1}));
  CHECK(missing(4) == std::vector<NodeIndex>{9});
  for (std::size_t depth = 0; depth < 5; ++depth) CHECK_EQ(path.is_available(depth), depth == 0);
}

}  // namespace
}  // namespace graftboost
