#include "remote/node_half.hpp"

#include <utility>
#include <vector>

#include "remote/encoding.hpp"

namespace graftboost {
namespace {

// A node field by field: there is no padding that would carry whatever memory has there.
struct StoredNode {
  NodeIndex left, right, parent;
  std::int32_t leaf;
  Split split;
  double gain, value;
  Totals sums;
  DeferredSums deferred;
};
static_assert(sizeof(StoredNode) == 88);

template <class Sums>
void set_empty_histograms(TreeNodes& nodes) {
  nodes.histograms = TreeHistograms<Sums>(nodes.tree.nodes.size());
}

}  // namespace

Bytes write_node_half(const ModelState& model) {
  return write_node_half(model, model.layout().added());
}

Bytes write_node_half(const ModelState& model, std::span<const std::uint32_t> added_columns) {
  Writer to;
  write_loss(to, model.loss);
  write_params(to, model.params);
  to.put(static_cast<std::uint8_t>(model.nodes.holds_packed_sums()));
  to.put_all(added_columns).put_all(model.base_scores).put_all(model.validation_losses);
  to.put_all(model.target_sums.classes).put(model.target_sums.sum).put(model.target_sums.weight);
  to.put(model.deferred);
  to.put(std::uint64_t{model.nodes.size()});
  for (const TreeNodes& nodes : model.nodes) {
    std::vector<StoredNode> stored;
    for (const Node& n : nodes.tree.nodes) {
      stored.push_back(
          {n.left, n.right, n.parent, n.leaf, n.split, n.gain, n.value, n.sums, n.deferred});
    }
    to.put_all(stored).put(nodes.squares).put(static_cast<std::uint8_t>(nodes.counted));
  }
  return to.take();
}

ModelState read_node_half(std::shared_ptr<const BinMap> bins, std::span<const std::uint8_t> bytes) {
  Reader from(bytes);
  ModelState model;
  model.bins = std::move(bins);
  model.loss = read_loss(from);
  model.params = read_params(from);
  const bool packed = from.get<std::uint8_t>() != 0;
  CodeLayout layout(*model.bins);
  layout.add(from.get_all<std::vector<std::uint32_t>>());
  model.set_layout(layout);
  model.base_scores = from.get_all<std::vector<double>>();
  model.validation_losses = from.get_all<std::vector<double>>();
  model.target_sums.classes = from.get_all<std::vector<std::int64_t>>();
  model.target_sums.sum = from.get<__int128>();
  model.target_sums.weight = from.get<std::int64_t>();
  model.deferred = from.get<DeferredRows>();
  const auto n_trees = from.get<std::uint64_t>();
  for (std::uint64_t t = 0; t < n_trees; ++t) {
    TreeNodes& nodes = model.nodes.append();
    for (const StoredNode& n : from.get_all<std::vector<StoredNode>>())
      nodes.tree.nodes.push_back(
          {n.left, n.right, n.parent, n.leaf, n.split, n.gain, n.value, n.sums, n.deferred});
    nodes.tree.index_leaves();
    nodes.squares = from.get<__int128>();
    nodes.counted = from.get<std::uint8_t>() != 0;
    packed ? set_empty_histograms<PackedSums>(nodes) : set_empty_histograms<WideSums>(nodes);
    nodes.bounds.resize(nodes.tree.nodes.size());
    TreeRows& rows = model.shards[0].trees.emplace_back();
    rows.leaf_ids = LeafIds(0, model.params.max_leaf_nodes);
    rows.recorded = GradientArray(model.loss.records_wide());
  }
  return model;
}

}  // namespace graftboost
