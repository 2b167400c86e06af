#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/loss.hpp"
#include "tests/check.hpp"
#include "tests/naive_candidates.hpp"
#include "tests/random_numbers.hpp"
#include "train/split_evaluation.hpp"
#include "update/gain_bounds.hpp"

namespace graftboost {
namespace {

using testing::naive_best;
using testing::naive_candidates;
using testing::NaiveCandidate;
using testing::Random;

struct NodeRow {
  std::vector<Code> codes;  // by the number of the feature
  Totals totals;
};

// How the rows of a node are drawn.
struct Drawing {
  std::vector<double> centre, spread, missing, common;  // by feature
  double gradient = 0.5;
};

Feature numeric(std::size_t n_edges, Code common_code, double common_share) {
  Feature feature;
  for (std::size_t i = 0; i < n_edges; ++i) feature.edges.push_back(static_cast<double>(i));
  feature.common_code = common_code;
  feature.common_share = common_share;
  return feature;
}

// A node that rows are added to and removed from, with its bounds and its histogram.
class BoundedNode {
 public:
  BoundedNode(BinMap bins, const GainParams& params, const Drawing& drawing, std::size_t n_rows,
              Random& random)
      : layout_(bins), params_(params), drawing_(drawing), random_(random) {
    for (std::size_t f = 0; f < layout_.size(); ++f) cells_.emplace_back(layout_[f].n_codes);
    for (std::size_t r = 0; r < n_rows; ++r) add(draw());
    own_ = static_cast<std::uint32_t>(random.below(layout_.size()));
  }

  const CodeLayout& layout() const { return layout_; }
  std::size_t size() const { return rows_.size(); }
  bool is_grouped() const { return GainBounds::are_grouped(layout_); }
  bool is_bounded(std::size_t f) const {
    return !is_grouped() || layout_[f].counts_only_differing();
  }

  void start() { bounds_.start(params_, sums_, layout_); }
  void change_drawing(const Drawing& drawing) { drawing_ = drawing; }

  void add_row() {
    NodeRow row = draw();
    book(row, true);
    add(std::move(row));
  }
  void remove_row() { remove(random_.below(rows_.size())); }
  // Removes a row whose code of the first feature is larger; false if there is none.
  bool remove_beyond(Code code) {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r].codes[0] <= code) continue;
      remove(r);
      return true;
    }
    return false;
  }

  void remove(std::size_t r) {
    const NodeRow row = rows_[r];
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(r));
    sums_ -= row.totals;
    for (std::size_t f = 0; f < cells_.size(); ++f) cells_[f][row.codes[f]] -= row.totals;
    book(row, false);
  }

  // Rows at one end of a feature record other gradients, as rows of a node below that is regrown
  // do.
  void record_others() {
    const std::size_t by = random_.below(layout_.size());
    const auto limit = static_cast<Code>(random_.below(layout_[by].n_codes));
    const bool upper = random_.chance(0.5);
    const double shift = random_.normal();
    NodeHistogram<WideSums> before, after;
    Totals difference;
    before.plain.resize(layout_.plain_size());
    before.plain.fill({});
    after = before;
    for (NodeRow& row : rows_) {
      if (upper ? row.codes[by] < limit : row.codes[by] > limit) continue;
      const Totals former = row.totals;
      const double g = static_cast<double>(former.g) * 0x1p-15 + shift;
      const auto recorded = static_cast<Gradient>(std::clamp(g, -1.0, 1.0) * 0x1p15);
      row.totals = {recorded, Loss::probability_hessian(recorded), 1};
      difference += row.totals - former;
      for (std::uint32_t f = 0; f < layout_.size(); ++f) {
        cells_[f][row.codes[f]] += row.totals - former;
        if (layout_[f].counts_only_differing() && row.codes[f] == layout_[f].common_code) continue;
        if (layout_[f].kind == FeatureLayout::Kind::sparse) continue;
        before.plain[layout_[f].offset + row.codes[f]] += former;
        after.plain[layout_[f].offset + row.codes[f]] += row.totals;
      }
    }
    sums_ += difference;
    bounds_.sums_changed(drift_between(layout_, params_, before, after, difference));
  }

  void evaluate(std::uint32_t number) {
    FeatureSurvey survey;
    SplitEvaluator<WideSums> evaluator(params_, sums_);
    const BestSplit best = evaluator.best(layout_[number], view(number), &survey);
    bounds_.evaluated(params_, sums_, number, best.gain, survey);
  }
  void evaluate_all() {
    if (!is_grouped()) {
      for (std::uint32_t f = 0; f < layout_.size(); ++f) evaluate(f);
    } else {
      std::vector<std::uint32_t> all;
      for (std::uint32_t f = 0; f < layout_.size(); ++f)
        if (is_bounded(f)) all.push_back(f);
      bounds_.evaluated_all(params_, sums_, survey_of(all), layout_[own_].column, layout_.size());
    }
    changed_features_.clear();
    choose_split();
  }
  // Some features, as a check does that finds a bound too high.
  void evaluate_some() {
    if (is_grouped()) {
      bounds_.evaluated_changed(params_, sums_, survey_of(changed_features_), layout_.size());
      changed_features_.clear();
      return;
    }
    for (std::uint32_t f = 0; f < layout_.size(); ++f)
      if (random_.chance(0.3)) evaluate(f);
  }

  // Checks that no candidate has a gain above its bound.
  void check() {
    double best_of_all = no_gain, best_of_others = no_gain;
    for (std::uint32_t f = 0; f < layout_.size(); ++f) {
      const auto best = naive_best(naive_candidates(params_, sums_, layout_[f], cells_[f]));
      if (!best || !is_bounded(f)) continue;
      best_of_all = std::max(best_of_all, best->gain);
      if (f != own_) best_of_others = std::max(best_of_others, best->gain);
      if (!is_grouped()) {
        const double limit = bounds_.limits(params_, sums_).of_unit(f, ColumnIndex::none);
        CHECK(limit >= best->gain);
        n_ruled_out += limit < best->gain + 1;
      }
    }
    CHECK(bounds_.limits(params_, sums_).of_all() >= best_of_all);
    CHECK(bounds_.limits(params_, sums_).of_others(own_) >= best_of_others);
    if (is_grouped()) {
      CHECK(bounds_.limits(params_, sums_).of_unit(0, ColumnIndex::none) >= best_of_all);
      const double limit = bounds_.limits(params_, sums_).of_unit(0, layout_[own_].column);
      CHECK(limit >= best_of_others);
      n_ruled_out += limit < best_of_others + 1;
    }
    for (const NaiveCandidate& other :
         naive_candidates(params_, sums_, layout_[own_], cells_[own_])) {
      std::int64_t n_between = 0;
      for (std::uint32_t c = 0; c < layout_[own_].n_codes; ++c) {
        if (split_.goes_left(static_cast<Code>(c)) != other.goes_left[c])
          n_between += cells_[own_][c].n;
      }
      CHECK(n_between == 0 || n_between >= bounds_.rows_to_move());
    }
  }

  int n_ruled_out = 0;  // bounds that were useful

 private:
  NodeRow draw() {
    NodeRow row;
    for (std::size_t f = 0; f < layout_.size(); ++f) {
      const FeatureLayout& feature = layout_[f];
      const auto top = static_cast<double>(feature.n_codes - 1);
      double code =
          std::clamp(drawing_.centre[f] + drawing_.spread[f] * random_.normal(), 1.0, top);
      if (random_.chance(drawing_.missing[f])) code = missing_code;
      if (random_.chance(drawing_.common[f])) code = feature.common_code;
      row.codes.push_back(static_cast<Code>(code));
    }
    const double g = std::clamp(drawing_.gradient + 0.3 * random_.normal(), -1.0, 1.0);
    const auto recorded = static_cast<Gradient>(g * 0x1p15);
    row.totals = {recorded, Loss::probability_hessian(recorded), 1};
    return row;
  }

  void add(NodeRow row) {
    sums_ += row.totals;
    for (std::size_t f = 0; f < cells_.size(); ++f) cells_[f][row.codes[f]] += row.totals;
    rows_.push_back(std::move(row));
  }

  void book(const NodeRow& row, bool enters) {
    bounds_.row_changed(params_, row.totals, enters, layout_.any_commonly_missing(), own_,
                        row.codes, [&](std::uint32_t f) { return row.codes[f]; });
    for (std::uint32_t f = 0; f < layout_.size(); ++f) {
      if (layout_[f].counts_only_differing() && row.codes[f] != layout_[f].common_code)
        changed_features_.push_back(f);
    }
  }

  FeatureCells<WideSums> view(std::uint32_t number) const {
    return {cells_[number].data(), {}, false, true};
  }

  GroupSurvey survey_of(const std::vector<std::uint32_t>& numbers) {
    SplitEvaluator<WideSums> evaluator(params_, sums_);
    BestSplit best;
    GroupSurvey survey;
    for (const std::uint32_t number : numbers)
      evaluator.improve(layout_[number], view(number), best, &survey);
    return survey;
  }

  // The node is split by the best candidate of one feature; the margin is that of this split.
  void choose_split() {
    SplitEvaluator<WideSums> evaluator(params_, sums_);
    const BestSplit best = evaluator.best(layout_[own_], view(own_));
    split_ = best.gain == no_gain ? Split{layout_[own_].column, 1, 0} : best.split;
    bounds_.set_margin(evaluator.margin(layout_[own_], view(own_), split_));
  }

  CodeLayout layout_;
  GainParams params_;
  Drawing drawing_;
  Random& random_;
  std::vector<NodeRow> rows_;
  std::vector<std::vector<Totals>> cells_;  // by feature and code
  Totals sums_;
  std::uint32_t own_ = 0;
  Split split_;
  GainBounds bounds_;
  std::vector<std::uint32_t> changed_features_;  // since they were last evaluated
};

GainParams random_params(Random& random) {
  GainParams params;
  params.gradient_unit = 0x1p-15, params.hessian_unit = 0x1p-20;
  params.l2 = random.chance(0.5) ? 0 : random.fraction() * 5;
  params.min_samples_leaf = static_cast<std::int64_t>(1 + random.below(12));
  params.least_hessian = random.chance(0.6)   ? 0.1
                         : random.chance(0.5) ? params.hessian_unit
                                              : 0.1 + random.fraction() * 3;
  params.largest_of_row = std::int64_t{1} << 18;
  return params;
}

Drawing random_drawing(const BinMap& bins, bool grouped, Random& random) {
  Drawing drawing;
  for (const Feature& feature : bins.features()) {
    const double n = feature.n_codes();
    drawing.centre.push_back(random.fraction() * n);
    drawing.spread.push_back(random.chance(0.3) ? 1 : random.fraction() * n / 2);
    drawing.missing.push_back(random.chance(0.6) ? 0 : random.fraction() * 0.2);
    drawing.common.push_back(grouped ? 1 - random.fraction() * 0.2 : 0);
  }
  drawing.gradient = random.normal() * 0.3;
  return drawing;
}

void run(BoundedNode& node, const BinMap& bins, Random& random) {
  const bool grouped = node.is_grouped();
  node.start();
  node.evaluate_all();
  node.check();
  for (int step = 0; step < 12; ++step) {
    // Rows of another kind may make candidates valid that were not.
    if (random.chance(0.4)) node.change_drawing(random_drawing(bins, grouped, random));
    const double share_added = random.fraction();
    for (std::size_t n = 1 + random.below(4); n > 0; --n) {
      if (random.chance(share_added) || node.size() < 2) {
        node.add_row();
      } else {
        node.remove_row();
      }
    }
    node.check();
    if (!grouped && random.chance(0.3)) node.record_others();
    node.check();
    if (random.chance(0.5)) node.evaluate_some();
    if (random.chance(0.1)) node.evaluate_all();
    node.check();
  }
}

TEST_CASE("no candidate has a gain above the bound of its feature") {
  Random random(1);
  int n_ruled_out = 0;
  for (int i = 0; i < 150; ++i) {
    std::vector<Feature> features;
    const std::size_t n_features = 1 + random.below(5);
    for (std::size_t f = 0; f < n_features; ++f) {
      const double share = random.chance(0.3) ? 0.97 : 0.3;  // stored sparsely, or not
      features.push_back(numeric(1 + random.below(random.chance(0.2) ? 300 : 12), 1, share));
      if (!random.chance(0.2)) continue;
      features.back().edges.clear();
      features.back().n_categories = static_cast<std::uint32_t>(1 + random.below(5));
    }
    std::vector<std::uint32_t> columns;
    for (std::uint32_t f = 0; f < n_features; ++f) columns.push_back(f);
    const BinMap bins(n_features, columns, features);
    BoundedNode node(bins, random_params(random), random_drawing(bins, false, random),
                     random.below(150), random);
    REQUIRE(!node.is_grouped());
    run(node, bins, random);
    n_ruled_out += node.n_ruled_out;
  }
  CHECK(n_ruled_out > 500);
}

TEST_CASE("no candidate has a gain above the bounds of its group") {
  Random random(2);
  int n_ruled_out = 0;
  for (int i = 0; i < 40; ++i) {
    std::vector<Feature> features;
    const bool commonly_missing = i % 4 == 0;
    for (std::size_t f = 0; f < 75; ++f) {
      if (f < 3) {
        features.push_back(numeric(1 + random.below(10), 1, 0.3));
        continue;
      }
      const std::size_t n_edges = 1 + random.below(3);
      const auto common = static_cast<Code>(
          commonly_missing && random.chance(0.2) ? missing_code : 1 + random.below(n_edges + 1));
      features.push_back(numeric(n_edges, common, 0.9));
      features.back().has_missing = true;
      if (random.chance(0.2)) {
        features.back().edges.clear();
        features.back().n_categories = static_cast<std::uint32_t>(n_edges);
      }
      if (f < 20) features.back().bundle = static_cast<std::int32_t>(f % 4);
    }
    std::vector<std::uint32_t> columns;
    for (std::uint32_t f = 0; f < features.size(); ++f) columns.push_back(f);
    const BinMap bins(features.size(), columns, features);
    BoundedNode node(bins, random_params(random), random_drawing(bins, true, random),
                     20 + random.below(150), random);
    REQUIRE(node.is_grouped());
    REQUIRE(node.layout().any_commonly_missing() == commonly_missing);
    run(node, bins, random);
    n_ruled_out += node.n_ruled_out;
  }
  CHECK(n_ruled_out > 50);
}

TEST_CASE("candidates with a small child are bounded by the rows at that end alone") {
  // The gradients of all codes but the first cancel out, and those of the first are small until
  // its rows record others.
  const BinMap bins(1, {0}, {numeric(40, 1, 0.01)});
  GainParams params;
  params.gradient_unit = 0x1p-15, params.hessian_unit = 0x1p-20;
  params.min_samples_leaf = 5;
  params.least_hessian = 0.1;
  params.largest_of_row = std::int64_t{1} << 18;
  const CodeLayout layout(bins);
  std::vector<Totals> cells(layout[0].n_codes);
  Totals node;
  const auto add = [&](Code code, double g, std::int64_t n) {
    const auto recorded = static_cast<Gradient>(g * 0x1p15);
    const std::int64_t h = Loss::probability_hessian(recorded);
    const Totals totals{recorded * n, h * n, n};
    cells[code] += totals;
    node += totals;
    return totals;
  };
  for (Code code = 2; code < 40; ++code) add(code, 0.5, 50), add(code, -0.5, 50);
  const Totals former = add(1, 0.1, 20);
  GainBounds bounds;
  bounds.start(params, node, layout);
  FeatureSurvey survey;
  const auto evaluate = [&](FeatureSurvey* into) {
    return SplitEvaluator<WideSums>(params, node)
        .best(layout[0], {cells.data(), {}, false, true}, into);
  };
  bounds.evaluated(params, node, 0, evaluate(&survey).gain, survey);
  CHECK(survey.first_central > 1);
  const double before = bounds.limits(params, node).of_all();
  CHECK(before >= evaluate(nullptr).gain);

  NodeHistogram<WideSums> from, to;
  from.plain.resize(layout.plain_size());
  from.plain.fill({});
  to = from;
  from.plain[layout[0].offset + 1] = former;
  node -= former;
  cells[1] = {};
  to.plain[layout[0].offset + 1] = add(1, 0.9, 20);
  bounds.sums_changed(drift_between(layout, params, from, to, cells[1] - former));
  CHECK(bounds.limits(params, node).of_all() >= evaluate(nullptr).gain);
  CHECK(evaluate(nullptr).gain > before);
}

TEST_CASE("candidates of a later stretch that become valid are noticed") {
  // 128 candidates are evaluated at a time. Up to edge 128 all have enough rows on both sides;
  // from edge 129 on none has, until rows with larger codes are added.
  for (const double least_hessian : {0.1, 1.0}) {
    for (const std::size_t n_last : {5, 40}) {
      Random random(3);
      const BinMap bins(1, {0}, {numeric(300, 1, 0.01)});
      GainParams params;
      params.gradient_unit = 0x1p-15, params.hessian_unit = 0x1p-20;
      params.min_samples_leaf = 5;
      params.least_hessian = least_hessian;
      params.largest_of_row = std::int64_t{1} << 18;
      Drawing drawing{{100}, {20}, {0}, {0.2}, 0.0};  // many rows have code 1
      BoundedNode node(bins, params, drawing, 300, random);
      node.start();
      node.change_drawing({{129}, {0}, {0}, {0}, 0.0});
      for (std::size_t r = 0; r < n_last; ++r) node.add_row();
      while (node.remove_beyond(129)) {
      }
      node.evaluate_all();
      node.check();
      node.change_drawing({{200}, {0}, {0}, {0}, 0.8});
      for (int r = 0; r < 12; ++r) {
        node.add_row();
        node.check();
      }
    }
  }
}

}  // namespace
}  // namespace graftboost
