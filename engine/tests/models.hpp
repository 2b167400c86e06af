// Small models for tests, and their state in a form that can be compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "model/model.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"
#include "tests/tables.hpp"

namespace graftboost::testing {

// What kind of model to fit, and to what.
struct ModelOptions {
  LossKind loss = LossKind::logistic;
  int n_classes = 2;
  bool weighted = false;
  // A table of so many sparse columns that gain bounds are grouped, instead of mixed_table().
  bool many_columns = false;
  int max_bins = 12;
  std::size_t n_shards = 1;
  std::size_t histogram_memory = std::numeric_limits<std::size_t>::max();
  TrainingParams training = {.n_estimators = 4, .max_leaf_nodes = 8, .min_samples_leaf = 5};
};

// Two columns with many values, and 80 with a value in one row of eight. Ids are distinct.
inline OwnedTable<double> wide_table(std::size_t n_rows, std::uint64_t seed) {
  constexpr std::size_t n_columns = 88;
  Random random(seed);
  std::vector<double> cells(n_rows * n_columns);
  std::vector<RowId> ids;
  for (std::size_t r = 0; r < n_rows; ++r) {
    double* row = cells.data() + r * n_columns;
    row[0] = random.normal();
    row[1] = static_cast<double>(random.below(5));
    for (std::size_t c = 2; c < 82; ++c)
      if (random.chance(0.12)) row[c] = static_cast<double>(1 + random.below(1 + c % 3));
    for (std::size_t c = 82; c < n_columns; ++c)
      if (random.chance(0.015)) row[c] = 1;
    ids.push_back(static_cast<RowId>(mix(r + 100'000) >> 20));
  }
  return {n_columns, std::move(cells), std::move(ids)};
}

// Rows with targets and weights. Owns them.
struct TrainingRows {
  OwnedTable<double> table;
  std::vector<double> y, weight;

  std::size_t size() const { return table.rows(); }
  std::span<const RowId> ids() const { return table.ids(); }
  template <class Table = DenseTable<double>>
  Sample<Table> sample() const {
    return {table.template as<Table>(), y, weight, table.ids()};
  }
  TrainingRows select(const std::vector<std::size_t>& selected) const {
    TrainingRows rows{table.select(selected), {}, {}};
    for (const std::size_t r : selected) {
      rows.y.push_back(y[r]);
      if (!weight.empty()) rows.weight.push_back(weight[r]);
    }
    return rows;
  }
  TrainingRows slice(std::size_t begin, std::size_t end) const {
    std::vector<std::size_t> selected;
    for (std::size_t r = begin; r < end; ++r) selected.push_back(r);
    return select(selected);
  }
};

// Targets depend on several columns, so that trees have something to find.
inline TrainingRows random_rows(const ModelOptions& options, std::size_t n_rows,
                                std::uint64_t seed) {
  TrainingRows rows{
      options.many_columns ? wide_table(n_rows, seed) : mixed_table<double>(n_rows, seed, 0.02),
      {},
      {}};
  Random random(seed + 1);
  for (std::size_t r = 0; r < n_rows; ++r) {
    double score = 0.7 * random.normal();
    for (std::size_t c = 0; c < rows.table.columns(); ++c) {
      const double x = rows.table.at(r, c);
      score += std::isnan(x) ? 0.8 : x * (static_cast<double>(mix(c) % 5) - 2) / 3;
    }
    if (options.loss == LossKind::squared) {
      rows.y.push_back(score);
    } else {
      const double n = options.n_classes;
      rows.y.push_back(std::clamp(std::floor(score / 2 + n / 2), 0.0, n - 1));
    }
    if (options.weighted) rows.weight.push_back(static_cast<double>(random.below(4)) / 2);
  }
  if (options.weighted) rows.weight[0] = 3;
  return rows;
}

inline std::shared_ptr<const BinMap> bins_of(const TrainingRows& rows,
                                             const ModelOptions& options) {
  BinningParams params;
  params.split_sample = 1;
  params.max_bins = options.max_bins;
  params.rare_below = rows.size() / 20;
  const GivenColumns given = options.many_columns ? GivenColumns{} : mixed_categories();
  return std::make_shared<const BinMap>(
      BinMap::fit(rows.table.dense(), rows.ids(), given, params, 1));
}

inline std::unique_ptr<Model> fit_model(const TrainingRows& rows, const ModelOptions& options,
                                        std::shared_ptr<const BinMap> bins, int n_threads = 2) {
  FitParams params;
  params.loss = options.loss;
  params.n_classes = options.loss == LossKind::squared ? 1 : options.n_classes;
  params.training = options.training;
  params.histogram_memory = options.histogram_memory;
  params.n_shards = options.n_shards;
  return Model::fit<DenseTable<double>>(std::move(bins), rows.sample(), nullptr, params, {},
                                        n_threads);
}
inline std::unique_ptr<Model> fit_model(const TrainingRows& rows, const ModelOptions& options) {
  return fit_model(rows, options, bins_of(rows, options));
}

inline ModelState state_of(const Model& model) {
  return model.read([](const ModelState& state) { return ModelState(state); });
}
inline ModelState fit_state(const TrainingRows& rows, const ModelOptions& options) {
  return state_of(*fit_model(rows, options));
}

// One request to a model: adds rows, of which there may be none, and removes others.
inline UpdateCounts change(Model& model, const TrainingRows& added, std::span<const RowId> removed,
                           const UpdateRule& rule, int n_threads = 2) {
  const auto sample = added.sample();
  UpdateRequest<DenseTable<double>> request;
  request.added = added.size() == 0 ? nullptr : &sample;
  request.removed = removed;
  request.removed_argument = "row_ids";
  return model.update(request, rule, n_threads);
}

// The rule under which no node is regrown.
inline const UpdateRule never_regrow{UpdateRule::Kind::regret,
                                     std::numeric_limits<double>::infinity(), 1};

// --- comparing -----------------------------------------------------------------------------------

using Numbers = std::vector<std::int64_t>;

// All that a model stores, without the order of rows. Bounds and histograms are left out: they are
// no part of the model.
struct Contents {
  std::vector<std::vector<Node>> trees;
  // Per tree: whether the best candidates of its leaves are known. If not, they follow from the
  // rows.
  std::vector<bool> counted;
  std::map<RowId, Numbers> rows;
  TargetSums target_sums;
  std::vector<double> base_scores;
  std::vector<__int128> squares;  // per tree
  DeferredRows deferred;
};

inline Contents contents_of(const ModelState& model) {
  Contents contents;
  for (const TreeNodes& nodes : model.nodes) {
    contents.trees.push_back(nodes.tree.nodes);
    contents.counted.push_back(nodes.counted);
    contents.squares.push_back(nodes.squares);
  }
  for (const RowShard& shard : model.shards) {
    for (Slot row = 0; row < shard.size(); ++row) {
      Numbers numbers{shard.rows.target[row], shard.weight_of(row)};
      for (std::uint32_t c = 0; c < model.bins->n_features(); ++c)
        numbers.push_back(shard.rows.code(row, c));
      for (const TreeRows& tree : shard.trees) {
        numbers.push_back(tree.leaf_ids[row]);
        numbers.push_back(tree.recorded[row]);
      }
      contents.rows[shard.rows.ids[row]] = std::move(numbers);
    }
  }
  contents.target_sums = model.target_sums;
  contents.base_scores = model.base_scores;
  contents.deferred = model.deferred;
  return contents;
}

inline bool is_same(const Node& a, const Node& b) {
  return std::tie(a.left, a.right, a.parent, a.leaf, a.split, a.gain, a.value, a.sums,
                  a.deferred) ==
         std::tie(b.left, b.right, b.parent, b.leaf, b.split, b.gain, b.value, b.sums, b.deferred);
}

inline bool is_same(const std::vector<Node>& a, const std::vector<Node>& b) {
  return std::ranges::equal(a, b,
                            [](const Node& one, const Node& other) { return is_same(one, other); });
}

// The nodes of a tree; candidates of leaves that follow from the rows are left out if need be.
inline std::vector<Node> compared_nodes(const Contents& contents, std::size_t t, bool all_known) {
  std::vector<Node> nodes = contents.trees[t];
  for (Node& node : nodes) {
    if (all_known || !node.is_leaf() || !node.deferred.empty()) continue;
    node.split = {};
    node.gain = no_gain;
  }
  return nodes;
}

inline void check_same(const Contents& a, const Contents& b) {
  CHECK_EQ(a.trees.size(), b.trees.size());
  for (std::size_t t = 0; t < std::min(a.trees.size(), b.trees.size()); ++t) {
    const bool all_known = a.counted[t] && b.counted[t];
    CHECK(is_same(compared_nodes(a, t, all_known), compared_nodes(b, t, all_known)));
  }
  CHECK_EQ(a.rows.size(), b.rows.size());
  CHECK(a.rows == b.rows);
  CHECK(a.target_sums == b.target_sums);
  CHECK(a.base_scores == b.base_scores);
  CHECK(a.squares == b.squares);
  CHECK(a.deferred == b.deferred);
}
inline void check_same(const ModelState& a, const ModelState& b) {
  check_same(contents_of(a), contents_of(b));
}

// --- counting ------------------------------------------------------------------------------------

// Calls use(shard, slot) for the rows of a node that count: those in the tree's subsample that no
// update under way removes. Rows are routed by their codes.
template <class Use>
void for_each_row(const ModelState& model, std::size_t t, NodeIndex node, Use&& use) {
  const Tree& tree = model.nodes.tree(t);
  for (std::size_t s = 0; s < model.shards.size(); ++s) {
    const RowShard& shard = model.shards[s];
    for (Slot row = 0; row < shard.size(); ++row) {
      if (!model.params.in_subsample(t, shard.rows.ids[row])) continue;
      if (std::ranges::binary_search(shard.removed(), row)) continue;
      NodeIndex at = tree.route([&](std::uint32_t c) { return shard.rows.code(row, c); });
      while (at != node && at != no_node) at = tree[at].parent;
      if (at == node) use(s, row);
    }
  }
}

// What a row records, by these scores, in the trees of the iteration that begins with `first_tree`.
inline std::vector<Gradient> naive_gradients(const ModelState& model, std::size_t shard, Slot row,
                                             std::size_t first_tree,
                                             std::span<const double> scores) {
  const RowTable& rows = model.shards[shard].rows;
  std::vector<double> slopes(scores.size());
  model.loss.slopes(rows.target[row], scores, slopes.data());
  std::vector<Gradient> gradients;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const dither::Key tree = dither::of_tree(model.params.seed, first_tree + k);
    gradients.push_back(
        model.loss.rounded(slopes[k], dither::of(tree, dither::of_row(rows.ids[row]))));
  }
  return gradients;
}

// What a row recorded in a tree, with its weight.
inline Totals recorded(const ModelState& model, std::size_t t, std::size_t shard, Slot row) {
  const std::int64_t weight = model.shards[shard].weight_of(row);
  const Gradient g = model.shards[shard].trees[t].recorded[row];
  const std::int64_t h = model.loss.hessian(g);
  if (!model.loss.weighted) return {g, h, 1};
  return {Loss::weighted_gradient(model.loss.kind, g, weight), h * weight, weight != 0};
}

inline Totals naive_total(const ModelState& model, std::size_t t, NodeIndex node) {
  Totals sum;
  for_each_row(model, t, node, [&](std::size_t s, Slot row) { sum += recorded(model, t, s, row); });
  return sum;
}

// Of the rows that count in a tree: the sum of their squared gradients, with weights.
inline __int128 naive_squares(const ModelState& model, std::size_t t) {
  __int128 sum = 0;
  for_each_row(model, t, 0, [&](std::size_t s, Slot row) {
    const __int128 g = model.shards[s].trees[t].recorded[row];
    sum += g * g * model.shards[s].weight_of(row);
  });
  return sum;
}

// All cells of a node, those of common codes included.
inline std::vector<Totals> naive_histogram(const ModelState& model, std::size_t t, NodeIndex node) {
  std::vector<Totals> cells(model.layout().histogram_size());
  for_each_row(model, t, node, [&](std::size_t s, Slot row) {
    const Totals totals = recorded(model, t, s, row);
    for (std::size_t f = 0; f < model.layout().size(); ++f) {
      const FeatureLayout& feature = model.layout()[f];
      cells[feature.offset + model.shards[s].rows.code(row, feature.column)] += totals;
    }
  });
  return cells;
}

// Calls use(tag of the sums) for the kind of sums that a model holds.
template <class Use>
void for_sums_of(const ModelState& model, Use&& use) {
  model.nodes.holds_packed_sums() ? use(PackedSums()) : use(WideSums());
}

// Compares a histogram, in which the cells of common codes need not be filled in, with a naive one.
template <class Sums>
void check_histogram(const CodeLayout& layout, const Sums* cells,
                     const std::vector<Totals>& expected) {
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const FeatureLayout& feature = layout[f];
    for (std::uint32_t c = 0; c < feature.n_codes; ++c) {
      if (feature.counts_only_differing() && c == feature.common_code) continue;
      CHECK(Totals(cells[feature.offset + c]) == expected[feature.offset + c]);
    }
  }
}

// Compares a cached histogram with a naive one. Cells without rows are not stored.
template <class Sums>
void check_cached(const CodeLayout& layout, const NodeHistogram<Sums>& cached,
                  const std::vector<Totals>& expected) {
  std::map<std::uint32_t, Totals> stored, wanted;
  REQUIRE(cached.plain.size() == layout.plain_size());
  REQUIRE(cached.cells.size() == cached.sums.size());
  for (std::uint32_t c = 0; c < cached.plain.size(); ++c) stored[c] = Totals(cached.plain[c]);
  for (std::size_t i = 0; i < cached.cells.size(); ++i) {
    CHECK(i == 0 || cached.cells[i] > cached.cells[i - 1]);
    stored[cached.cells[i]] = Totals(cached.sums[i]);
  }
  for (std::uint32_t c = 0; c < layout.plain_size(); ++c) wanted[c] = {};
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const FeatureLayout& feature = layout[f];
    for (std::uint32_t c = 0; c < feature.n_codes; ++c) {
      if (feature.counts_only_differing() && c == feature.common_code) continue;
      const std::uint32_t cell = feature.offset + c;
      const bool is_sparse = feature.kind == FeatureLayout::Kind::sparse;
      if (!is_sparse || expected[cell] != Totals{}) wanted[cell] = expected[cell];
    }
  }
  CHECK(stored == wanted);
}

// Checks every sum and every cached histogram of a model against its rows; returns how many
// histograms were compared.
inline std::size_t check_sums(const ModelState& model) {
  std::size_t n_cached = 0;
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    const std::vector<Node>& nodes = model.nodes.tree(t).nodes;
    CHECK(model.nodes[t].squares == naive_squares(model, t));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto index = static_cast<NodeIndex>(i);
      CHECK(nodes[i].sums == naive_total(model, t, index));
      std::visit(
          [&](const auto& histograms) {
            if (histograms.size() <= i || !histograms[i].cached) return;
            ++n_cached;
            check_cached(model.layout(), histograms[i], naive_histogram(model, t, index));
          },
          model.nodes[t].histograms);
    }
  }
  return n_cached;
}

}  // namespace graftboost::testing
