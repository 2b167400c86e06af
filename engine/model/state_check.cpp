#include "model/state_check.hpp"

#include <vector>

#include "core/parallel.hpp"
#include "model/rows_by_node.hpp"

namespace graftboost {
namespace {

using Difference = std::optional<std::string>;

// Whether every row is recorded in the leaf that its codes lead to.
Difference check_leaves(const ModelState& model, std::size_t t) {
  const Tree& tree = model.nodes.tree(t);
  for (const RowShard& shard : model.shards) {
    for (Slot row = 0; row < shard.size(); ++row) {
      const std::size_t leaf = shard.trees[t].leaf_ids[row];
      if (leaf >= tree.leaves.size())
        return "row " + std::to_string(shard.rows.ids[row]) + " is recorded in no leaf";
      const NodeIndex reached =
          tree.route([&](std::uint32_t column) { return shard.rows.code(row, column); });
      if (reached != tree.leaves[leaf])
        return "a row of node " + std::to_string(reached) + " is recorded in another leaf";
    }
  }
  return std::nullopt;
}

// What rows elsewhere add to the cached histograms of a tree.
template <class Sums>
std::vector<Histogram<Sums>> count_elsewhere(const ModelState& model, std::size_t t,
                                             const TreeHistograms<Sums>& histograms) {
  std::vector<Histogram<Sums>> counted(histograms.size());
  std::vector<NodeIndex> nodes;
  std::vector<Histogram<Sums>*> asked;
  for (std::size_t i = 0; i < histograms.size(); ++i) {
    if (!histograms[i].cached) continue;
    counted[i].resize(model.layout().histogram_size());
    counted[i].fill(Sums(Totals{}));
    nodes.push_back(static_cast<NodeIndex>(i));
    asked.push_back(&counted[i]);
  }
  if (!asked.empty()) model.elsewhere->recount<Sums>(t, nodes, asked);
  return counted;
}

template <class Sums>
Difference check_nodes(const ModelState& model, std::size_t t,
                       const TreeHistograms<Sums>& histograms) {
  const Tree& tree = model.nodes.tree(t);
  const RowsByNode rows(model, t);
  __int128 squares = 0;
  for (const RowShard& shard : model.shards) squares += shard.squares_in(t, model.loss.kind);
  std::vector<Totals> elsewhere(tree.nodes.size());
  std::vector<Histogram<Sums>> counted_elsewhere(histograms.size());
  if (model.elsewhere) {
    const RemoteRows::CheckedTree found = model.elsewhere->check_tree(t, tree.leaves.size());
    if (found.n_misplaced != 0) return "a row is recorded in another leaf than it reaches";
    squares += found.squares;
    for (std::size_t i = tree.nodes.size(); i-- > 0;) {  // children come after their parent
      const Node& node = tree.nodes[i];
      if (node.is_leaf()) elsewhere[i] = found.of_leaves[static_cast<std::size_t>(node.leaf)];
      if (node.parent != no_node) elsewhere[static_cast<std::size_t>(node.parent)] += elsewhere[i];
    }
    counted_elsewhere = count_elsewhere(model, t, histograms);
  }
  if (squares != model.nodes[t].squares) return "the sum of squared gradients does not match";
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const Node& node = tree.nodes[i];
    const auto index = static_cast<NodeIndex>(i);
    const std::string where = "node " + std::to_string(i);
    if (rows.total(index) + elsewhere[i] != node.sums)
      return "the sums of " + where + " do not match its rows";
    if (node.value != model.leaf_value(node.sums))
      return "the value of " + where + " does not follow from its sums";
    if (i >= histograms.size() || !histograms[i].cached) continue;
    Histogram<Sums> counted = rows.count<Sums>(index);
    for (std::size_t c = 0; c < counted_elsewhere[i].size(); ++c)
      counted[c] += counted_elsewhere[i][c];
    if (!(NodeHistogram<Sums>(model.layout(), counted) == histograms[i]))
      return "the histogram of " + where + " does not match its rows";
  }
  return std::nullopt;
}

Difference check_tree(const ModelState& model, std::size_t t) {
  Difference difference = check_leaves(model, t);
  if (!difference) {
    difference = std::visit([&](const auto& all) { return check_nodes(model, t, all); },
                            model.nodes[t].histograms);
  }
  if (difference) difference = "tree " + std::to_string(t) + ": " + *difference;
  return difference;
}

}  // namespace

std::optional<std::string> find_difference(const ModelState& model, int n_threads) {
  if (!model.params.updatable) return std::nullopt;
  TargetSums recomputed(model.loss.n_classes);
  for (const RowShard& shard : model.shards) {
    for (Slot row = 0; row < shard.size(); ++row)
      recomputed.add(shard.rows.target[row], shard.weight_of(row));
  }
  if (model.elsewhere) model.elsewhere->add_target_sums(recomputed);
  if (recomputed != model.target_sums) return "the sums of targets do not match the rows";
  if (model.base_scores != model.loss.base_scores(model.target_sums))
    return "the base scores do not follow from the targets";
  std::vector<Difference> differences(model.nodes.size());
  parallel(n_threads, model.nodes.size(),
           [&](std::size_t t) { differences[t] = check_tree(model, t); });
  for (Difference& difference : differences) {
    if (difference) return difference;
  }
  return std::nullopt;
}

}  // namespace graftboost
