#include "model/rows_by_node.hpp"

namespace graftboost {

RowsByNode::RowsByNode(const ModelState& model, std::size_t t)
    : model_(model), t_(t), leaf_ranges_(model.nodes.tree(t).nodes.size()) {
  const Tree& tree = model.nodes.tree(t);
  std::vector<std::int32_t> leaves;
  const auto visit = [&](auto&& self, NodeIndex i) -> void {
    auto& range = leaf_ranges_[static_cast<std::size_t>(i)];
    range.first = leaves.size();
    if (tree[i].is_leaf()) {
      leaves.push_back(tree[i].leaf);
    } else {
      self(self, tree[i].left);
      self(self, tree[i].right);
    }
    range.second = leaves.size();
  };
  visit(visit, 0);
  const Subsample subsample = model.params.subsample_of(t);
  for (const RowShard& shard : model.shards) {
    rows_.push_back(sort_by_leaf(shard.trees[t].leaf_ids, shard.n_before(), leaves, [&](Slot row) {
      return model.params.subsample >= 1 || subsample.contains(shard.rows.ids[row]);
    }));
  }
}

Totals RowsByNode::total(NodeIndex node) const {
  Totals sum;
  for (std::size_t s = 0; s < rows_.size(); ++s)
    sum += total_of(model_.shards[s].recorded_in(t_, model_.loss.kind), rows_of(s, node), 1);
  return sum;
}

template <class Sums>
Histogram<Sums> RowsByNode::count(NodeIndex node) const {
  Histogram<Sums> histogram(model_.layout().histogram_size());
  histogram.fill(Sums(Totals{}));
  for (std::size_t s = 0; s < rows_.size(); ++s) {
    const RowShard& shard = model_.shards[s];
    accumulate(shard.rows, shard.recorded_in(t_, model_.loss.kind), rows_of(s, node),
               histogram.data());
  }
  return histogram;
}

template Histogram<PackedSums> RowsByNode::count(NodeIndex) const;
template Histogram<WideSums> RowsByNode::count(NodeIndex) const;

}  // namespace graftboost
