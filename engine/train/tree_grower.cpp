#include "train/tree_grower.hpp"

#include <algorithm>
#include <utility>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// With fewer cells one thread is done before a second has started.
constexpr std::size_t least_cells_to_share = 500;

}  // namespace

template <class Sums>
TreeGrower<Sums>::TreeGrower(const ActiveCells& cells, const Loss& loss,
                             const GrowingParams& params, int n_threads)
    : cells_(cells), loss_(loss), params_(params), n_threads_(n_threads) {
  // Two shares per thread, of about as many cells each.
  const std::vector<std::uint32_t>& order = layout().by_offset();
  const bool share = n_threads > 1 && layout().histogram_size() >= least_cells_to_share;
  const std::size_t n_shares = share ? 2 * static_cast<std::size_t>(n_threads) : 1;
  std::size_t begin = 0, n_cells = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    n_cells += layout()[order[i]].n_codes;
    if (n_cells * n_shares >= layout().histogram_size() || i + 1 == order.size()) {
      feature_shares_.emplace_back(begin, i + 1);
      begin = i + 1, n_cells = 0;
    }
  }
}

template <class Sums>
Histogram<Sums> TreeGrower<Sums>::new_histogram() {
  if (spare_.empty()) return Histogram<Sums>(cells_.size());
  Histogram<Sums> histogram = std::move(spare_.back());
  spare_.pop_back();
  return histogram;
}

template <class Sums>
Tree TreeGrower<Sums>::grow(GrowingRows<Sums>& rows, int max_leaf_nodes, Histogram<Sums>* before) {
  max_leaf_nodes_ = max_leaf_nodes;
  Tree tree;
  tree.nodes.reserve(2 * static_cast<std::size_t>(max_leaf_nodes));
  for (Growth& growth : growths_) {
    if (!growth.histogram.empty()) spare_.push_back(std::move(growth.histogram));
  }
  growths_.clear();
  growths_.resize(1);
  Node& root = tree.nodes.emplace_back();
  root.leaf = 0;
  root.gain = no_gain;
  growths_[0].histogram = new_histogram();
  rows.count_root(growths_[0].histogram, before);
  root.sums = total_at_root(rows);
  growths_[0].keep = params_.keep_histograms;
  evaluate(tree, 0, no_node, nullptr);
  if (rows.asks_elsewhere()) {
    tree = grow_ahead(std::move(tree), rows);
  } else {
    while (tree.n_leaves() < max_leaf_nodes_) {
      const NodeIndex next = next_to_split(tree);
      if (next == no_node) break;
      split_leaf(tree, next, rows);
    }
  }
  for (Node& node : tree.nodes)
    node.value = loss_.leaf_value(node.sums, params_.learning_rate, params_.gain.l2);
  tree.index_leaves();
  leaf_nodes_ = tree.leaves;
  if (rows.asks_elsewhere())
    for (NodeIndex& node : leaf_nodes_) node = grown_nodes_[at(node)];
  return tree;
}

template <class Sums>
NodeIndex TreeGrower<Sums>::next_to_split(const Tree& tree) const {
  NodeIndex next = no_node;
  double best = params_.gain.least_gain;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (!tree.nodes[i].is_leaf() || !(tree.nodes[i].gain > best)) continue;
    best = tree.nodes[i].gain;
    next = static_cast<NodeIndex>(i);
  }
  return next;
}

// Every row is in one cell of each dense feature.
template <class Sums>
Totals TreeGrower<Sums>::total_at_root(const GrowingRows<Sums>& rows) const {
  if (layout().size() == 0) return rows.total();
  const FeatureLayout& first = layout()[layout().by_offset()[0]];
  if (first.counts_only_differing()) return rows.total();
  Totals sum;
  for (std::uint32_t c = 0; c < first.n_codes; ++c)
    sum += Totals(growths_[0].histogram[first.offset + c]);
  return sum;
}

template <class Sums>
void TreeGrower<Sums>::split_leaf(Tree& tree, NodeIndex parent, GrowingRows<Sums>& rows) {
  const Children children = open_children(tree, parent, rows);
  Growth& grown = growths_[at(parent)];
  if (grown.margin) grown.bounds.set_margin(*grown.margin);
  // The children of the last split are evaluated only so that updates know their best candidates.
  const bool last = tree.n_leaves() == max_leaf_nodes_;
  if (children.smaller == no_node || (last && !params_.keep_histograms)) return;
  std::function<void()> keep_parent;
  if (grown.keep && is_sparse()) keep_parent = [&] { keep_sparse(grown); };
  growths_[at(children.smaller)].histogram = new_histogram();
  rows.count(children.smaller, growths_[at(children.smaller)].histogram, keep_parent);
  evaluate_children(tree, parent, children);
}

// Sends the rows of a leaf to two new nodes. Returns no nodes if neither child may be split.
template <class Sums>
typename TreeGrower<Sums>::Children TreeGrower<Sums>::open_children(Tree& tree, NodeIndex parent,
                                                                    GrowingRows<Sums>& rows) {
  const auto left_index = static_cast<NodeIndex>(tree.nodes.size()), right_index = left_index + 1;
  const std::int32_t new_leaf = tree.n_leaves();
  tree.nodes.resize(at(right_index) + 1);
  growths_.resize(at(right_index) + 1);
  Node& above = tree[parent];
  Node& left = tree[left_index];
  Node& right = tree[right_index];
  Growth& grown = growths_[at(parent)];

  rows.split(parent, above.split, left_index, right_index);
  above.left = left_index, above.right = right_index;
  left.parent = right.parent = parent;
  left.leaf = std::exchange(above.leaf, -1);
  right.leaf = new_leaf;
  left.sums = grown.left;
  right.sums = above.sums - grown.left;
  left.gain = right.gain = no_gain;

  if (grown.bounds.known()) {
    const std::uint32_t number = layout().number_of(above.split.feature);
    SplitEvaluator<Sums> evaluator(params_.gain, above.sums);
    grown.margin = evaluator.margin(layout()[number], cells_.view(number, grown.histogram.data()),
                                    above.split);
  }
  if (!may_split(left) && !may_split(right)) return {no_node, no_node};
  const bool left_smaller = left.sums.n <= right.sums.n;
  const NodeIndex smaller = left_smaller ? left_index : right_index;
  growths_[at(smaller)].keep = params_.keep_histograms;
  return {smaller, left_smaller ? right_index : left_index};
}

// Of sparse features only cells in use are cached, so the histogram's memory can go on to a child.
template <class Sums>
void TreeGrower<Sums>::keep_sparse(Growth& grown) const {
  grown.kept = NodeHistogram<Sums>(layout(), grown.histogram, cells_.sparse_cells());
}

// The smaller child has been counted.
template <class Sums>
void TreeGrower<Sums>::evaluate_children(Tree& tree, NodeIndex parent, const Children& children) {
  Growth& grown = growths_[at(parent)];
  const Sums* parent_cells = grown.histogram.data();
  growths_[at(children.larger)].histogram =
      grown.keep && !is_sparse() ? new_histogram() : std::move(grown.histogram);
  evaluate(tree, children.smaller, children.larger, parent_cells);
}

// --- ahead ---------------------------------------------------------------------------------------

// `grown` has the root; it gets all nodes that are split ahead.
template <class Sums>
Tree TreeGrower<Sums>::grow_ahead(Tree grown, GrowingRows<Sums>& rows) {
  std::vector<NodeIndex> missing;
  Tree tree = replay(grown, missing);
  while (!missing.empty()) {
    split_ahead(grown, missing, rows);
    tree = replay(grown, missing);
  }
  std::vector<Growth> of_tree;
  for (const NodeIndex i : grown_nodes_) {
    Growth& growth = of_tree.emplace_back(std::move(growths_[at(i)]));
    const Node& node = tree.nodes[of_tree.size() - 1];
    if (!node.is_leaf() && growth.margin) growth.bounds.set_margin(*growth.margin);
  }
  for (Growth& dropped : growths_)
    if (!dropped.histogram.empty()) spare_.push_back(std::move(dropped.histogram));
  growths_ = std::move(of_tree);
  return tree;
}

// Grows a tree from the nodes that have been split ahead, best first. Leaves that it comes to and
// that have not been are noted as missing; it goes on as if their children had nothing to gain.
template <class Sums>
Tree TreeGrower<Sums>::replay(const Tree& grown, std::vector<NodeIndex>& missing) {
  missing.clear();
  Tree tree;
  const auto append = [&](NodeIndex from, NodeIndex parent, std::int32_t leaf) {
    Node& node = tree.nodes.emplace_back(grown[from]);
    node.left = node.right = no_node;
    node.parent = parent;
    node.leaf = leaf;
    grown_nodes_.push_back(from);
    return static_cast<NodeIndex>(tree.nodes.size() - 1);
  };
  grown_nodes_.clear();
  append(0, no_node, 0);
  for (std::int32_t n_leaves = 1; n_leaves < max_leaf_nodes_; ++n_leaves) {
    const NodeIndex next = next_to_split(tree);
    if (next == no_node) break;
    const Node& split = grown[grown_nodes_[at(next)]];
    if (split.is_leaf()) {
      missing.push_back(grown_nodes_[at(next)]);
      tree[next].gain = no_gain;  // it is not chosen again
      continue;
    }
    const NodeIndex left = append(split.left, next, tree[next].leaf);
    const NodeIndex right = append(split.right, next, n_leaves);
    tree[next].left = left, tree[next].right = right, tree[next].leaf = -1;
    const bool last = n_leaves + 1 == max_leaf_nodes_;
    for (const NodeIndex child : {left, right}) {
      if (!last || params_.keep_histograms) continue;
      tree[child].gain = no_gain;  // as if it had not been evaluated
      tree[child].split = {};
    }
  }
  return tree;
}

template <class Sums>
void TreeGrower<Sums>::split_ahead(Tree& grown, const std::vector<NodeIndex>& parents,
                                   GrowingRows<Sums>& rows) {
  std::vector<std::pair<NodeIndex, Children>> opened;
  for (const NodeIndex parent : parents) {
    const Children children = open_children(grown, parent, rows);
    if (children.smaller != no_node) opened.emplace_back(parent, children);
  }
  std::vector<NodeIndex> nodes;
  std::vector<Histogram<Sums>*> histograms;
  for (const auto& [parent, children] : opened) {
    Growth& above = growths_[at(parent)];
    if (above.keep && is_sparse()) keep_sparse(above);
    growths_[at(children.smaller)].histogram = new_histogram();
    nodes.push_back(children.smaller);
    histograms.push_back(&growths_[at(children.smaller)].histogram);
  }
  if (!nodes.empty()) rows.count_all(nodes, histograms);
  for (const auto& [parent, children] : opened) evaluate_children(grown, parent, children);
}

// The histogram of `smaller` has been counted. That of `larger`, if there is one, becomes the
// parent's less the smaller's, feature by feature, just before the feature is evaluated and while
// its cells are in cache; it may be the parent's own memory.
template <class Sums>
void TreeGrower<Sums>::evaluate(Tree& tree, NodeIndex smaller, NodeIndex larger,
                                const Sums* parent) {
  for (const NodeIndex i : {smaller, larger}) {
    if (!params_.keep_histograms || i == no_node || !may_split(tree[i])) continue;
    growths_[at(i)].bounds.start(params_.gain, tree[i].sums, layout());
  }
  GainBounds::are_grouped(layout()) ? evaluate_grouped(tree, smaller, larger, parent)
                                    : evaluate_each(tree, smaller, larger, parent);
}

template <class Sums>
void TreeGrower<Sums>::subtract(std::uint32_t number, const Sums* parent, const Sums* smaller,
                                Sums* larger) const {
  const auto [first, last] = cells_.of(number);
  for (std::size_t c = first; c < last; ++c) larger[c] = parent[c] - smaller[c];
}

template <class Sums>
void TreeGrower<Sums>::settle(Tree& tree, NodeIndex i, const std::vector<BestSplit>& found) {
  BestSplit best;
  for (const BestSplit& split : found) {
    if (split.better_than(best)) best = split;
  }
  tree[i].gain = best.gain;
  tree[i].split = best.split;
  growths_[at(i)].left = best.left;
}

template <class Sums>
void TreeGrower<Sums>::evaluate_each(Tree& tree, NodeIndex smaller, NodeIndex larger,
                                     const Sums* parent) {
  const std::size_t n_shares = feature_shares_.size();
  std::vector<BestSplit> best_small(n_shares), best_large(n_shares);
  const auto evaluate = [&](NodeIndex i, std::uint32_t number, SplitEvaluator<Sums>& evaluator,
                            BestSplit& best) {
    GainBounds& bounds = growths_[at(i)].bounds;
    FeatureSurvey survey;
    const BestSplit found =
        evaluator.best(layout()[number], cells_.view(number, growths_[at(i)].histogram.data()),
                       bounds.known() ? &survey : nullptr);
    if (bounds.known()) bounds.evaluated(params_.gain, tree[i].sums, number, found.gain, survey);
    if (found.better_than(best)) best = found;
  };
  const bool small_splits = may_split(tree[smaller]);
  const bool large_splits = larger != no_node && may_split(tree[larger]);
  parallel(n_threads_, n_shares, [&](std::size_t share) {
    SplitEvaluator<Sums> of_small(params_.gain, tree[smaller].sums);
    SplitEvaluator<Sums> of_large(params_.gain, tree[larger == no_node ? 0 : larger].sums);
    const Sums* small_cells = growths_[at(smaller)].histogram.data();
    for (std::size_t i = feature_shares_[share].first; i < feature_shares_[share].second; ++i) {
      const std::uint32_t number = layout().by_offset()[i];
      if (small_splits) evaluate(smaller, number, of_small, best_small[share]);
      if (larger == no_node) continue;
      subtract(number, parent, small_cells, growths_[at(larger)].histogram.data());
      if (large_splits) evaluate(larger, number, of_large, best_large[share]);
    }
  });
  settle(tree, smaller, best_small);
  if (larger != no_node) settle(tree, larger, best_large);
}

// Only features that enough rows of the parent have. The cells of the others are left as they are,
// because no node below reads them.
template <class Sums>
void TreeGrower<Sums>::evaluate_grouped(Tree& tree, NodeIndex smaller, NodeIndex larger,
                                        const Sums* parent) {
  struct Share {
    SplitEvaluator<Sums> evaluator;
    BestSplit best;
    GroupSurvey survey;
    std::vector<std::uint32_t> splittable;
  };
  const NodeIndex above = tree[smaller].parent;
  const std::vector<std::uint32_t>& features =
      above == no_node ? layout().by_offset() : growths_[at(above)].splittable;
  const bool shared = n_threads_ > 1 && features.size() >= least_cells_to_share;
  const std::size_t n_shares = shared ? 2 * static_cast<std::size_t>(n_threads_) : 1;
  const auto shares_of = [&](NodeIndex i) {
    if (i == no_node) return std::vector<Share>();
    const SplitEvaluator<Sums> evaluator(params_.gain, tree[i].sums);
    return std::vector<Share>(n_shares, Share{evaluator, {}, {}, {}});
  };
  std::vector<Share> small = shares_of(smaller), large = shares_of(larger);
  const bool small_splits = may_split(tree[smaller]);
  const bool large_splits = larger != no_node && may_split(tree[larger]);
  parallel(n_threads_, n_shares, [&](std::size_t s) {
    const Sums* small_cells = growths_[at(smaller)].histogram.data();
    Sums* large_cells = larger == no_node ? nullptr : growths_[at(larger)].histogram.data();
    const auto evaluate = [&](NodeIndex i, std::uint32_t number, const Sums* histogram,
                              Share& share) {
      GroupSurvey* survey = growths_[at(i)].bounds.known() ? &share.survey : nullptr;
      if (share.evaluator.improve(layout()[number], cells_.view(number, histogram), share.best,
                                  survey))
        share.splittable.push_back(number);
    };
    const std::size_t end = features.size() * (s + 1) / n_shares;
    for (std::size_t i = features.size() * s / n_shares; i < end; ++i) {
      if (small_splits) evaluate(smaller, features[i], small_cells, small[s]);
      if (large_cells == nullptr) continue;
      subtract(features[i], parent, small_cells, large_cells);
      if (large_splits) evaluate(larger, features[i], large_cells, large[s]);
    }
  });
  const auto finish = [&](NodeIndex i, const std::vector<Share>& shares) {
    if (i == no_node) return;
    std::vector<BestSplit> found;
    std::vector<std::uint32_t> splittable;
    GroupSurvey survey;
    for (const Share& share : shares) {
      found.push_back(share.best);
      splittable.insert(splittable.end(), share.splittable.begin(), share.splittable.end());
      survey.add(share.survey);
    }
    settle(tree, i, found);
    growths_[at(i)].splittable = std::move(splittable);
    GainBounds& bounds = growths_[at(i)].bounds;
    if (bounds.known())
      bounds.evaluated_all(params_.gain, tree[i].sums, survey, tree[i].split.feature,
                           layout().size());
  };
  finish(smaller, small);
  finish(larger, large);
}

template <class Sums>
TreeHistograms<Sums> TreeGrower<Sums>::take_histograms() {
  TreeHistograms<Sums> taken(growths_.size());
  parallel(n_threads_, growths_.size(), [&](std::size_t i) {
    if (!growths_[i].keep) return;
    taken[i] = growths_[i].kept.cached
                   ? std::move(growths_[i].kept)
                   : NodeHistogram<Sums>(layout(), growths_[i].histogram, cells_.sparse_cells());
  });
  return taken;
}

template <class Sums>
std::vector<GainBounds> TreeGrower<Sums>::take_bounds() {
  std::vector<GainBounds> bounds;
  for (Growth& growth : growths_) bounds.push_back(std::move(growth.bounds));
  return bounds;
}

template <class Sums>
void TreeGrower<Sums>::reuse(NodeHistogram<Sums>& former) noexcept {
  NodeHistogram<Sums> taken = std::exchange(former, {});
  if (taken.plain.size() == cells_.size() && spare_.size() < spare_.capacity())
    spare_.push_back(std::move(taken.plain));
}

template class TreeGrower<PackedSums>;
template class TreeGrower<WideSums>;

}  // namespace graftboost
