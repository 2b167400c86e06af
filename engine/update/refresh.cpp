#include "update/refresh.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "core/parallel.hpp"
#include "model/score_terms.hpp"
#include "remote/node_half.hpp"
#include "update/leaf_sums.hpp"

namespace graftboost {
namespace {

constexpr std::size_t rows_together = LeafSums::most_rows;

// Goes iteration by iteration: scores before it, gradients, sums of its leaves, values. All memory
// is allocated before the first gradient is overwritten, so nothing can fail after that.
class Refresher {
 public:
  Refresher(ModelState& model, int n_threads)
      : model_(model),
        k_trees_(static_cast<std::size_t>(model.trees_per_iteration())),
        gain_(model.gain_params()),
        score_terms_(model, model.n_iterations(), true),
        to_(k_trees_) {
    std::size_t n_leaf_ids = 0;
    for (const TreeNodes& nodes : model.nodes)
      n_leaf_ids = std::max(n_leaf_ids, nodes.tree.leaves.size());
    for (const RowShard& shard : model.shards) {
      std::vector<Array<double>>& terms = terms_.emplace_back();
      std::vector<const double*>& from = from_.emplace_back();
      for (std::size_t k = 0; k < k_trees_; ++k) {
        terms.emplace_back(shard.size()).fill(score_terms_.of(model.base_scores[k]));
        from.push_back(terms[k].data());
      }
    }
    for (std::size_t k = 0; k < k_trees_; ++k) terms_before_.emplace_back(n_leaf_ids);
    for (int i = 0; i < std::max(n_threads, 1); ++i)
      shares_.push_back(
          {RecordScratch(k_trees_), std::vector<LeafSums>(k_trees_, LeafSums(n_leaf_ids))});
  }

  void run() {
    const std::function<void(std::size_t)> work = [this](std::size_t share) {
      const std::size_t n = model_.shards[shard_].size();
      for (std::size_t begin; (begin = next_row_.fetch_add(rows_together)) < n;)
        record(begin, std::min(begin + rows_together, n), shares_[share]);
    };
    for (first_ = 0; first_ < model_.nodes.size(); first_ += k_trees_) {
      for (Share& share : shares_)
        for (LeafSums& sums : share.sums) sums.clear();
      for (shard_ = 0; shard_ < model_.shards.size(); ++shard_) {
        for (std::size_t k = 0; k < k_trees_; ++k)
          to_[k] = model_.shards[shard_].trees[first_ + k].recorded.data();
        next_row_ = 0;
        parallel(static_cast<int>(shares_.size()), shares_.size(), work);
      }
      if (model_.elsewhere) ask_elsewhere();
      for (std::size_t k = 0; k < k_trees_; ++k) finish_tree(k);
    }
  }

 private:
  // What one thread needs, and the sums that it adds up: per tree of the iteration.
  struct Share {
    RecordScratch recording;
    std::vector<LeafSums> sums;
  };

  // A block of rows goes through all of an iteration while it is in cache.
  void record(std::size_t begin, std::size_t end, Share& share) {
    const RowShard& shard = model_.shards[shard_];
    for (std::size_t k = 0; k < k_trees_ && first_ != 0; ++k) {
      score_terms_.pass(shard.trees[first_ - k_trees_ + k].leaf_ids, terms_before_[k],
                        terms_[shard_][k].data(), begin, end);
    }
    score_terms_.record(model_.recording_rows(shard_, first_), from_[shard_], to_, begin, end,
                        ScoresFromLeaves(model_, shard_, first_), share.recording);
    for (std::size_t k = 0; k < k_trees_; ++k) {
      const std::size_t t = first_ + k;
      if (model_.params.subsample < 1) {
        std::array<std::int32_t, rows_together> inside;
        model_.params.subsample_of(t).find(shard.rows.ids.data() + begin, end - begin,
                                           inside.data());
        to_[k].visit(
            [&](auto* of_rows) { keep_marked(of_rows + begin, inside.data(), end - begin); });
      }
      share.sums[k].add(shard.recorded_in(t, model_.loss.kind), shard.trees[t].leaf_ids, begin,
                        end);
    }
  }

  // Rows elsewhere need the values of the trees before.
  void ask_elsewhere() {
    model_.elsewhere->send_trees(
        first_ < k_trees_ ? 0 : first_ - k_trees_, first_,
        [&](std::size_t t) -> const Tree& { return model_.nodes.tree(t); });
    elsewhere_ = model_.elsewhere->refresh(first_, k_trees_, terms_before_[0].size());
  }

  void finish_tree(std::size_t k) {
    Tree& tree = model_.nodes[first_ + k].tree;
    for (std::size_t i = tree.nodes.size(); i-- > 0;) {  // children come after their parent
      Node& node = tree.nodes[i];
      node.sums =
          node.is_leaf() ? sums_of_leaf(k, node) : tree[node.left].sums + tree[node.right].sums;
      node.value = model_.leaf_value(node.sums);
      if (node.is_leaf()) {
        terms_before_[k][static_cast<std::size_t>(node.leaf)] = score_terms_.of(node.value);
      } else {
        node.gain = model_.gain_of_split(gain_, tree, node);
      }
    }
    model_.nodes[first_ + k].squares = 0;
    for (const Share& share : shares_) model_.nodes[first_ + k].squares += share.sums[k].squares();
    if (model_.elsewhere) model_.nodes[first_ + k].squares += elsewhere_[k].squares;
    model_.nodes[first_ + k].drop_histograms();
  }

  // The rows of a leaf stay, so neither their number nor hessians that do not depend on scores
  // change.
  Totals sums_of_leaf(std::size_t k, const Node& leaf) const {
    Totals sum{0, 0, leaf.sums.n};
    for (const Share& share : shares_) {
      sum.g += share.sums[k].of(leaf.leaf).g;
      sum.h += share.sums[k].of(leaf.leaf).h;
    }
    if (model_.elsewhere) {
      const Totals& there = elsewhere_[k].of_leaves[static_cast<std::size_t>(leaf.leaf)];
      sum.g += there.g, sum.h += there.h;
    }
    if (model_.loss.kind == LossKind::squared) sum.h = leaf.sums.h;
    return sum;
  }

  ModelState& model_;
  std::size_t k_trees_;
  GainParams gain_;
  std::size_t first_ = 0;  // tree of the iteration
  std::size_t shard_ = 0;
  std::atomic<std::size_t> next_row_{0};
  ScoreTerms score_terms_;
  std::vector<std::vector<Array<double>>>
      terms_;                                     // before the iteration, per shard and tree of one
  std::vector<std::vector<const double*>> from_;  // the same
  std::vector<GradientPointer> to_;
  std::vector<std::vector<double>> terms_before_;  // by leaf id, of the iteration before
  std::vector<Share> shares_;
  std::vector<RemoteRows::LeafTotals> elsewhere_;  // per tree of the iteration
};

// Restores the nodes of a model unless commit() was called. Here nothing can fail; elsewhere a shard
// may be lost.
class NodesUndo {
 public:
  explicit NodesUndo(ModelState& model) : model_(model) {
    for (const TreeNodes& nodes : model.nodes) saved_.push_back({nodes.tree, nodes.squares});
  }
  NodesUndo(const NodesUndo&) = delete;
  ~NodesUndo() {
    for (std::size_t t = 0; t < saved_.size(); ++t) {
      model_.nodes[t].tree = std::move(saved_[t].tree);
      model_.nodes[t].squares = saved_[t].squares;
      model_.nodes[t].drop_histograms();
    }
  }
  void commit() noexcept { saved_.clear(); }

 private:
  struct Saved {
    Tree tree;
    __int128 squares;
  };
  ModelState& model_;
  std::vector<Saved> saved_;
};

void refresh_elsewhere(ModelState& model, int n_threads) {
  const UndoRemote undo_elsewhere(model.elsewhere);
  NodesUndo undo(model);
  model.elsewhere->find({}, {}, model.layout());
  Refresher(model, n_threads).run();
  model.elsewhere->send_trees(0, model.nodes.size(),
                              [&](std::size_t t) -> const Tree& { return model.nodes.tree(t); });
  model.elsewhere->prepare(write_node_half(model));
  // Nothing below can fail.
  undo.commit();
  model.elsewhere->commit();
}

}  // namespace

void refresh(ModelState& model, int n_threads) {
  model.elsewhere ? refresh_elsewhere(model, n_threads) : Refresher(model, n_threads).run();
}

}  // namespace graftboost
