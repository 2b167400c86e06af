#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/check.hpp"
#include "tests/naive_candidates.hpp"
#include "tests/random_numbers.hpp"
#include "tests/train/random_histograms.hpp"
#include "train/split_evaluation.hpp"

namespace graftboost {
namespace {

using testing::CellsView;
using testing::naive_best;
using testing::naive_candidates;
using testing::NaiveCandidate;
using testing::Random;
using testing::RandomFeature;
using testing::RandomRow;

using Kind = FeatureLayout::Kind;

// A node whose rows have codes in several features.
struct RandomNode {
  GainParams params;
  Totals sums;
  std::vector<RandomFeature> features;
};

GainParams random_params(bool wide, bool squared, Random& random) {
  GainParams params;
  params.gradient_unit = squared ? 0x1p-24 : 0x1p-15;
  params.hessian_unit = squared ? 0x1p-18 : 0x1p-20;
  params.l2 = random.chance(0.5) ? 0 : random.fraction() * 10;
  params.min_samples_leaf = static_cast<std::int64_t>(1 + random.below(8));
  params.least_hessian = random.chance(0.5) ? 0.1 : random.fraction() * 3;
  params.largest_of_row = std::int64_t{1} << 30;
  // Weighted sums, too large for the faster of the two conversions to double.
  if (wide && random.chance(0.5)) params.largest_of_row <<= 20;
  return params;
}

RandomFeature random_feature(std::uint32_t number, Random& random) {
  RandomFeature feature;
  FeatureLayout& layout = feature.layout;
  // Columns are not in the order of the features.
  layout.column = static_cast<std::uint32_t>(mix(number) % 1000);
  const Kind kinds[] = {Kind::narrow, Kind::wide, Kind::bundled, Kind::sparse, Kind::sparse};
  layout.kind = kinds[random.below(5)];
  layout.categorical = random.chance(0.3);
  // More than 128 candidates are evaluated in several stretches.
  const std::size_t most = layout.counts_only_differing() ? 8 : random.chance(0.2) ? 400 : 20;
  layout.n_codes = static_cast<std::uint32_t>(3 + random.below(most));
  layout.offset = static_cast<std::uint32_t>(random.below(1000));
  layout.common_code = static_cast<Code>(random.below(layout.n_codes));
  feature.cells.resize(layout.n_codes);
  return feature;
}

RandomNode random_node(bool wide, Random& random) {
  RandomNode node;
  const bool squared = random.chance(0.3);
  node.params = random_params(wide, squared, random);
  const std::size_t n_features = 1 + random.below(6);
  std::vector<double> missing, common;
  for (std::uint32_t f = 0; f < n_features; ++f) {
    node.features.push_back(random_feature(f, random));
    missing.push_back(random.chance(0.5) ? 0 : random.fraction() * 0.3);
    common.push_back(random.chance(0.5) ? random.fraction() : 1 - random.fraction() * 0.1);
  }
  // Few rows and rows that repeat give equal gains.
  const std::size_t n_rows = random.below(random.chance(0.3) ? 20 : 600);
  Totals row;
  for (std::size_t r = 0; r < n_rows; ++r) {
    if (r == 0 || random.chance(0.8)) row = RandomRow::of(node.params, squared, random);
    node.sums += row;
    for (std::uint32_t f = 0; f < n_features; ++f) {
      const FeatureLayout& layout = node.features[f].layout;
      std::size_t code = random.chance(missing[f]) ? 0 : 1 + random.below(layout.n_codes - 1);
      if (layout.counts_only_differing() && random.chance(common[f])) code = layout.common_code;
      node.features[f].cells[code] += row;
    }
  }
  // A copy of a feature has the same gains: the smaller column must win.
  if (random.chance(0.5)) {
    node.features.push_back(node.features[random.below(n_features)]);
    node.features.back().layout.column = static_cast<std::uint32_t>(random.below(1000));
  }
  return node;
}

template <class Sums>
std::vector<CellsView<Sums>> views_of(const RandomFeature& feature) {
  using Form = typename CellsView<Sums>::Form;
  std::vector<CellsView<Sums>> views{{feature, Form::complete}};
  if (feature.layout.counts_only_differing()) {
    views.emplace_back(feature, Form::without_common);
    views.emplace_back(feature, Form::sparse);
  }
  return views;
}

void check_best(const RandomNode& node, const RandomFeature& feature, const BestSplit& found) {
  const auto expected =
      naive_best(naive_candidates(node.params, node.sums, feature.layout, feature.cells));
  if (!expected) {
    CHECK_EQ(found.gain, no_gain);
    return;
  }
  CHECK_EQ(found.gain, expected->gain);
  CHECK_EQ(found.split.feature, feature.layout.column);
  CHECK(found.left == expected->left);
  for (std::uint32_t c = 0; c < feature.layout.n_codes; ++c) {
    if (c == missing_code && feature.cells[c].n == 0) continue;
    CHECK_EQ(found.split.goes_left(static_cast<Code>(c)), bool{expected->goes_left[c]});
  }
  if (feature.layout.categorical || feature.cells[missing_code].n != 0) return;
  const std::int64_t n_left = expected->left.n, n_right = node.sums.n - n_left;
  if (n_left != n_right) CHECK_EQ(found.split.goes_left(missing_code), n_left > n_right);
}

template <class Sums, class Check>
void for_each_node(std::uint64_t seed, int n_nodes, Check&& check) {
  Random random(seed);
  for (int i = 0; i < n_nodes; ++i) {
    const RandomNode node = random_node(std::is_same_v<Sums, WideSums>, random);
    check(node, random);
  }
}

template <class Sums>
void check_best_of_features() {
  int n_split = 0, n_unsplit = 0;
  for_each_node<Sums>(1, 600, [&](const RandomNode& node, Random&) {
    SplitEvaluator<Sums> evaluator(node.params, node.sums);
    for (const RandomFeature& feature : node.features) {
      for (const auto& view : views_of<Sums>(feature)) {
        FeatureSurvey survey;
        check_best(node, feature, evaluator.best(feature.layout, view.get()));
        check_best(node, feature, evaluator.best(feature.layout, view.get(), &survey));
        BestSplit improved;
        evaluator.improve(feature.layout, view.get(), improved);
        check_best(node, feature, improved);
        ++(improved.gain == no_gain ? n_unsplit : n_split);
      }
    }
  });
  CHECK(n_split > 1000);
  CHECK(n_unsplit > 1000);
}

TEST_CASE("the best candidate of a feature is that of a naive evaluator, in packed sums") {
  check_best_of_features<PackedSums>();
}

TEST_CASE("the best candidate of a feature is that of a naive evaluator, in wide sums") {
  check_best_of_features<WideSums>();
}

template <class Sums>
void check_improve() {
  for_each_node<Sums>(2, 600, [&](const RandomNode& node, Random& random) {
    SplitEvaluator<Sums> evaluator(node.params, node.sums);
    BestSplit expected;
    for (const RandomFeature& feature : node.features) {
      const auto views = views_of<Sums>(feature);
      const BestSplit found = evaluator.best(feature.layout, views[0].get());
      if (found.gain == no_gain) continue;
      if (found.gain > expected.gain ||
          (found.gain == expected.gain && found.split.feature < expected.split.feature))
        expected = found;
    }
    std::vector<std::size_t> order;
    for (std::size_t f = 0; f < node.features.size(); ++f)
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(random.below(f + 1)), f);
    BestSplit best;
    GroupSurvey survey;
    const bool surveys = random.chance(0.5);
    for (const std::size_t f : order) {
      const RandomFeature& feature = node.features[f];
      const auto views = views_of<Sums>(feature);
      const bool may_split =
          evaluator.improve(feature.layout, views[random.below(views.size())].get(), best,
                            surveys ? &survey : nullptr);
      CHECK_EQ(may_split, !feature.layout.counts_only_differing() ||
                              feature.n_differing(node.sums) >= node.params.min_samples_leaf);
    }
    CHECK_EQ(best.gain, expected.gain);
    if (expected.gain == no_gain) return;
    CHECK(best.split == expected.split);
    CHECK(best.left == expected.left);
  });
}

TEST_CASE("improving feature by feature, in any order, finds the best of all") {
  check_improve<PackedSums>();
  check_improve<WideSums>();
}

template <class Sums>
void check_comparisons() {
  for_each_node<Sums>(3, 300, [&](const RandomNode& node, Random& random) {
    SplitEvaluator<Sums> evaluator(node.params, node.sums);
    for (const RandomFeature& feature : node.features) {
      const auto candidates =
          naive_candidates(node.params, node.sums, feature.layout, feature.cells);
      const double gain =
          random.chance(0.2) ? no_gain : candidates[random.below(candidates.size())].gain;
      std::int64_t n_better = 0;
      double next = no_gain;
      for (const NaiveCandidate& candidate : candidates) {
        n_better += candidate.gain > gain;
        if (candidate.gain != gain) next = std::max(next, candidate.gain);
      }
      for (const auto& view : views_of<Sums>(feature)) {
        CHECK_EQ(evaluator.count_better(feature.layout, view.get(), gain), n_better);
        CHECK_EQ(evaluator.next_gain(feature.layout, view.get(), gain), next);
      }
    }
  });
}

TEST_CASE("candidates are compared with a gain as a naive evaluator compares them") {
  check_comparisons<PackedSums>();
  check_comparisons<WideSums>();
}

// A split with which a candidate can be written.
Split split_of(const FeatureLayout& feature, const NaiveCandidate& candidate) {
  if (feature.categorical) return {feature.column, static_cast<Code>(candidate.key), 0};
  const auto last = static_cast<Code>(candidate.key / 2);
  return candidate.key % 2 == 1 ? Split{feature.column, 0, last}
                                : Split{feature.column, 1, static_cast<Code>(last - 1)};
}

template <class Sums>
void check_margins() {
  for_each_node<Sums>(4, 200, [&](const RandomNode& node, Random& random) {
    SplitEvaluator<Sums> evaluator(node.params, node.sums);
    for (const RandomFeature& feature : node.features) {
      const FeatureLayout& layout = feature.layout;
      const auto candidates = naive_candidates(node.params, node.sums, layout, feature.cells);
      const NaiveCandidate& own = candidates[random.below(candidates.size())];
      const Split split = split_of(layout, own);
      const auto views = views_of<Sums>(feature);
      const auto view = views[random.below(views.size())].get();
      const Margin margin = evaluator.margin(layout, view, split);
      for (const NaiveCandidate& other : candidates) {
        std::int64_t n_between = 0;
        for (std::uint32_t c = 0; c < layout.n_codes; ++c)
          if (own.goes_left[c] != other.goes_left[c]) n_between += feature.cells[c].n;
        const Split other_split = split_of(layout, other);
        CHECK_EQ(evaluator.rows_between(layout, view, split, other_split), n_between);
        // Candidates that separate the same rows are the same split.
        CHECK(n_between == 0 || n_between >= margin.rows);
        if (n_between != 0 || layout.categorical || other.key == own.key) continue;
        // They differ in codes that no row has: rows that are added there are between the limits.
        for (std::uint32_t c = 1; c < layout.n_codes; ++c)
          if (own.goes_left[c] != other.goes_left[c]) CHECK(c > margin.below && c < margin.above);
      }
    }
  });
}

TEST_CASE("other candidates move at least as many rows as the margin tells") {
  check_margins<PackedSums>();
  check_margins<WideSums>();
}

TEST_CASE("of equal gains the smaller edge wins, and missing rows go right") {
  // Three groups of rows: the edges after the first and after the second are equally good.
  GainParams params;
  params.least_hessian = 0;
  RandomFeature feature;
  feature.layout.n_codes = 6;
  feature.cells = {{}, {4, 4, 4}, {}, {0, 4, 4}, {-4, 4, 4}, {}};
  const Totals node{0, 12, 12};
  SplitEvaluator<WideSums> evaluator(params, node);
  using View = CellsView<WideSums>;
  const BestSplit first = evaluator.best(feature.layout, View(feature, View::Form::complete).get());
  CHECK(first.split == (Split{0, 1, 0}));

  // Missing rows without gradients: on either side they change nothing but the hessian.
  feature.cells = {{0, 4, 4}, {4, 4, 4}, {-4, 4, 4}, {}, {}, {}};
  SplitEvaluator<WideSums> with_missing(params, node);
  const BestSplit second =
      with_missing.best(feature.layout, View(feature, View::Form::complete).get());
  CHECK(second.split == (Split{0, 1, 0}));
}

}  // namespace
}  // namespace graftboost
