#include "update/refresh.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "core/parallel.hpp"
#include "model/running_scores.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_together = 4096;

// Goes iteration by iteration: scores before it, gradients, sums of its leaves, values. All memory
// is allocated before the first gradient is overwritten, so nothing can fail after that.
class Refresher {
 public:
  Refresher(ModelState& model, int n_threads)
      : model_(model),
        k_trees_(static_cast<std::size_t>(model.trees_per_iteration())),
        gain_(model.gain_params()),
        to_(k_trees_) {
    std::size_t n_leaf_ids = 0;
    for (const TreeNodes& nodes : model.nodes)
      n_leaf_ids = std::max(n_leaf_ids, nodes.tree.leaves.size());
    for (const RowShard& shard : model.shards) {
      std::vector<Array<double>>& scores = scores_.emplace_back();
      std::vector<const double*>& from = from_.emplace_back();
      for (std::size_t k = 0; k < k_trees_; ++k) {
        scores.emplace_back(shard.size()).fill(model.base_scores[k]);
        from.push_back(scores[k].data());
      }
    }
    for (std::size_t k = 0; k < k_trees_; ++k) values_before_.emplace_back(n_leaf_ids);
    for (int i = 0; i < std::max(n_threads, 1); ++i)
      shares_.emplace_back(k_trees_, n_leaf_ids * k_trees_);
  }

  void run() {
    const std::function<void(std::size_t)> work = [this](std::size_t share) {
      const std::size_t n = model_.shards[shard_].size();
      for (std::size_t begin; (begin = next_row_.fetch_add(rows_together)) < n;)
        record(begin, std::min(begin + rows_together, n), shares_[share]);
    };
    for (first_ = 0; first_ < model_.nodes.size(); first_ += k_trees_) {
      for (Share& share : shares_) {
        std::fill(share.sums.begin(), share.sums.end(), Totals{});
        std::fill(share.squares.begin(), share.squares.end(), 0);
      }
      for (shard_ = 0; shard_ < model_.shards.size(); ++shard_) {
        for (std::size_t k = 0; k < k_trees_; ++k)
          to_[k] = model_.shards[shard_].trees[first_ + k].recorded.data();
        next_row_ = 0;
        parallel(static_cast<int>(shares_.size()), shares_.size(), work);
      }
      for (std::size_t k = 0; k < k_trees_; ++k) finish_tree(k);
    }
  }

 private:
  // What one thread needs, and the sums that it adds up: by tree and leaf id.
  struct Share {
    Share(std::size_t n_scores, std::size_t n_sums)
        : recording(n_scores), sums(n_sums), squares(n_scores) {}

    RecordScratch recording;
    WipedVector<Totals> sums;
    std::vector<__int128> squares;  // by tree
  };

  std::size_t n_leaf_ids() const { return values_before_[0].size(); }

  // A block of rows goes through all of an iteration while it is in cache.
  void record(std::size_t begin, std::size_t end, Share& share) {
    const RowShard& shard = model_.shards[shard_];
    for (std::size_t k = 0; k < k_trees_ && first_ != 0; ++k) {
      add_leaf_values(shard.trees[first_ - k_trees_ + k].leaf_ids, values_before_[k],
                      scores_[shard_][k].data(), begin, end);
    }
    model_.loss.record({shard.rows.target.data(), shard.size()}, from_[shard_], to_, begin, end,
                       share.recording);
    for (std::size_t k = 0; k < k_trees_; ++k) {
      const std::size_t t = first_ + k;
      Totals* sums = share.sums.data() + k * n_leaf_ids();
      const RecordedGradients recorded = shard.recorded_in(t, model_.loss.kind);
      shard.trees[t].leaf_ids.visit([&](const auto* leaf_ids) {
        for (std::size_t r = begin; r < end; ++r) {
          const auto row = static_cast<Slot>(r);
          if (model_.params.in_subsample(t, shard.rows.ids[row])) {
            sums[leaf_ids[row]] += recorded.of(row);
            share.squares[k] += recorded.square_of(row);
          } else {
            to_[k][row] = 0;
          }
        }
      });
    }
  }

  void finish_tree(std::size_t k) {
    Tree& tree = model_.nodes[first_ + k].tree;
    for (std::size_t i = tree.nodes.size(); i-- > 0;) {  // children come after their parent
      Node& node = tree.nodes[i];
      node.sums = node.is_leaf() ? sums_of_leaf(k, node.leaf)
                                 : tree[node.left].sums + tree[node.right].sums;
      node.value = model_.leaf_value(node.sums);
      if (node.is_leaf()) {
        values_before_[k][static_cast<std::size_t>(node.leaf)] = node.value;
      } else {
        node.gain = model_.gain_of_split(gain_, tree, node);
      }
    }
    model_.nodes[first_ + k].squares = 0;
    for (const Share& share : shares_) model_.nodes[first_ + k].squares += share.squares[k];
    model_.nodes[first_ + k].drop_histograms();
  }

  Totals sums_of_leaf(std::size_t k, std::int32_t leaf) const {
    Totals sum;
    for (const Share& share : shares_)
      sum += share.sums[k * n_leaf_ids() + static_cast<std::size_t>(leaf)];
    return sum;
  }

  ModelState& model_;
  std::size_t k_trees_;
  GainParams gain_;
  std::size_t first_ = 0;  // tree of the iteration
  std::size_t shard_ = 0;
  std::atomic<std::size_t> next_row_{0};
  std::vector<std::vector<Array<double>>>
      scores_;                                    // before the iteration, per shard and tree of one
  std::vector<std::vector<const double*>> from_;  // the same
  std::vector<Gradient*> to_;
  std::vector<std::vector<double>> values_before_;  // by leaf id, of the iteration before
  std::vector<Share> shares_;
};

}  // namespace

void refresh(ModelState& model, int n_threads) { Refresher(model, n_threads).run(); }

}  // namespace graftboost
