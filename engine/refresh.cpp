#include "refresh.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "parallel.hpp"
#include "training.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_together = 4096;

// Sums of the rows' contributions by leaf id, added up by several threads.
class LeafSums {
 public:
  explicit LeafSums(std::size_t n_leaf_ids) : sums_(n_leaf_ids) {}

  template <class LeafId>
  void add(const Forest& forest, std::size_t t, const LeafId* leaf_ids, std::size_t begin,
           std::size_t end) {
    std::vector<Totals> own(sums_.size());
    const Contributions contributions = forest.contributions_to(t);
    for (std::size_t r = begin; r < end; ++r) {
      const auto row = static_cast<Slot>(r);
      if (forest.in_bag(t, forest.rows.ids[row])) own[leaf_ids[row]] += contributions.of(row);
    }
    std::lock_guard lock(lock_);
    for (std::size_t leaf = 0; leaf < own.size(); ++leaf) sums_[leaf] += own[leaf];
  }

  const Totals& operator[](std::int32_t leaf) const {
    return sums_[static_cast<std::size_t>(leaf)];
  }

 private:
  std::vector<Totals> sums_;
  std::mutex lock_;
};

void set_sums_and_values(Forest& forest, std::size_t t, const LeafSums& sums) {
  const SplitParams params = growing_params(forest).split;
  std::vector<Node>& nodes = forest.trees[t].nodes;
  const auto at = [&](NodeIndex i) -> Node& { return nodes[static_cast<std::size_t>(i)]; };
  for (std::size_t i = nodes.size(); i-- > 0;) {  // children come after their parent
    Node& node = nodes[i];
    node.sums = node.is_leaf() ? sums[node.leaf] : at(node.left).sums + at(node.right).sums;
    node.value = forest.loss.leaf_value(node.sums, forest.params.learning_rate,
                                        forest.params.l2_regularization);
    if (node.is_leaf()) continue;
    const Totals &left = at(node.left).sums, &right = at(node.right).sums;
    const bool counts = std::min(left.n, right.n) >= params.min_samples_leaf;
    node.gain = counts ? gain_of(params, node.sums, left) : Split{}.gain;
  }
}

}  // namespace

void refresh(Forest& forest, int n_threads) {
  const auto k_trees = static_cast<std::size_t>(forest.trees_per_iteration());
  const std::size_t n = forest.rows.size();
  std::vector<Array<double>> scores(k_trees);
  std::vector<const double*> from(k_trees);
  for (std::size_t k = 0; k < k_trees; ++k) {
    scores[k].resize(n);
    scores[k].fill(forest.base_scores[k]);
    from[k] = scores[k].data();
  }
  const std::span<const std::int32_t> targets(forest.rows.target.data(), n);
  for (std::size_t first = 0; first < forest.trees.size(); first += k_trees) {
    std::vector<Gradient*> to(k_trees);
    std::deque<LeafSums> sums;
    std::vector<std::vector<double>> values_before(k_trees);
    for (std::size_t k = 0; k < k_trees; ++k) {
      to[k] = forest.states[first + k].recorded.data();
      sums.emplace_back(forest.trees[first + k].leaves.size());
      if (first != 0) values_before[k] = forest.trees[first - k_trees + k].leaf_values();
    }
    // A block of rows goes through all of an iteration while it is in cache.
    parallel_blocks(n_threads, n, rows_together, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = 0; k < k_trees && first != 0; ++k) {
        forest.states[first - k_trees + k].leaf_ids.visit([&](const auto* leaf_ids) {
          for (std::size_t r = begin; r < end; ++r) scores[k][r] += values_before[k][leaf_ids[r]];
        });
      }
      forest.loss.record(targets, from, to, begin, end);
      for (std::size_t k = 0; k < k_trees; ++k) {
        const std::size_t t = first + k;
        for (std::size_t r = begin; r < end && forest.params.subsample < 1; ++r)
          if (!forest.in_bag(t, forest.rows.ids[r])) to[k][r] = 0;
        forest.states[t].leaf_ids.visit(
            [&](const auto* leaf_ids) { sums[k].add(forest, t, leaf_ids, begin, end); });
      }
    });
    for (std::size_t k = 0; k < k_trees; ++k) {
      set_sums_and_values(forest, first + k, sums[k]);
      forest.states[first + k].drop_sums();
    }
  }
}

}  // namespace graftboost
