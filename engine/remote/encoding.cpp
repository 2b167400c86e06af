#include "remote/encoding.hpp"

#include <numeric>

namespace graftboost {

// --- rows ----------------------------------------------------------------------------------------

void write_rows(Writer& to, const RowTable& rows) {
  to.put(static_cast<std::uint64_t>(rows.size()));
  to.put_all(rows.cells).put_all(rows.target).put_all(rows.weight).put_all(rows.raw_target);
  to.put_all(rows.raw_weight).put_all(rows.ids);
  to.put(static_cast<std::uint32_t>(rows.has_sparse()));
  if (!rows.has_sparse()) return;
  // Without gaps.
  to.put_all(rows.sparse_count).put_all(rows.rare_count);
  WipedVector<std::uint32_t> entries;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::uint32_t* begin = rows.sparse_entries.data() + rows.sparse_begin[row];
    entries.insert(entries.end(), begin, begin + rows.sparse_count[row] + rows.rare_count[row]);
  }
  to.put_all(entries);
}

RowTable read_rows(Reader& from, const CodeLayout& layout) {
  RowTable rows;
  rows.layout = layout;
  const auto n = static_cast<std::size_t>(from.get<std::uint64_t>());
  rows.cells = from.get_all<Array<std::uint8_t>>();
  rows.target = from.get_all<Array<std::int32_t>>();
  rows.weight = from.get_all<Array<Weight>>();
  rows.raw_target = from.get_all<Array<double>>();
  rows.raw_weight = from.get_all<Array<double>>();
  rows.ids = from.get_all<Array<RowId>>();
  const auto fits = [&](const auto& array) { return array.empty() || array.size() == n; };
  bool valid = rows.cells.size() == n * layout.row_bytes() && rows.target.size() == n &&
               rows.ids.size() == n && fits(rows.weight) && fits(rows.raw_target) &&
               fits(rows.raw_weight);
  if (from.get<std::uint32_t>() != 0) {
    rows.sparse_count = from.get_all<Array<std::uint32_t>>();
    rows.rare_count = from.get_all<Array<std::uint32_t>>();
    rows.sparse_entries = from.get_all<Array<std::uint32_t>>();
    valid = valid && rows.sparse_count.size() == n && rows.rare_count.size() == n;
    rows.sparse_begin.resize(valid ? n : 0);
    std::uint64_t at = 0;
    for (std::size_t row = 0; row < rows.sparse_begin.size(); ++row) {
      rows.sparse_begin[row] = at;
      at += std::uint64_t{rows.sparse_count[row]} + rows.rare_count[row];
    }
    valid = valid && at == rows.sparse_entries.size();
  }
  if (!valid) throw std::invalid_argument("rows in a message have another form than expected");
  rows.n_ = n;
  return rows;
}

FetchedRows copy_rows(const RowShard& shard, bool wide, std::span<const Slot> slots) {
  FetchedRows copy;
  copy.rows.layout = shard.rows.layout;
  copy.rows.append_rows(shard.rows, slots);
  copy.recorded = GradientArray(wide);
  for (const TreeRows& tree : shard.trees) {
    for (const Slot slot : slots) {
      copy.recorded.push_back(tree.recorded[slot]);
      copy.leaves.push_back(tree.leaf_ids[slot]);
    }
  }
  return copy;
}

void append_rows(RowShard& to, const FetchedRows& rows, std::span<const Slot> chosen) {
  const std::size_t first = to.size(), n = rows.rows.size();
  to.rows.append_rows(rows.rows, chosen);
  for (std::size_t t = 0; t < to.trees.size(); ++t) {
    to.trees[t].recorded.resize(to.size());
    to.trees[t].leaf_ids.resize(to.size());
    for (std::size_t i = 0; i < chosen.size(); ++i)
      to.place(t, static_cast<Slot>(first + i), rows.leaves[t * n + chosen[i]],
               rows.recorded[t * n + chosen[i]]);
  }
}

void write_fetched(Writer& to, const FetchedRows& fetched) {
  write_rows(to, fetched.rows);
  to.put(static_cast<std::uint32_t>(fetched.recorded.is_wide));
  fetched.recorded.is_wide ? to.put_all(fetched.recorded.wide)
                           : to.put_all(fetched.recorded.narrow);
  to.put_all(fetched.leaves);
}

FetchedRows read_fetched(Reader& from, const CodeLayout& layout) {
  FetchedRows fetched;
  fetched.rows = read_rows(from, layout);
  fetched.recorded.is_wide = from.get<std::uint32_t>() != 0;
  if (fetched.recorded.is_wide) {
    fetched.recorded.wide = from.get_all<Array<Gradient>>();
  } else {
    fetched.recorded.narrow = from.get_all<Array<NarrowGradient>>();
  }
  fetched.leaves = from.get_all<Array<std::uint16_t>>();
  if (fetched.recorded.size() != fetched.leaves.size() ||
      (fetched.rows.size() == 0 ? !fetched.leaves.empty()
                                : fetched.leaves.size() % fetched.rows.size() != 0))
    throw std::invalid_argument("rows in a message have another form than expected");
  return fetched;
}

// --- bins ----------------------------------------------------------------------------------------

void write_features(Writer& to, std::span<const std::uint32_t> columns,
                    std::span<const Feature> features) {
  to.put_all(columns);
  for (const Feature& feature : features) {
    to.put(feature.n_categories).put_all(feature.edges).put(feature.common_code);
    to.put(feature.common_share).put(static_cast<std::uint8_t>(feature.has_missing));
    to.put(feature.bundle);
  }
}

void read_features(Reader& from, std::vector<std::uint32_t>& columns,
                   std::vector<Feature>& features) {
  columns = from.get_all<std::vector<std::uint32_t>>();
  features.assign(columns.size(), {});
  for (Feature& feature : features) {
    feature.n_categories = from.get<std::uint32_t>();
    feature.edges = from.get_all<std::vector<double>>();
    feature.edges_single = single_edges(feature.edges);
    feature.common_code = from.get<Code>();
    feature.common_share = from.get<double>();
    feature.has_missing = from.get<std::uint8_t>() != 0;
    feature.bundle = from.get<std::int32_t>();
  }
}

void write_bins(Writer& to, const BinMap& bins) {
  to.put(std::uint64_t{bins.n_features()});
  write_features(to, bins.cut().columns(), bins.features());
}

BinMap read_bins(Reader& from) {
  const auto n_features = static_cast<std::size_t>(from.get<std::uint64_t>());
  std::vector<std::uint32_t> columns;
  std::vector<Feature> features;
  read_features(from, columns, features);
  return {n_features, std::move(columns), std::move(features)};
}

// --- trees ---------------------------------------------------------------------------------------

namespace {

struct SentNode {
  NodeIndex left, right, parent;
  std::int32_t leaf;
  Split split;
  double value;
};

}  // namespace

void write_tree(Writer& to, const Tree& tree) {
  std::vector<SentNode> nodes;
  for (const Node& node : tree.nodes)
    nodes.push_back({node.left, node.right, node.parent, node.leaf, node.split, node.value});
  to.put_all(nodes);
}

Tree read_tree(Reader& from) {
  Tree tree;
  for (const SentNode& sent : from.get_all<std::vector<SentNode>>()) {
    Node& node = tree.nodes.emplace_back();
    node.left = sent.left, node.right = sent.right, node.parent = sent.parent;
    node.leaf = sent.leaf, node.split = sent.split, node.value = sent.value;
  }
  tree.index_leaves();
  return tree;
}

bool have_same_structure(const Tree& a, const Tree& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const Node& x, const Node& y) {
    return x.left == y.left && x.right == y.right && x.leaf == y.leaf &&
           (x.is_leaf() || x.split == y.split);
  });
}

// --- parameters ----------------------------------------------------------------------------------

// Field by field: padding would carry whatever memory has there.
void write_loss(Writer& to, const Loss& loss) {
  to.put(loss.kind).put(loss.n_classes).put(loss.centre).put(loss.scale);
  to.put(static_cast<std::uint8_t>(loss.weighted)).put(loss.weight_scale).put(loss.weight_unit);
  to.put(loss.typical_weight);
}

Loss read_loss(Reader& from) {
  Loss loss;
  loss.kind = from.get<LossKind>();
  loss.n_classes = from.get<int>();
  loss.centre = from.get<double>();
  loss.scale = from.get<double>();
  loss.weighted = from.get<std::uint8_t>() != 0;
  loss.weight_scale = from.get<double>();
  loss.weight_unit = from.get<double>();
  loss.typical_weight = from.get<double>();
  return loss;
}

void write_params(Writer& to, const TrainingParams& params) {
  to.put(params.n_estimators).put(params.learning_rate).put(params.max_leaf_nodes);
  to.put(params.min_samples_leaf).put(params.min_hessian).put(params.l2_regularization);
  to.put(params.subsample).put(params.seed).put(static_cast<std::uint8_t>(params.updatable));
}

TrainingParams read_params(Reader& from) {
  TrainingParams params;
  params.n_estimators = from.get<int>();
  params.learning_rate = from.get<double>();
  params.max_leaf_nodes = from.get<int>();
  params.min_samples_leaf = from.get<int>();
  params.min_hessian = from.get<double>();
  params.l2_regularization = from.get<double>();
  params.subsample = from.get<double>();
  params.seed = from.get<std::uint64_t>();
  params.updatable = from.get<std::uint8_t>() != 0;
  return params;
}

void write_leaves(Writer& to, std::span<const std::vector<std::int32_t>> lists) {
  to.put(static_cast<std::uint64_t>(lists.size()));
  for (const std::vector<std::int32_t>& leaves : lists) to.put_all(leaves);
}

std::vector<std::vector<std::int32_t>> read_leaves(Reader& from) {
  std::vector<std::vector<std::int32_t>> lists;
  for (auto n = from.get<std::uint64_t>(); n > 0; --n)
    lists.push_back(from.get_all<std::vector<std::int32_t>>());
  return lists;
}

}  // namespace graftboost
