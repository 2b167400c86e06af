#include "update/flip_shifts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// The part of a difference just above the leaves that is left when training has gone on. This and
// `optimism` are the same for all data. They were found by regression: of the changes of scores
// that retrains caused, on the terms of the formula.
constexpr double damping = 0.7;
// The part of what splits add to the score of a row that they would not add without it.
constexpr double optimism = 0.08;

}  // namespace

FlipShifts::FlipShifts(const UpdateContext& context, const ChangedRows& changed,
                       std::span<const TreeFlips> flips, double scale)
    : context_(context), changed_(changed), flips_(flips) {
  for (std::size_t t = 0; t < flips.size(); ++t)
    if (!flips[t].flips.empty()) trees_.push_back(table_of(t, scale));
}

FlipShifts::OfTree FlipShifts::table_of(std::size_t t, double scale) const {
  constexpr std::uint32_t no_flip = 0xffffffff;
  const ModelState& model = context_.model;
  const Tree& tree = model.nodes.tree(t);
  OfTree table{t, {}, {}, {}};
  std::vector<std::uint32_t> flip_of(tree.nodes.size(), no_flip);
  for (const Flip& flip : flips_[t].flips) {
    const Node& node = tree[flip.node];
    flip_of[static_cast<std::size_t>(flip.node)] = static_cast<std::uint32_t>(table.flips.size());
    OfFlip& of_flip = table.flips.emplace_back();
    of_flip.feature = flip.splits ? &changed_.rows().layout.of(flip.best.feature) : nullptr;
    for (const bool left : {false, true}) {
      const double present = model.leaf_value(tree[left ? node.left : node.right].sums);
      for (const bool best_left : {false, true}) {
        const Totals& other = !flip.splits ? node.sums
                              : best_left  ? flip.left
                                           : node.sums - flip.left;
        const double difference = model.leaf_value(other) - present;
        const double weight = flip.node == 0 ? 0 : damping * flip.weight;
        of_flip.shifts[left][best_left] = on_leaf_grid(scale * weight * difference);
      }
    }
  }
  const auto optimism_at = [&](NodeIndex i) {
    return on_leaf_grid(scale * optimism * model.leaf_value(tree[i].sums));
  };
  std::vector<bool> is_needed(tree.leaves.size(), changed_.size() >= tree.leaves.size());
  for (std::size_t row = 0; row < changed_.size() && changed_.size() < tree.leaves.size(); ++row)
    is_needed[changed_.leaf(t, row)] = true;
  for (std::size_t id = 0; id < tree.leaves.size(); ++id) {
    const NodeIndex leaf = tree.leaves[id];
    table.begin.push_back(static_cast<std::uint32_t>(table.paths.size()));
    if (leaf == no_node || !is_needed[id]) continue;
    NodeIndex child = leaf;
    for (NodeIndex at = tree[child].parent; at != no_node; child = at, at = tree[at].parent) {
      const std::uint32_t flip = flip_of[static_cast<std::size_t>(at)];
      if (flip == no_flip) continue;
      table.paths.push_back({flip, tree[at].left == child, optimism_at(leaf) - optimism_at(child)});
    }
  }
  table.begin.push_back(static_cast<std::uint32_t>(table.paths.size()));
  return table;
}

// Tree by tree, because the leaves of the rows of a block lie together.
FlipShifts::OfRows FlipShifts::of_rows() const {
  const std::size_t k_trees = context_.model.base_scores.size();
  OfRows found{ChangedScores(changed_.size() * k_trees), WipedVector<double>(changed_.size())};
  for_blocks(context_, changed_, [&](std::size_t begin, std::size_t end) {
    for (const OfTree& of_tree : trees_) {
      for (std::size_t i = begin; i < end; ++i) {
        for_each_in(of_tree, i, [&](std::size_t t, std::uint32_t, double shift) {
          found.shifts[i * k_trees + t % k_trees] += shift;
          found.sizes[i] += std::abs(shift);
        });
      }
    }
  });
  return found;
}

double FlipShifts::error(const ChangedScores& scores) const {
  const std::size_t k_trees = context_.model.base_scores.size();
  const std::size_t n_shares =
      std::min(static_cast<std::size_t>(std::max(context_.n_threads, 1)), changed_.size());
  std::vector<std::size_t> first;  // of the flips of each tree
  std::size_t n_flips = 0;
  for (const TreeFlips& flips : flips_) {
    first.push_back(n_flips);
    n_flips += flips.flips.size();
  }
  std::vector<WipedVector<std::int64_t>> of_flips(n_shares);  // sums of integers: any order will do
  parallel(context_.n_threads, n_shares, [&](std::size_t share) {
    of_flips[share].resize(n_flips);
    RowLoss loss(context_, changed_);
    WipedVector<double> slopes(k_trees);
    const std::size_t end = changed_.size() * (share + 1) / n_shares;
    for (std::size_t i = changed_.size() * share / n_shares; i < end; ++i) {
      loss.slopes(i, of_row(scores, i, k_trees), slopes.data());
      for_each(i, [&](std::size_t t, std::uint32_t f, double shift) {
        of_flips[share][first[t] + f] += in_memory_units(slopes[t % k_trees] * shift);
      });
    }
  });
  double variance = 0;
  for (std::size_t f = 0; f < n_flips; ++f) {
    std::int64_t of_flip = 0;
    for (const WipedVector<std::int64_t>& share : of_flips) of_flip += share[f];
    variance += static_cast<double>(of_flip) * static_cast<double>(of_flip);
  }
  return std::sqrt(variance);
}

}  // namespace graftboost
