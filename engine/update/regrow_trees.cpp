#include "update/regrow_trees.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "update/fresh_gradients.hpp"
#include "update/regrow.hpp"

namespace graftboost {
namespace {

// Goes through the iterations in order, because fresh gradients depend on the trees before. Owns
// these gradients and a regrower per thread.
template <class Sums>
class IterationRegrower {
 public:
  IterationRegrower(const UpdateContext& context,
                    std::span<const std::unique_ptr<SplitChecker<Sums>>> checkers,
                    std::span<TreeProgress> progress)
      : context_(context),
        progress_(progress),
        n_threads_(static_cast<int>(checkers.size())),
        fresh_(context.model, n_threads_),
        cells_(GrowingCells::of_layout(context.model.shards)) {
    for (const auto& checker : checkers)
      idle_.push_back(std::make_unique<Regrower<Sums>>(context, fresh_, cells_, *checker));
    // Nodes that are regrown side by side ask rows elsewhere together, so there should be many.
    for (std::size_t i = idle_.size(); context.model.elsewhere && i < Rounds::most_together; ++i) {
      more_checkers_.push_back(std::make_unique<SplitChecker<Sums>>(context));
      idle_.push_back(
          std::make_unique<Regrower<Sums>>(context, fresh_, cells_, *more_checkers_.back()));
    }
    tasks_.resize(progress.size());
    std::vector<Task*> all;
    for (std::size_t t = 0; t < progress.size(); ++t) {
      for (const NodeIndex i : progress[t].failed)
        tasks_[t].push_back({t, i, n_rows_at(t, i), {}, {}, {}});
      for (Task& task : tasks_[t]) {
        n_rows_left_ += task.n_rows;
        all.push_back(&task);
      }
    }
    with_regrowers(all.size(), [&](Regrower<Sums>& regrower, std::size_t i) {
      all[i]->reaching = regrower.find_rows(all[i]->t, all[i]->node);
    });
  }

  // Regrows the nodes of the trees from `first` to `end` side by side, the largest first, so that
  // threads finish at about the same time.
  void regrow(std::size_t first, std::size_t end) {
    std::vector<std::size_t> trees;
    std::vector<Task> tasks;
    for (std::size_t t = first; t < end; ++t) {
      if (!progress_[t].order_changed) continue;
      trees.push_back(t);
      context_.undo.save_tree(t);
      std::move(tasks_[t].begin(), tasks_[t].end(), std::back_inserter(tasks));
    }
    if (trees.empty()) return;
    std::int64_t n_rows = 0;
    for (const Task& task : tasks) n_rows += task.n_rows;
    fresh_.begin_iteration(first, static_cast<std::size_t>(n_rows),
                           static_cast<std::size_t>(n_rows_left_));
    if (context_.model.elsewhere) {
      send_final_trees(first);
      context_.model.elsewhere->begin_regrowing(first, static_cast<std::size_t>(n_rows),
                                                static_cast<std::size_t>(n_rows_left_));
    }
    n_rows_left_ -= n_rows;
    std::stable_sort(tasks.begin(), tasks.end(),
                     [](const Task& a, const Task& b) { return a.n_rows > b.n_rows; });
    with_regrowers(tasks.size(), [&](Regrower<Sums>& regrower, std::size_t i) {
      Task& task = tasks[i];
      task.regrown = regrower.regrow(task.t, task.node, task.reaching, task.counts);
    });
    for (const Task& task : tasks) progress_[task.t].counts += task.counts;
    with_regrowers(trees.size(), [&](Regrower<Sums>& regrower, std::size_t j) {
      std::vector<Regrown<Sums>> regrown;
      for (Task& task : tasks) {
        if (task.t == trees[j]) regrown.push_back(std::move(task.regrown));
      }
      regrower.graft_in(trees[j], std::move(regrown), progress_[trees[j]].counts);
    });
  }

 private:
  // A node to be regrown, and the result.
  struct Task {
    std::size_t t;
    NodeIndex node;
    std::int64_t n_rows;
    std::vector<ReachingRows> reaching;  // the rows, per shard
    UpdateCounts counts;
    Regrown<Sums> regrown;
  };

  std::int64_t n_rows_at(std::size_t t, NodeIndex i) const {
    return context_.model.nodes.tree(t)[i].sums.n;
  }

  // Fresh gradients depend on the trees before.
  void send_final_trees(std::size_t first) {
    context_.model.elsewhere->send_trees(
        n_sent_, first, [&](std::size_t t) -> const Tree& { return context_.model.nodes.tree(t); });
    n_sent_ = first;
  }

  // Calls `use` with every number below n and a regrower that no other thread has at the time.
  template <class Use>
  void with_regrowers(std::size_t n, Use&& use) {
    const auto with_one = [&](std::size_t i) {
      std::unique_ptr<Regrower<Sums>> regrower;
      {
        std::lock_guard lock(idle_lock_);
        regrower = std::move(idle_.back());
        idle_.pop_back();
      }
      use(*regrower, i);
      std::lock_guard lock(idle_lock_);
      idle_.push_back(std::move(regrower));
    };
    if (!context_.model.elsewhere) return parallel(n_threads_, n, with_one);
    context_.model.elsewhere->rounds().together(n, with_one);
  }

  const UpdateContext& context_;
  std::span<TreeProgress> progress_;
  int n_threads_;
  FreshGradients fresh_;
  std::int64_t n_rows_left_ = 0;  // of nodes that are still to be regrown
  GrowingCells cells_;
  std::size_t n_sent_ = 0;  // trees that shards elsewhere have as they will stay
  std::vector<std::unique_ptr<SplitChecker<Sums>>> more_checkers_;
  std::mutex idle_lock_;
  std::vector<std::unique_ptr<Regrower<Sums>>> idle_;
  std::vector<std::vector<Task>> tasks_;  // per tree, until they are done
};

}  // namespace

template <class Sums>
void regrow_trees(const UpdateContext& context,
                  std::span<const std::unique_ptr<SplitChecker<Sums>>> checkers,
                  std::span<TreeProgress> progress) {
  const auto changed = [](const TreeProgress& tree) { return tree.order_changed; };
  if (std::none_of(progress.begin(), progress.end(), changed)) return;
  IterationRegrower<Sums> regrower(context, checkers, progress);
  const auto k_trees = static_cast<std::size_t>(context.model.trees_per_iteration());
  for (std::size_t first = 0; first < progress.size(); first += k_trees)
    regrower.regrow(first, first + k_trees);
}

#define GRAFTBOOST_FOR_SUMS(Sums)                                                  \
  template void regrow_trees(const UpdateContext&,                                 \
                             std::span<const std::unique_ptr<SplitChecker<Sums>>>, \
                             std::span<TreeProgress>);
GRAFTBOOST_FOR_SUMS(PackedSums)
GRAFTBOOST_FOR_SUMS(WideSums)

}  // namespace graftboost
