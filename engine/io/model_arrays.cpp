#include "io/model_arrays.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "io/array_numbers.hpp"

namespace graftboost {
namespace {

class Collector {
 public:
  std::vector<ModelArray> arrays;

  // Values that are computed for the array, which owns them.
  template <class T>
  void make(const std::string& name, std::vector<T> values) {
    auto made = std::make_shared<const std::vector<T>>(std::move(values));
    arrays.push_back({name, number_of<T>(), made->size(), {{made->data(), made->size()}}, made});
  }
  template <class Items, class Of>
  void each(const std::string& name, const Items& items, Of&& of) {
    std::vector<std::remove_cvref_t<decltype(of(items[0]))>> values;
    values.reserve(items.size());
    for (const auto& item : items) values.push_back(of(item));
    make(name, std::move(values));
  }
  // An array of the model, with room for so many elements.
  template <class T>
  void lend(const std::string& name, const Array<T>& values, std::size_t room) {
    arrays.push_back({name,
                      number_of<T>(),
                      std::max(room, values.size()),
                      {{values.data(), values.size()}},
                      {}});
  }
};

std::vector<Node> all_nodes(const ModelState& model) {
  std::vector<Node> nodes;
  for (const TreeNodes& of_tree : model.nodes)
    nodes.insert(nodes.end(), of_tree.tree.nodes.begin(), of_tree.tree.nodes.end());
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

void collect_trees(Collector& to, const ModelState& model, const std::vector<Node>& nodes,
                   bool state) {
  to.make("base_scores", model.base_scores);
  to.make("validation_losses", model.validation_losses);
  to.each("tree_sizes", model.nodes, [](const TreeNodes& nodes) {
    return static_cast<std::uint32_t>(nodes.tree.nodes.size());
  });
  to.each("node_left", nodes, [](const Node& n) { return n.left; });
  to.each("node_right", nodes, [](const Node& n) { return n.right; });
  to.each("node_leaf", nodes, [](const Node& n) { return n.leaf; });
  // The best candidates of leaves follow from the rows, and may not have been evaluated yet.
  // Without the state they are left out, so that equal models have equal arrays; but leaves of
  // deferred rows keep the candidate from before these rows.
  const auto known = [state](const Node& n) {
    return state || !n.is_leaf() || !n.deferred.empty();
  };
  const auto split_of = [&](const Node& n) { return known(n) ? n.split : Split{}; };
  to.each("node_feature", nodes, [&](const Node& n) { return split_of(n).feature; });
  to.each("node_low", nodes, [&](const Node& n) { return split_of(n).low; });
  to.each("node_span", nodes, [&](const Node& n) { return split_of(n).span; });
  to.each("node_gain", nodes, [&](const Node& n) { return known(n) ? n.gain : no_gain; });
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
  const auto added = rows.layout.added();
  if (!rows.has_sparse() && added.empty()) return;
  to.make("row_columns", std::vector<std::uint32_t>(added.begin(), added.end()));
  if (!rows.has_sparse()) return;
  to.lend("row_sparse_begin", rows.sparse_begin, room);
  to.lend("row_sparse_count", rows.sparse_count, room);
  to.lend("row_rare_count", rows.rare_count, room);
  to.lend("row_sparse_entries", rows.sparse_entries,
          with_room(rows.sparse_entries.size(), room > rows.size()));
}

// The high and the low half of a wide integer.
std::array<std::int64_t, 2> halves(__int128 wide) {
  return {static_cast<std::int64_t>(wide >> 64), static_cast<std::int64_t>(wide)};
}

std::vector<std::int64_t> as_integers(const TargetSums& sums) {
  const auto [high, low] = halves(sums.sum);
  std::vector<std::int64_t> values{sums.weight, high, low};
  values.insert(values.end(), sums.classes.begin(), sums.classes.end());
  return values;
}

void collect_deferred(Collector& to, const ModelState& model, const std::vector<Node>& nodes) {
  const DeferredRows& rows = model.deferred;
  to.make("deferred_rows",
          std::vector<std::int64_t>{rows.n_removed, rows.n_added, rows.achieved, rows.settled});
  std::vector<std::int64_t> sums;
  for (const Node& node : nodes)
    sums.insert(sums.end(), {node.deferred.n, node.deferred.recorded, node.deferred.last});
  to.make("node_deferred", std::move(sums));
}

void collect_trees_of_rows(Collector& to, const ModelState& model, std::size_t room) {
  const RowShard& shard = model.shards[0];
  const auto pieces = [&](const std::string& name, Number number, auto&& of) {
    ModelArray array{name, number, room, {}, {}};
    for (const TreeRows& rows : shard.trees) array.pieces.push_back({of(rows), shard.size()});
    // A shard may have no trees yet. The kind of numbers is told by a piece.
    if (shard.trees.empty()) array.pieces.push_back({nullptr, 0}), array.distance = 0;
    to.arrays.push_back(std::move(array));
  };
  to.each("tree_counted", model.nodes,
          [](const TreeNodes& nodes) { return static_cast<std::uint8_t>(nodes.counted); });
  const bool wide = model.params.max_leaf_nodes > 256;
  pieces("tree_leaf_ids", wide ? Number::u16 : Number::u8, [&](const TreeRows& rows) {
    return wide ? static_cast<const void*>(rows.leaf_ids.wide.data()) : rows.leaf_ids.narrow.data();
  });
  const bool wide_gradients = model.loss.records_wide();
  pieces("tree_recorded", wide_gradients ? Number::i32 : Number::i16, [](const TreeRows& rows) {
    return rows.recorded.visit([](const auto* gradients) -> const void* { return gradients; });
  });
}

void collect_histograms(Collector& to, const ModelState& model) {
  std::vector<std::uint32_t> kept_nodes;
  std::vector<std::uint64_t> kept_counts;
  ModelArray plain{"kept_sums", Number::i64, 0, {}, {}};
  ModelArray cells{"kept_sums_cells", Number::u32, 0, {{nullptr, 0}}, {}};
  ModelArray sums{"kept_sums_sparse", Number::i64, 0, {{nullptr, 0}}, {}};
  std::uint32_t first = 0;
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    std::visit(
        [&]<class Sums>(const TreeHistograms<Sums>& kept) {
          for (std::uint32_t i = 0; i < kept.size(); ++i) {
            if (!kept[i].cached) continue;
            kept_nodes.push_back(first + i);
            kept_counts.push_back(kept[i].cells.size());
            plain.pieces.push_back({kept[i].plain.data(), kept[i].plain.size() * numbers_in<Sums>});
            cells.pieces.push_back({kept[i].cells.data(), kept[i].cells.size()});
            sums.pieces.push_back({kept[i].sums.data(), kept[i].sums.size() * numbers_in<Sums>});
          }
        },
        model.nodes[t].histograms);
    first += static_cast<std::uint32_t>(model.nodes.tree(t).nodes.size());
  }
  to.make("kept_nodes", std::move(kept_nodes));
  if (model.layout().plain_size() != 0) to.arrays.push_back(std::move(plain));
  if (model.layout().histogram_size() == model.layout().plain_size()) return;
  to.make("kept_counts", std::move(kept_counts));
  to.arrays.push_back(std::move(cells));
  to.arrays.push_back(std::move(sums));
}

// The length of sparse_entries. Rows that are merged leave the gaps of removed rows behind.
std::size_t n_entries(const RowTable& rows, bool merges) {
  if (!merges) return rows.sparse_entries.size();
  std::size_t n = 0;
  for (std::size_t r = 0; r < rows.sparse_begin.size(); ++r)
    n += std::size_t{rows.sparse_count[r]} + rows.rare_count[r];
  return n;
}

// A copy of a model with all rows in one shard.
ModelState merged(const ModelState& model) {
  ModelState one = model;
  one.shards = Shards();
  RowShard& to = one.shards[0];
  to.rows.layout = model.layout();
  to.trees.resize(model.nodes.size());
  for (const RowShard& shard : model.shards) {
    std::vector<Slot> all(shard.size());
    std::iota(all.begin(), all.end(), Slot{0});
    const std::size_t first = to.size();
    to.rows.append_rows(shard.rows, all);
    for (std::size_t t = 0; t < to.trees.size(); ++t) {
      if (first == 0) {
        to.trees[t].leaf_ids = LeafIds(0, model.params.max_leaf_nodes);
        to.trees[t].recorded = GradientArray(model.loss.records_wide());
      }
      LeafIds& ids = to.trees[t].leaf_ids;
      for (const Slot slot : all) {
        const std::uint16_t leaf = shard.trees[t].leaf_ids[slot];
        if (model.params.max_leaf_nodes <= 256) {
          ids.narrow.push_back(static_cast<std::uint8_t>(leaf));
        } else {
          ids.wide.push_back(leaf);
        }
        to.trees[t].recorded.push_back(shard.trees[t].recorded[slot]);
      }
    }
  }
  // The columns that were added to the layout are saved with the entries, even if no row has one.
  if (!to.rows.has_sparse() && !model.layout().added().empty()) to.rows.start_entries(to.size());
  return one;
}

}  // namespace

std::vector<ModelArray> arrays_of(const ModelState& model, bool state, bool room) {
  if (state && model.shards.size() > 1) {
    const auto one = std::make_shared<const ModelState>(merged(model));
    std::vector<ModelArray> arrays = arrays_of(*one, state, room);
    for (ModelArray& array : arrays)
      if (!array.made) array.made = one;
    return arrays;
  }
  Collector collector;
  collect_bins(collector, *model.bins);
  const std::vector<Node> nodes = all_nodes(model);
  collect_trees(collector, model, nodes, state);
  if (!state) return std::move(collector.arrays);
  std::vector<std::int64_t> sums;
  for (const Node& node : nodes) sums.insert(sums.end(), {node.sums.g, node.sums.h, node.sums.n});
  collector.make("node_sums", std::move(sums));
  collector.make("target_sums", as_integers(model.target_sums));
  std::vector<std::int64_t> squares;
  for (const TreeNodes& of_tree : model.nodes) {
    const auto [high, low] = halves(of_tree.squares);
    squares.insert(squares.end(), {high, low});
  }
  collector.make("tree_squares", std::move(squares));
  if (!model.deferred.empty()) collect_deferred(collector, model, nodes);
  const std::size_t rows = with_room(model.shards.n_rows(), room);
  collect_rows(collector, model.shards[0].rows, rows);
  collect_trees_of_rows(collector, model, rows);
  collect_histograms(collector, model);
  return std::move(collector.arrays);
}

Summary summary_of(const ModelState& model, bool state, bool room) {
  Summary summary;
  summary.loss = model.loss;
  summary.params = model.params;
  summary.n_features = model.bins->n_features();
  summary.packed = !state || model.nodes.holds_packed_sums();
  summary.params.updatable = state;
  if (!state) return summary;
  summary.n_rows = model.shards.n_rows();
  summary.room = with_room(summary.n_rows, room);
  const bool merges = model.shards.size() > 1;
  for (const RowShard& shard : model.shards) summary.n_entries += n_entries(shard.rows, merges);
  return summary;
}

}  // namespace graftboost
