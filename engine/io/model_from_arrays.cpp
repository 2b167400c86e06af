// Makes a model from arrays. They may come from anywhere, so everything is checked.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "data/bundling.hpp"
#include "io/array_numbers.hpp"
#include "io/model_arrays.hpp"

namespace graftboost {
namespace {

// The deepest tree that is accepted: nodes are visited by nested calls.
constexpr std::int32_t deepest = 10'000;
constexpr std::size_t most_codes = 65'536, most_leaves = 65'536;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }
void require(bool holds, const std::string& otherwise) {
  if (!holds) refuse(otherwise);
}

// Returns arrays with the expected type and length, or throws.
class Source {
 public:
  Source(const GivenArrays& arrays, std::shared_ptr<const void> lender)
      : arrays_(arrays), lender_(std::move(lender)) {}

  bool has(const std::string& name) const { return arrays_.contains(name); }

  template <class T>
  std::vector<T> copied(const std::string& name, std::optional<std::size_t> size = {}) const {
    const GivenArray& array = find<T>(name, size);
    std::vector<T> values(array.size);
    if (array.size != 0) std::memcpy(values.data(), array.data, array.size * sizeof(T));
    return values;
  }
  // The first `length` elements of an array with room for `room`; used in place.
  template <class T>
  Array<T> lent(const std::string& name, std::size_t length, std::size_t room) const {
    const GivenArray& array = find<T>(name, room);
    return Array<T>(static_cast<T*>(array.data), length, room, lender_);
  }
  // n consecutive arrays, whose elements consist of numbers of type T.
  template <class T, class Element = T>
  std::vector<Array<Element>> lent_pieces(const std::string& name, std::size_t n,
                                          std::size_t length, std::size_t room) const {
    const GivenArray& array = find<T>(name, {});
    const std::size_t apart = room * (sizeof(Element) / sizeof(T));
    require(apart != 0 ? array.size % apart == 0 && array.size / apart == n : array.size == 0,
            name + " has " + std::to_string(array.size) + " elements");
    std::vector<Array<Element>> pieces;
    for (std::size_t i = 0; i < n; ++i)
      pieces.emplace_back(static_cast<Element*>(array.data) + i * room, length, room, lender_);
    return pieces;
  }
  // Consecutive arrays of these lengths.
  template <class T, class Element = T>
  std::vector<Array<Element>> lent_stretches(const std::string& name,
                                             const std::vector<std::uint64_t>& lengths) const {
    const GivenArray& array = find<T>(name, {});
    constexpr std::size_t numbers = sizeof(Element) / sizeof(T);
    std::vector<Array<Element>> stretches;
    std::size_t at = 0;
    for (const std::uint64_t length : lengths) {
      require(length <= array.size / numbers - at, name + " ends before its last node");
      stretches.emplace_back(static_cast<Element*>(array.data) + at, length, length, lender_);
      at += length;
    }
    require(at * numbers == array.size, name + " goes on after its last node");
    return stretches;
  }

 private:
  template <class T>
  const GivenArray& find(const std::string& name, std::optional<std::size_t> size) const {
    const auto found = arrays_.find(name);
    require(found != arrays_.end(), name + " is missing");
    const GivenArray& array = found->second;
    require(array.number == number_of<T>(), name + " has numbers of another kind");
    require(
        array.size == 0 || reinterpret_cast<std::uintptr_t>(array.data) % alignof(PackedSums) == 0,
        name + " is not aligned");
    require(!size || array.size == *size, name + " has " + std::to_string(array.size) +
                                              " elements where " +
                                              std::to_string(size.value_or(0)) + " were expected");
    return array;
  }

  const GivenArrays& arrays_;
  std::shared_ptr<const void> lender_;
};

void check_summary(const Summary& s) {
  const auto positive = [](double x) { return std::isfinite(x) && x > 0; };
  const TrainingParams& p = s.params;
  const int n_classes = s.loss.n_classes;
  const bool fits = s.loss.kind == LossKind::squared    ? n_classes == 1
                    : s.loss.kind == LossKind::logistic ? n_classes == 2
                                                        : n_classes >= 2;
  require(fits, "n_classes is " + std::to_string(n_classes));
  require(std::isfinite(s.loss.centre), "centre is not finite");
  require(positive(s.loss.scale), "scale is not positive");
  require(positive(s.loss.weight_scale), "weight_scale is not positive");
  require(positive(s.loss.weight_unit), "weight_unit is not positive");
  require(positive(s.loss.typical_weight), "typical_weight is not positive");
  require(p.n_estimators >= 1, "n_estimators is below 1");
  require(positive(p.learning_rate), "learning_rate is not positive");
  require(p.max_leaf_nodes >= 2 && static_cast<std::size_t>(p.max_leaf_nodes) <= most_leaves,
          "max_leaf_nodes is " + std::to_string(p.max_leaf_nodes));
  require(p.min_samples_leaf >= 1, "min_samples_leaf is below 1");
  require(std::isfinite(p.min_hessian) && p.min_hessian >= 0, "min_hessian is negative");
  require(std::isfinite(p.l2_regularization) && p.l2_regularization >= 0,
          "l2_regularization is negative");
  require(p.subsample > 0 && p.subsample <= 1, "subsample is not above 0 and up to 1");
  require(s.n_rows <= std::numeric_limits<Slot>::max() - room_to_grow(0),
          "n_rows is " + std::to_string(s.n_rows));
  require(s.room == s.n_rows || s.room == with_room(s.n_rows, true),
          "room is " + std::to_string(s.room));
}

// The codes of all features of a bundle must fit into one byte.
void check_bundles(const std::vector<Feature>& features) {
  std::vector<std::size_t> features_of(features.size()), codes(features.size());
  std::int32_t last = -1;
  for (const Feature& feature : features) {
    if (feature.bundle == -1) continue;
    require(feature.bundle >= 0 && static_cast<std::size_t>(feature.bundle) < features.size(),
            "bin_bundles has " + std::to_string(feature.bundle));
    ++features_of[static_cast<std::size_t>(feature.bundle)];
    codes[static_cast<std::size_t>(feature.bundle)] += BundledCodes(feature).n;
    last = std::max(last, feature.bundle);
  }
  for (std::size_t b = 0; b < static_cast<std::size_t>(last + 1); ++b)
    require(features_of[b] > 0 && codes[b] <= most_bundled_codes,
            "bin_bundles has a bundle that does not fit a byte");
}

// Column numbers that exist and, if required, ascend.
std::vector<std::uint32_t> take_columns(const Source& source, const std::string& name,
                                        std::size_t n_features, bool ascend) {
  auto columns = source.copied<std::uint32_t>(name);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    require(columns[i] < n_features, name + " has a column that does not exist");
    require(!ascend || i == 0 || columns[i] > columns[i - 1], name + " does not ascend");
  }
  return columns;
}

BinMap take_bins(const Source& source, std::size_t n_features) {
  require(n_features > 0 && n_features < most_columns,
          "n_features is " + std::to_string(n_features));
  auto columns = take_columns(source, "bin_columns", n_features, true);
  const std::size_t n = columns.size();
  const auto categories = source.copied<std::uint32_t>("bin_categories", n);
  const auto counts = source.copied<std::uint32_t>("bin_edge_counts", n);
  const auto edges = source.copied<double>("bin_edges");
  const auto common_codes = source.copied<Code>("bin_common_codes", n);
  const auto common_shares = source.copied<double>("bin_common_shares", n);
  const auto has_missing = source.copied<std::uint8_t>("bin_has_missing", n);
  const auto bundles = source.copied<std::int32_t>("bin_bundles", n);
  std::vector<Feature> features(n);
  std::size_t at = 0, n_codes = 0;
  for (std::size_t f = 0; f < n; ++f) {
    const std::string where = " of feature " + std::to_string(columns[f]);
    Feature& feature = features[f];
    require(counts[f] <= edges.size() - at, "bin_edges end before those" + where);
    require(categories[f] == 0 || counts[f] == 0,
            "bin_edge_counts" + where + ": it is categorical");
    require(std::max(categories[f], counts[f]) <= most_codes - 2, "too many codes" + where);
    feature.n_categories = categories[f];
    feature.edges.assign(edges.begin() + static_cast<std::ptrdiff_t>(at),
                         edges.begin() + static_cast<std::ptrdiff_t>(at + counts[f]));
    at += counts[f];
    for (std::size_t i = 0; i < feature.edges.size(); ++i) {
      require(
          std::isfinite(feature.edges[i]) && (i == 0 || feature.edges[i] > feature.edges[i - 1]),
          "bin_edges" + where + " do not ascend");
    }
    feature.edges_single = single_edges(feature.edges);
    feature.common_code = common_codes[f];
    feature.common_share = common_shares[f];
    feature.has_missing = has_missing[f] != 0;
    feature.bundle = bundles[f];
    require(feature.common_code < feature.n_codes(), "bin_common_codes" + where + ": no such code");
    require(feature.common_share >= 0 && feature.common_share <= 1,
            "bin_common_shares" + where + ": not from 0 to 1");
    n_codes += feature.n_codes() + 1;
  }
  require(at == edges.size(), "bin_edges has more than the features' edges");
  require(n_codes < RareCell::first, "the features have too many codes");
  check_bundles(features);
  return BinMap(n_features, std::move(columns), std::move(features));
}

// Every child comes after its only parent, so trees have no cycles.
void check_tree(const ModelState& model, Tree& tree, const std::string& where) {
  const std::size_t n = tree.nodes.size();
  require(n % 2 == 1 && (n + 1) / 2 <= static_cast<std::size_t>(model.params.max_leaf_nodes),
          where + " has " + std::to_string(n) + " nodes");
  std::vector<bool> used(static_cast<std::size_t>(model.params.max_leaf_nodes));
  std::vector<std::int32_t> depth(n);
  for (std::size_t i = 0; i < n; ++i) {
    Node& node = tree.nodes[i];
    const std::string here = where + ", node " + std::to_string(i);
    require(i == 0 || node.parent != no_node, here + " has no parent");
    require(std::isfinite(node.value) && std::abs(node.value) <= largest_leaf_value,
            here + " has a value out of range");
    require(!std::isnan(node.gain), here + " has no gain");
    require(node.split.feature < model.bins->n_features(),
            here + " asks for a feature that does not exist");
    const Feature& feature = (*model.bins)[node.split.feature];
    require(std::uint32_t{node.split.low} + node.split.span < feature.n_codes(),
            here + " has a split beyond the codes of its feature");
    require(feature.categorical() ? node.split.span == 0 : node.split.low <= 1,
            here + " has a split that its feature does not have");
    if (node.is_leaf()) {
      require(node.right == no_node, here + " has one child");
      require(node.leaf >= 0 && static_cast<std::size_t>(node.leaf) < used.size() &&
                  !used[static_cast<std::size_t>(node.leaf)],
              here + " has a leaf id that is taken or out of range");
      used[static_cast<std::size_t>(node.leaf)] = true;
      continue;
    }
    require(node.leaf == -1, here + " is split and has a leaf id");
    require(depth[i] < deepest, where + " is more than " + std::to_string(deepest) + " deep");
    for (const NodeIndex child : {node.left, node.right}) {
      const auto c = static_cast<std::size_t>(child);
      require(child > static_cast<NodeIndex>(i) && c < n && tree.nodes[c].parent == no_node,
              here + " has a child that is out of range or not its own");
      tree.nodes[c].parent = static_cast<NodeIndex>(i);
      depth[c] = depth[i] + 1;
    }
  }
}

void take_trees(ModelState& model, const Source& source, bool state) {
  const auto sizes = source.copied<std::uint32_t>("tree_sizes");
  const auto k_trees = static_cast<std::size_t>(model.trees_per_iteration());
  require(sizes.size() % k_trees == 0, "tree_sizes does not have a tree for each class");
  std::size_t n = 0;
  for (const std::uint32_t size : sizes) n += size;
  const auto left = source.copied<std::int32_t>("node_left", n);
  const auto right = source.copied<std::int32_t>("node_right", n);
  const auto leaf = source.copied<std::int32_t>("node_leaf", n);
  const auto feature = source.copied<std::uint32_t>("node_feature", n);
  const auto low = source.copied<Code>("node_low", n);
  const auto span = source.copied<Code>("node_span", n);
  const auto gain = source.copied<double>("node_gain", n);
  const auto value = source.copied<double>("node_value", n);
  const auto sums =
      state ? source.copied<std::int64_t>("node_sums", 3 * n) : std::vector<std::int64_t>(3 * n);
  std::size_t i = 0;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    Tree& tree = model.nodes.append().tree;
    for (const std::size_t end = i + sizes[t]; i < end; ++i) {
      tree.nodes.push_back({left[i],
                            right[i],
                            no_node,
                            leaf[i],
                            {feature[i], low[i], span[i]},
                            gain[i],
                            value[i],
                            {sums[3 * i], sums[3 * i + 1], sums[3 * i + 2]}});
    }
    check_tree(model, tree, "tree " + std::to_string(t));
    tree.index_leaves();
  }
}

void take_rows(ModelState& model, const Source& source, const Summary& summary, bool is_shard) {
  RowTable& rows = model.shards[0].rows;
  const std::size_t n = summary.n_rows, room = summary.room, bytes = rows.layout.row_bytes();
  rows.n_ = n;
  rows.cells = source.lent<std::uint8_t>("row_cells", n * bytes, room * bytes);
  rows.ids = source.lent<RowId>("row_ids", n, room);
  rows.target = source.lent<std::int32_t>("row_target", n, room);
  if (model.loss.kind == LossKind::squared && (!is_shard || n != 0))
    rows.raw_target = source.lent<double>("row_raw_target", n, room);
  if (source.has("row_weight")) {
    rows.weight = source.lent<Weight>("row_weight", n, room);
    rows.raw_weight = source.lent<double>("row_raw_weight", n, room);
  }
  const bool has_sparse = source.has("row_sparse_begin");
  // A shard may have a layout for sparse rows, and none of them.
  if (!has_sparse && !(is_shard && source.has("row_columns"))) return;
  const auto added = take_columns(source, "row_columns", model.bins->n_features(), false);
  for (const std::uint32_t column : added) {
    require(rows.layout.number_of(column) == ColumnIndex::none, "row_columns has a column twice");
    rows.layout.add({&column, 1});
  }
  require(rows.layout.histogram_size() < RareCell::first, "row_columns has too many columns");
  if (!has_sparse) return;
  rows.sparse_begin = source.lent<std::uint64_t>("row_sparse_begin", n, room);
  rows.sparse_count = source.lent<std::uint32_t>("row_sparse_count", n, room);
  rows.rare_count = source.lent<std::uint32_t>("row_rare_count", n, room);
  rows.sparse_entries =
      source.lent<std::uint32_t>("row_sparse_entries", summary.n_entries,
                                 with_room(summary.n_entries, summary.room > summary.n_rows));
}

__int128 from_halves(std::int64_t high, std::int64_t low) {
  return (static_cast<__int128>(high) << 64) |
         static_cast<__int128>(static_cast<std::uint64_t>(low));
}

void take_squares(ModelState& model, const Source& source) {
  const auto halves = source.copied<std::int64_t>("tree_squares", 2 * model.nodes.size());
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    model.nodes[t].squares = from_halves(halves[2 * t], halves[2 * t + 1]);
    // No sum of weights times squares is larger, and rows can be added without an overflow.
    require(halves[2 * t] >= 0 && halves[2 * t] < largest_sum,
            "tree_squares has a sum out of range");
  }
}

// Rows whose regrowing is deferred, if there are any. A node with some follows one with some, and
// no sum is beyond what DeferredSums keeps.
void take_deferred(ModelState& model, const Source& source) {
  if (!source.has("deferred_rows") && !source.has("node_deferred")) return;
  const auto rows = source.copied<std::int64_t>("deferred_rows", 4);
  for (const std::int64_t number : rows)
    require(number > -largest_sum && number < largest_sum, "deferred_rows is out of range");
  require(rows[0] >= 0 && rows[1] >= 0 && rows[0] + rows[1] > 0, "deferred_rows has no rows");
  model.deferred = {rows[0], rows[1], rows[2], rows[3]};
  std::size_t n_nodes = 0;
  for (const TreeNodes& nodes : model.nodes) n_nodes += nodes.tree.nodes.size();
  const auto sums = source.copied<std::int64_t>("node_deferred", 3 * n_nodes);
  for (const std::int64_t sum : sums)
    require(sum >= 0 && sum <= DeferredSums::most, "node_deferred has a sum out of range");
  std::size_t i = 0;
  for (TreeNodes& nodes : model.nodes) {
    for (Node& node : nodes.tree.nodes) {
      node.deferred = {sums[i], sums[i + 1], sums[i + 2]};
      i += 3;
      require(node.deferred.empty()
                  ? node.deferred == DeferredSums{}
                  : node.parent == no_node || !nodes.tree[node.parent].deferred.empty(),
              "node_deferred has a node without the rows that its sums are of");
    }
  }
}

void take_target_sums(ModelState& model, const Source& source) {
  model.target_sums = TargetSums(model.loss.n_classes);
  auto& classes = model.target_sums.classes;
  const auto values = source.copied<std::int64_t>("target_sums", 3 + classes.size());
  model.target_sums.weight = values[0];
  model.target_sums.sum = from_halves(values[1], values[2]);
  std::copy(values.begin() + 3, values.end(), classes.begin());
  for (const std::int64_t weight : values)
    require(&weight == &values[2] || (weight > -largest_sum && weight < largest_sum),
            "target_sums has a sum out of range");
}

template <class Sums>
void take_histograms(ModelState& model, const Source& source) {
  const CodeLayout& layout = model.layout();
  const std::size_t size = layout.plain_size();
  const auto nodes = source.copied<std::uint32_t>("kept_nodes");
  std::vector<Array<Sums>> plain(nodes.size());
  if (size != 0)
    plain = source.lent_pieces<std::int64_t, Sums>("kept_sums", nodes.size(), size, size);
  std::vector<Array<std::uint32_t>> cells(nodes.size());
  std::vector<Array<Sums>> sums(nodes.size());
  if (layout.histogram_size() != size) {
    const auto counts = source.copied<std::uint64_t>("kept_counts", nodes.size());
    cells = source.lent_stretches<std::uint32_t>("kept_sums_cells", counts);
    sums = source.lent_stretches<std::int64_t, Sums>("kept_sums_sparse", counts);
  }
  std::size_t k = 0, first = 0;
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    const std::size_t n = model.nodes.tree(t).nodes.size();
    TreeHistograms<Sums> kept(n);
    for (; k < nodes.size() && nodes[k] < first + n; ++k) {
      require(nodes[k] >= first && (k == 0 || nodes[k] > nodes[k - 1]),
              "kept_nodes does not ascend");
      NodeHistogram<Sums>& node = kept[nodes[k] - first];
      node.cached = true;
      node.plain = std::move(plain[k]);
      node.cells = std::move(cells[k]);
      node.sums = std::move(sums[k]);
    }
    model.nodes[t].histograms = std::move(kept);
    model.nodes[t].bounds.resize(n);
    first += n;
  }
  require(k == nodes.size(), "kept_nodes has a node that does not exist");
}

void take_trees_of_rows(ModelState& model, const Source& source, const Summary& summary) {
  const std::size_t n_trees = model.nodes.size(), n = summary.n_rows, room = summary.room;
  const auto counted = source.copied<std::uint8_t>("tree_counted", n_trees);
  std::vector<TreeRows>& trees = model.shards[0].trees;
  trees.resize(n_trees);
  for (std::size_t t = 0; t < n_trees; ++t) {
    model.nodes[t].counted = counted[t] != 0;
    trees[t].recorded = GradientArray(model.loss.records_wide());
    trees[t].leaf_ids = LeafIds(0, model.params.max_leaf_nodes);
  }
  if (model.loss.records_wide()) {
    auto recorded = source.lent_pieces<Gradient>("tree_recorded", n_trees, n, room);
    for (std::size_t t = 0; t < n_trees; ++t) trees[t].recorded.wide = std::move(recorded[t]);
  } else {
    auto recorded = source.lent_pieces<NarrowGradient>("tree_recorded", n_trees, n, room);
    for (std::size_t t = 0; t < n_trees; ++t) trees[t].recorded.narrow = std::move(recorded[t]);
  }
  if (model.params.max_leaf_nodes <= 256) {
    auto ids = source.lent_pieces<std::uint8_t>("tree_leaf_ids", n_trees, n, room);
    for (std::size_t t = 0; t < n_trees; ++t) trees[t].leaf_ids.narrow = std::move(ids[t]);
  } else {
    auto ids = source.lent_pieces<std::uint16_t>("tree_leaf_ids", n_trees, n, room);
    for (std::size_t t = 0; t < n_trees; ++t) trees[t].leaf_ids.wide = std::move(ids[t]);
  }
  summary.packed ? take_histograms<PackedSums>(model, source)
                 : take_histograms<WideSums>(model, source);
}

// What holds for a model need not hold for a shard: it may have no rows, no trees yet, or weights
// whose scale is not known yet.
ModelState assemble(const Summary& summary, const GivenArrays& arrays,
                    std::shared_ptr<const void> lender, bool is_shard) {
  const Source source(arrays, std::move(lender));
  check_summary(summary);
  ModelState model;
  model.loss = summary.loss;
  model.params = summary.params;
  model.bins = std::make_shared<const BinMap>(take_bins(source, summary.n_features));
  model.set_layout(CodeLayout(*model.bins));
  model.base_scores =
      source.copied<double>("base_scores", static_cast<std::size_t>(model.trees_per_iteration()));
  for (const double score : model.base_scores)
    require(std::isfinite(score), "base_scores are not finite");
  model.validation_losses = source.copied<double>("validation_losses");
  take_trees(model, source, summary.params.updatable);
  require(is_shard || model.params.n_estimators == model.n_iterations(),
          "n_estimators is " + std::to_string(model.params.n_estimators));
  if (!summary.params.updatable) return model;
  require(is_shard || summary.n_rows > 0, "n_rows is 0");
  take_rows(model, source, summary, is_shard);
  require(is_shard || model.loss.weighted == !model.shards[0].rows.weight.empty(),
          "weighted does not match the rows");
  require(is_shard || !summary.packed || !model.loss.weighted, "packed sums cannot hold weights");
  require(is_shard || !summary.packed ||
              static_cast<std::int64_t>(summary.n_rows) <= PackedSums::most_rows,
          "packed sums cannot hold so many rows");
  take_target_sums(model, source);
  take_squares(model, source);
  take_deferred(model, source);
  take_trees_of_rows(model, source, summary);
  return model;
}

}  // namespace

ModelState model_from(const Summary& summary, const GivenArrays& arrays,
                      std::shared_ptr<const void> lender) {
  return assemble(summary, arrays, std::move(lender), false);
}

ModelState shard_from(const Summary& summary, const GivenArrays& arrays,
                      std::shared_ptr<const void> lender) {
  return assemble(summary, arrays, std::move(lender), true);
}

}  // namespace graftboost
