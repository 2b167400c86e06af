#include "io/model_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "data/bundling.hpp"
#include "io/validate_state.hpp"

namespace graftboost {
namespace {

// The deepest tree that is taken from a file: nodes are visited by calls within calls.
constexpr std::int32_t deepest = 10'000;
constexpr std::size_t most_codes = 65'536, most_leaves = 65'536;

template <class T>
constexpr Number number_of() {
  if constexpr (std::same_as<T, std::uint8_t>) return Number::u8;
  if constexpr (std::same_as<T, std::uint16_t>) return Number::u16;
  if constexpr (std::same_as<T, std::uint32_t>) return Number::u32;
  if constexpr (std::same_as<T, std::uint64_t>) return Number::u64;
  if constexpr (std::same_as<T, std::int32_t>) return Number::i32;
  if constexpr (std::same_as<T, std::int64_t>) return Number::i64;
  if constexpr (std::same_as<T, double>) return Number::f64;
}

[[noreturn]] void wrong(const std::string& what) { throw std::invalid_argument(what); }
void require(bool holds, const std::string& what) {
  if (!holds) wrong(what);
}

static_assert(sizeof(Totals) == 3 * sizeof(std::int64_t) && sizeof(PackedSums) == 16, "no padding");
template <class Sums>
constexpr std::size_t numbers_in = sizeof(Sums) / sizeof(std::int64_t);

std::size_t with_room(std::size_t n, bool room) { return n + (room ? room_to_grow(n) : 0); }

// --- from a model to its parts -------------------------------------------------------------------

class Collector {
 public:
  std::vector<Part> parts;

  // Values that are put together for this.
  template <class T>
  void make(const std::string& name, std::vector<T> values) {
    auto made = std::make_shared<const std::vector<T>>(std::move(values));
    parts.push_back({name, number_of<T>(), made->size(), {{made->data(), made->size()}}, made});
  }
  template <class Item, class Of>
  void each(const std::string& name, const std::vector<Item>& items, Of&& of) {
    std::vector<std::remove_cvref_t<decltype(of(items[0]))>> values;
    values.reserve(items.size());
    for (const Item& item : items) values.push_back(of(item));
    make(name, std::move(values));
  }
  // An array of the model, with room for so many elements.
  template <class T>
  void lend(const std::string& name, const Array<T>& values, std::size_t room) {
    parts.push_back({name,
                     number_of<T>(),
                     std::max(room, values.size()),
                     {{values.data(), values.size()}},
                     {}});
  }
};

std::vector<Node> all_nodes(const Forest& forest) {
  std::vector<Node> nodes;
  for (const Tree& tree : forest.trees)
    nodes.insert(nodes.end(), tree.nodes.begin(), tree.nodes.end());
  return nodes;
}

void collect_bins(Collector& to, const BinMap& bins) {
  const std::vector<Feature>& features = bins.features();
  std::vector<double> edges;
  for (const Feature& feature : features)
    edges.insert(edges.end(), feature.edges.begin(), feature.edges.end());
  to.make("bin_columns", bins.cut().columns());
  to.each("bin_categories", features, [](const Feature& f) { return f.n_categories; });
  to.each("bin_edge_counts", features,
          [](const Feature& f) { return static_cast<std::uint32_t>(f.edges.size()); });
  to.make("bin_edges", std::move(edges));
  to.each("bin_common_codes", features, [](const Feature& f) { return f.common_code; });
  to.each("bin_common_shares", features, [](const Feature& f) { return f.common_share; });
  to.each("bin_has_missing", features,
          [](const Feature& f) { return static_cast<std::uint8_t>(f.has_missing); });
  to.each("bin_bundles", features, [](const Feature& f) { return f.bundle; });
}

void collect_trees(Collector& to, const Forest& forest, const std::vector<Node>& nodes) {
  to.make("base_scores", forest.base_scores);
  to.make("validation_losses", forest.validation_losses);
  to.each("tree_sizes", forest.trees,
          [](const Tree& t) { return static_cast<std::uint32_t>(t.nodes.size()); });
  to.each("node_left", nodes, [](const Node& n) { return n.left; });
  to.each("node_right", nodes, [](const Node& n) { return n.right; });
  to.each("node_leaf", nodes, [](const Node& n) { return n.leaf; });
  to.each("node_feature", nodes, [](const Node& n) { return n.split.feature; });
  to.each("node_low", nodes, [](const Node& n) { return n.split.low; });
  to.each("node_span", nodes, [](const Node& n) { return n.split.span; });
  to.each("node_gain", nodes, [](const Node& n) { return n.gain; });
  to.each("node_value", nodes, [](const Node& n) { return n.value; });
}

void collect_rows(Collector& to, const RowTable& rows, std::size_t room) {
  to.lend("row_cells", rows.cells, room * rows.layout.row_bytes());
  to.lend("row_ids", rows.ids, room);
  to.lend("row_target", rows.target, room);
  if (!rows.raw_target.empty()) to.lend("row_raw_target", rows.raw_target, room);
  if (!rows.weight.empty()) {
    to.lend("row_weight", rows.weight, room);
    to.lend("row_raw_weight", rows.raw_weight, room);
  }
  if (!rows.has_sparse()) return;
  const auto added = rows.layout.added();
  to.make("row_columns", std::vector<std::uint32_t>(added.begin(), added.end()));
  to.lend("row_sparse_begin", rows.sparse_begin, room);
  to.lend("row_sparse_count", rows.sparse_count, room);
  to.lend("row_rare_count", rows.rare_count, room);
  to.lend("row_sparse_entries", rows.sparse_entries,
          with_room(rows.sparse_entries.size(), room > rows.size()));
}

std::vector<std::int64_t> as_integers(const TargetSums& sums) {
  std::vector<std::int64_t> values{sums.weight, static_cast<std::int64_t>(sums.sum >> 64),
                                   static_cast<std::int64_t>(sums.sum)};
  values.insert(values.end(), sums.classes.begin(), sums.classes.end());
  return values;
}

void collect_states(Collector& to, const Forest& forest, std::size_t room) {
  const auto pieces = [&](const std::string& name, Number number, auto&& of) {
    Part part{name, number, room, {}, {}};
    for (const TreeState& state : forest.states)
      part.pieces.push_back({of(state), forest.rows.size()});
    to.parts.push_back(std::move(part));
  };
  to.each("tree_counted", forest.states,
          [](const TreeState& s) { return static_cast<std::uint8_t>(s.counted); });
  const bool wide = forest.params.max_leaf_nodes > 256;
  pieces("tree_leaf_ids", wide ? Number::u16 : Number::u8, [&](const TreeState& s) {
    return wide ? static_cast<const void*>(s.leaf_ids.wide.data()) : s.leaf_ids.narrow.data();
  });
  pieces("tree_recorded", Number::i32, [](const TreeState& s) { return s.recorded.data(); });

  std::vector<std::uint32_t> kept_nodes;
  std::vector<std::uint64_t> kept_counts;
  Part plain{"kept_sums", Number::i64, 0, {}, {}};
  Part cells{"kept_sums_cells", Number::u32, 0, {{nullptr, 0}}, {}};
  Part sums{"kept_sums_sparse", Number::i64, 0, {{nullptr, 0}}, {}};
  std::uint32_t first = 0;
  for (std::size_t t = 0; t < forest.states.size(); ++t) {
    std::visit(
        [&]<class Sums>(const KeptSums<Sums>& kept) {
          for (std::uint32_t i = 0; i < kept.size(); ++i) {
            if (!kept[i].kept) continue;
            kept_nodes.push_back(first + i);
            kept_counts.push_back(kept[i].cells.size());
            plain.pieces.push_back({kept[i].plain.data(), kept[i].plain.size() * numbers_in<Sums>});
            cells.pieces.push_back({kept[i].cells.data(), kept[i].cells.size()});
            sums.pieces.push_back({kept[i].sums.data(), kept[i].sums.size() * numbers_in<Sums>});
          }
        },
        forest.states[t].sums);
    first += static_cast<std::uint32_t>(forest.trees[t].nodes.size());
  }
  to.make("kept_nodes", std::move(kept_nodes));
  if (forest.rows.layout.plain_size() != 0) to.parts.push_back(std::move(plain));
  if (forest.rows.layout.histogram_size() == forest.rows.layout.plain_size()) return;
  to.make("kept_counts", std::move(kept_counts));
  to.parts.push_back(std::move(cells));
  to.parts.push_back(std::move(sums));
}

bool holds_packed_sums(const Forest& forest) {
  return forest.states.empty() ||
         std::holds_alternative<KeptSums<PackedSums>>(forest.states[0].sums);
}

// --- from parts to a model -----------------------------------------------------------------------

// Hands out each part as what it is meant to be, or says what is wrong with it.
class Source {
 public:
  Source(const GivenParts& parts, std::shared_ptr<const void> lender)
      : parts_(parts), lender_(std::move(lender)) {}

  bool has(const std::string& name) const { return parts_.contains(name); }

  template <class T>
  std::vector<T> copied(const std::string& name, std::optional<std::size_t> size = {}) const {
    const GivenPart& part = find<T>(name, size);
    std::vector<T> values(part.size);
    if (part.size != 0) std::memcpy(values.data(), part.data, part.size * sizeof(T));
    return values;
  }
  // The first `length` of its elements; there is to be room for `room`.
  template <class T>
  Array<T> lent(const std::string& name, std::size_t length, std::size_t room) const {
    const GivenPart& part = find<T>(name, room);
    return Array<T>(static_cast<T*>(part.data), length, room, lender_);
  }
  // So many arrays one after the other, of elements that are made of numbers of type T.
  template <class T, class Element = T>
  std::vector<Array<Element>> lent_pieces(const std::string& name, std::size_t n,
                                          std::size_t length, std::size_t room) const {
    const GivenPart& part = find<T>(name, {});
    const std::size_t apart = room * (sizeof(Element) / sizeof(T));
    require(apart != 0 ? part.size % apart == 0 && part.size / apart == n : part.size == 0,
            name + " has " + std::to_string(part.size) + " elements");
    std::vector<Array<Element>> pieces;
    for (std::size_t i = 0; i < n; ++i)
      pieces.emplace_back(static_cast<Element*>(part.data) + i * room, length, room, lender_);
    return pieces;
  }
  // Arrays of these lengths one after the other.
  template <class T, class Element = T>
  std::vector<Array<Element>> lent_stretches(const std::string& name,
                                             const std::vector<std::uint64_t>& lengths) const {
    const GivenPart& part = find<T>(name, {});
    constexpr std::size_t numbers = sizeof(Element) / sizeof(T);
    std::vector<Array<Element>> stretches;
    std::size_t at = 0;
    for (const std::uint64_t length : lengths) {
      require(length <= part.size / numbers - at, name + " ends before its last node");
      stretches.emplace_back(static_cast<Element*>(part.data) + at, length, length, lender_);
      at += length;
    }
    require(at * numbers == part.size, name + " goes on after its last node");
    return stretches;
  }

 private:
  template <class T>
  const GivenPart& find(const std::string& name, std::optional<std::size_t> size) const {
    const auto found = parts_.find(name);
    require(found != parts_.end(), name + " is missing");
    const GivenPart& part = found->second;
    require(part.number == number_of<T>(), name + " has numbers of another kind");
    require(
        part.size == 0 || reinterpret_cast<std::uintptr_t>(part.data) % alignof(PackedSums) == 0,
        name + " is not aligned");
    require(!size || part.size == *size, name + " has " + std::to_string(part.size) +
                                             " elements where " + std::to_string(size.value_or(0)) +
                                             " were expected");
    return part;
  }

  const GivenParts& parts_;
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
  require(positive(s.loss.least_hessian), "least_hessian is not positive");
  require(p.n_estimators >= 1, "n_estimators is below 1");
  require(positive(p.learning_rate), "learning_rate is not positive");
  require(p.max_leaf_nodes >= 2 && static_cast<std::size_t>(p.max_leaf_nodes) <= most_leaves,
          "max_leaf_nodes is " + std::to_string(p.max_leaf_nodes));
  require(p.min_samples_leaf >= 1, "min_samples_leaf is below 1");
  require(std::isfinite(p.l2_regularization) && p.l2_regularization >= 0,
          "l2_regularization is negative");
  require(p.subsample > 0 && p.subsample <= 1, "subsample is not above 0 and up to 1");
  require(std::isfinite(s.noise) && s.noise >= 0, "noise is negative");
  require(s.n_rows <= std::numeric_limits<Slot>::max() - room_to_grow(0),
          "n_rows is " + std::to_string(s.n_rows));
  require(s.room == s.n_rows || s.room == with_room(s.n_rows, true),
          "room is " + std::to_string(s.room));
}

// The codes of the features that share a byte have to fit into it.
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

// Columns that ascend and are there.
std::vector<std::uint32_t> take_columns(const Source& source, const std::string& name,
                                        std::size_t n_features, bool ascend) {
  auto columns = source.copied<std::uint32_t>(name);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    require(columns[i] < n_features, name + " has a column that is not there");
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

// Children come after their parents and have one each, so there is no way round in circles.
void check_tree(const Forest& forest, Tree& tree, const std::string& where) {
  const std::size_t n = tree.nodes.size();
  require(n % 2 == 1 && (n + 1) / 2 <= static_cast<std::size_t>(forest.params.max_leaf_nodes),
          where + " has " + std::to_string(n) + " nodes");
  std::vector<bool> used(static_cast<std::size_t>(forest.params.max_leaf_nodes));
  std::vector<std::int32_t> depth(n);
  for (std::size_t i = 0; i < n; ++i) {
    Node& node = tree.nodes[i];
    const std::string here = where + ", node " + std::to_string(i);
    require(i == 0 || node.parent != no_node, here + " has no parent");
    require(std::isfinite(node.value) && std::abs(node.value) <= largest_leaf_value,
            here + " has a value out of range");
    require(!std::isnan(node.gain), here + " has no gain");
    require(node.split.feature < forest.bins->n_features(),
            here + " asks for a feature that is not there");
    const Feature& feature = (*forest.bins)[node.split.feature];
    require(std::uint32_t{node.split.low} + node.split.span < feature.n_codes(),
            here + " has a split beyond the codes of its feature");
    require(feature.categorical() ? node.split.span == 0 : node.split.low <= 1,
            here + " has a split that is none of its feature's");
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

void take_trees(Forest& forest, const Source& source, bool state) {
  const auto sizes = source.copied<std::uint32_t>("tree_sizes");
  const auto k_trees = static_cast<std::size_t>(forest.trees_per_iteration());
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
    Tree& tree = forest.trees.emplace_back();
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
    check_tree(forest, tree, "tree " + std::to_string(t));
    tree.index_leaves();
  }
}

void take_rows(Forest& forest, const Source& source, const Summary& summary) {
  RowTable& rows = forest.rows;
  const std::size_t n = summary.n_rows, room = summary.room, bytes = rows.layout.row_bytes();
  rows.n_ = n;
  rows.cells = source.lent<std::uint8_t>("row_cells", n * bytes, room * bytes);
  rows.ids = source.lent<RowId>("row_ids", n, room);
  rows.target = source.lent<std::int32_t>("row_target", n, room);
  if (forest.loss.kind == LossKind::squared)
    rows.raw_target = source.lent<double>("row_raw_target", n, room);
  if (source.has("row_weight")) {
    rows.weight = source.lent<Weight>("row_weight", n, room);
    rows.raw_weight = source.lent<double>("row_raw_weight", n, room);
  }
  if (!source.has("row_sparse_begin")) return;
  const auto added = take_columns(source, "row_columns", forest.bins->n_features(), false);
  for (const std::uint32_t column : added) {
    require(rows.layout.number_of(column) == ColumnIndex::none, "row_columns has a column twice");
    rows.layout.add({&column, 1});
  }
  require(rows.layout.histogram_size() < RareCell::first, "row_columns has too many columns");
  rows.sparse_begin = source.lent<std::uint64_t>("row_sparse_begin", n, room);
  rows.sparse_count = source.lent<std::uint32_t>("row_sparse_count", n, room);
  rows.rare_count = source.lent<std::uint32_t>("row_rare_count", n, room);
  rows.sparse_entries =
      source.lent<std::uint32_t>("row_sparse_entries", summary.n_entries,
                                 with_room(summary.n_entries, summary.room > summary.n_rows));
}

void take_target_sums(Forest& forest, const Source& source) {
  forest.target_sums = TargetSums(forest.loss.n_classes);
  auto& classes = forest.target_sums.classes;
  const auto values = source.copied<std::int64_t>("target_sums", 3 + classes.size());
  forest.target_sums.weight = values[0];
  forest.target_sums.sum = (static_cast<__int128>(values[1]) << 64) |
                           static_cast<__int128>(static_cast<std::uint64_t>(values[2]));
  std::copy(values.begin() + 3, values.end(), classes.begin());
  for (const std::int64_t weight : values)
    require(&weight == &values[2] || (weight > -largest_sum && weight < largest_sum),
            "target_sums has a sum out of range");
}

template <class Sums>
void take_kept_sums(Forest& forest, const Source& source) {
  const CodeLayout& layout = forest.rows.layout;
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
  for (std::size_t t = 0; t < forest.trees.size(); ++t) {
    const std::size_t n = forest.trees[t].nodes.size();
    KeptSums<Sums> kept(n);
    for (; k < nodes.size() && nodes[k] < first + n; ++k) {
      require(nodes[k] >= first && (k == 0 || nodes[k] > nodes[k - 1]),
              "kept_nodes does not ascend");
      NodeSums<Sums>& node = kept[nodes[k] - first];
      node.kept = true;
      node.plain = std::move(plain[k]);
      node.cells = std::move(cells[k]);
      node.sums = std::move(sums[k]);
    }
    forest.states[t].sums = std::move(kept);
    forest.states[t].watches.resize(n);
    first += n;
  }
  require(k == nodes.size(), "kept_nodes has a node that is not there");
}

void take_states(Forest& forest, const Source& source, const Summary& summary) {
  const std::size_t n_trees = forest.trees.size(), n = summary.n_rows, room = summary.room;
  const auto counted = source.copied<std::uint8_t>("tree_counted", n_trees);
  auto recorded = source.lent_pieces<Gradient>("tree_recorded", n_trees, n, room);
  forest.states.resize(n_trees);
  for (std::size_t t = 0; t < n_trees; ++t) {
    forest.states[t].counted = counted[t] != 0;
    forest.states[t].recorded = std::move(recorded[t]);
  }
  if (forest.params.max_leaf_nodes <= 256) {
    auto ids = source.lent_pieces<std::uint8_t>("tree_leaf_ids", n_trees, n, room);
    for (std::size_t t = 0; t < n_trees; ++t) forest.states[t].leaf_ids.narrow = std::move(ids[t]);
  } else {
    auto ids = source.lent_pieces<std::uint16_t>("tree_leaf_ids", n_trees, n, room);
    for (std::size_t t = 0; t < n_trees; ++t) forest.states[t].leaf_ids.wide = std::move(ids[t]);
  }
  summary.packed ? take_kept_sums<PackedSums>(forest, source)
                 : take_kept_sums<WideSums>(forest, source);
}

}  // namespace

std::vector<Part> parts_of(const Forest& forest, bool state, bool room) {
  Collector collector;
  collect_bins(collector, *forest.bins);
  const std::vector<Node> nodes = all_nodes(forest);
  collect_trees(collector, forest, nodes);
  if (!state) return std::move(collector.parts);
  std::vector<std::int64_t> sums;
  for (const Node& node : nodes) sums.insert(sums.end(), {node.sums.g, node.sums.h, node.sums.n});
  collector.make("node_sums", std::move(sums));
  collector.make("target_sums", as_integers(forest.target_sums));
  const std::size_t rows = with_room(forest.rows.size(), room);
  collect_rows(collector, forest.rows, rows);
  collect_states(collector, forest, rows);
  return std::move(collector.parts);
}

Summary summary_of(const Forest& forest, bool state, bool room) {
  Summary summary;
  summary.loss = forest.loss;
  summary.params = forest.params;
  summary.noise = forest.noise;
  summary.n_features = forest.bins->n_features();
  summary.packed = holds_packed_sums(forest);
  summary.params.updatable = state;
  summary.packed |= !state;
  if (!state) return summary;
  summary.n_rows = forest.rows.size();
  summary.room = with_room(summary.n_rows, room);
  summary.n_entries = forest.rows.sparse_entries.size();
  return summary;
}

std::unique_ptr<Forest> put_together(const Summary& summary, const GivenParts& parts,
                                     std::shared_ptr<const void> lender) {
  const Source source(parts, std::move(lender));
  check_summary(summary);
  auto made = std::make_unique<Forest>();
  Forest& forest = *made;
  forest.loss = summary.loss;
  forest.params = summary.params;
  forest.noise = summary.noise;
  forest.bins = std::make_shared<const BinMap>(take_bins(source, summary.n_features));
  forest.rows.layout = CodeLayout(*forest.bins);
  forest.base_scores =
      source.copied<double>("base_scores", static_cast<std::size_t>(forest.trees_per_iteration()));
  for (const double score : forest.base_scores)
    require(std::isfinite(score), "base_scores are not finite");
  forest.validation_losses = source.copied<double>("validation_losses");
  take_trees(forest, source, summary.params.updatable);
  require(forest.params.n_estimators == forest.n_iterations(),
          "n_estimators is " + std::to_string(forest.params.n_estimators));
  if (!summary.params.updatable) return made;
  require(summary.n_rows > 0, "n_rows is 0");
  take_rows(forest, source, summary);
  require(forest.loss.weighted == !forest.rows.weight.empty(), "weighted does not match the rows");
  require(!summary.packed || !forest.loss.weighted, "packed sums cannot hold weights");
  require(!summary.packed || static_cast<std::int64_t>(summary.n_rows) <= PackedSums::most_rows,
          "packed sums cannot hold so many rows");
  take_target_sums(forest, source);
  take_states(forest, source, summary);
  return made;
}

}  // namespace graftboost
