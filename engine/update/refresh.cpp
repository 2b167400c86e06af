#include "update/refresh.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "train/boosting.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_together = 4096;

// Works iteration by iteration: scores before it, gradients, sums of its leaves, values. All memory that
// this takes is there before the first gradient is overwritten, so that nothing can fail from then on.
class Refresher {
 public:
  Refresher(Forest& forest, int n_threads)
      : forest_(forest),
        k_trees_(static_cast<std::size_t>(forest.trees_per_iteration())),
        n_(forest.rows.size()),
        split_(growing_params(forest).gain),
        to_(k_trees_) {
    std::size_t n_leaf_ids = 0;
    for (const Tree& tree : forest.trees) n_leaf_ids = std::max(n_leaf_ids, tree.leaves.size());
    for (std::size_t k = 0; k < k_trees_; ++k) {
      scores_.emplace_back(n_);
      scores_[k].fill(forest.base_scores[k]);
      from_.push_back(scores_[k].data());
      values_before_.emplace_back(n_leaf_ids);
    }
    for (int i = 0; i < std::max(n_threads, 1); ++i)
      shares_.emplace_back(k_trees_, n_leaf_ids * k_trees_);
  }

  void run() {
    const std::function<void(std::size_t)> work = [this](std::size_t share) {
      for (std::size_t begin; (begin = next_row_.fetch_add(rows_together)) < n_;)
        record(begin, std::min(begin + rows_together, n_), shares_[share]);
    };
    for (first_ = 0; first_ < forest_.trees.size(); first_ += k_trees_) {
      for (std::size_t k = 0; k < k_trees_; ++k)
        to_[k] = forest_.states[first_ + k].recorded.data();
      for (Share& share : shares_) std::fill(share.sums.begin(), share.sums.end(), Totals{});
      next_row_ = 0;
      parallel(static_cast<int>(shares_.size()), shares_.size(), work);
      for (std::size_t k = 0; k < k_trees_; ++k) finish_tree(k);
    }
  }

 private:
  // What one thread needs, and the sums that it makes: by tree and leaf id.
  struct Share {
    Share(std::size_t n_scores, std::size_t n_sums) : recording(n_scores), sums(n_sums) {}

    RecordScratch recording;
    WipedVector<Totals> sums;
  };

  std::size_t n_leaf_ids() const { return values_before_[0].size(); }

  // A block of rows goes through all of an iteration while it is in cache.
  void record(std::size_t begin, std::size_t end, Share& share) {
    for (std::size_t k = 0; k < k_trees_ && first_ != 0; ++k) {
      forest_.states[first_ - k_trees_ + k].leaf_ids.visit([&](const auto* leaf_ids) {
        for (std::size_t r = begin; r < end; ++r) scores_[k][r] += values_before_[k][leaf_ids[r]];
      });
    }
    forest_.loss.record({forest_.rows.target.data(), n_}, from_, to_, begin, end, share.recording);
    for (std::size_t k = 0; k < k_trees_; ++k) {
      const std::size_t t = first_ + k;
      Totals* sums = share.sums.data() + k * n_leaf_ids();
      const Contributions contributions = forest_.contributions_to(t);
      forest_.states[t].leaf_ids.visit([&](const auto* leaf_ids) {
        for (std::size_t r = begin; r < end; ++r) {
          const auto row = static_cast<Slot>(r);
          if (forest_.in_bag(t, forest_.rows.ids[row])) {
            sums[leaf_ids[row]] += contributions.of(row);
          } else {
            to_[k][row] = 0;
          }
        }
      });
    }
  }

  void finish_tree(std::size_t k) {
    Tree& tree = forest_.trees[first_ + k];
    const auto at = [&](NodeIndex i) -> Node& { return tree.nodes[static_cast<std::size_t>(i)]; };
    for (std::size_t i = tree.nodes.size(); i-- > 0;) {  // children come after their parent
      Node& node = tree.nodes[i];
      node.sums =
          node.is_leaf() ? sums_of_leaf(k, node.leaf) : at(node.left).sums + at(node.right).sums;
      node.value = forest_.loss.leaf_value(node.sums, forest_.params.learning_rate, forest_.l2());
      if (node.is_leaf()) {
        values_before_[k][static_cast<std::size_t>(node.leaf)] = node.value;
        continue;
      }
      const Totals &left = at(node.left).sums, &right = at(node.right).sums;
      const bool counts = std::min(left.n, right.n) >= split_.min_samples_leaf;
      node.gain = counts ? gain_of(split_, node.sums, left) : BestSplit{}.gain;
    }
    forest_.states[first_ + k].drop_sums();
  }

  Totals sums_of_leaf(std::size_t k, std::int32_t leaf) const {
    Totals sum;
    for (const Share& share : shares_)
      sum += share.sums[k * n_leaf_ids() + static_cast<std::size_t>(leaf)];
    return sum;
  }

  Forest& forest_;
  std::size_t k_trees_, n_;
  GainParams split_;
  std::size_t first_ = 0;  // tree of the iteration
  std::atomic<std::size_t> next_row_{0};
  std::vector<Array<double>> scores_;  // before the iteration, per tree of one
  std::vector<const double*> from_;
  std::vector<Gradient*> to_;
  std::vector<std::vector<double>> values_before_;  // by leaf id, of the iteration before
  std::vector<Share> shares_;
};

}  // namespace

void refresh(Forest& forest, int n_threads) { Refresher(forest, n_threads).run(); }

}  // namespace graftboost
