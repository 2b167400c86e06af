// The model as callers use it: locked, verified, all or nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/forking.hpp"
#include "data/sample.hpp"
#include "model/inspection.hpp"
#include "model/model_state.hpp"
#include "train/boosting.hpp"
#include "update/update.hpp"

namespace graftboost {

// So many values per row, row by row.
template <class T>
struct Columns {
  std::vector<T> values;
  std::size_t per_row = 0;
};

// What a fit needs besides the rows.
struct FitParams {
  LossKind loss = LossKind::squared;
  int n_classes = 1;
  TrainingParams training;
  std::size_t histogram_memory = std::numeric_limits<std::size_t>::max();
  Stopping stopping;
  std::size_t n_shards = 1;
};

// Owns a ModelState; every operation goes through it. What it guarantees:
//   - Any number of threads may use it at once. Changes exclude each other and all reading of the
//     state; predictions use a snapshot of the trees as of the last change.
//   - A change that throws has changed nothing.
//   - State that came from a file is verified before it is first used.
//   - A process can fork at any time: the fork waits until no thread is at work on a model.
class Model {
 public:
  explicit Model(ModelState state);
  ~Model();
  Model(const Model&) = delete;

  template <class Table>
  static std::unique_ptr<Model> fit(std::shared_ptr<const BinMap> bins, const Sample<Table>& sample,
                                    const Sample<Table>* validation, const FitParams& params,
                                    const OnIteration& on_iteration, int n_threads);
  // A model whose rows shards in other processes hold, encoded by these bins.
  template <class Table>
  static std::unique_ptr<Model> fit(std::shared_ptr<const BinMap> bins,
                                    std::shared_ptr<RemoteRows> rows,
                                    const Sample<Table>* validation, const FitParams& params,
                                    const OnIteration& on_iteration, int n_threads);
  // A model of its own with the rows that shards in other processes hold, and the reverse: gives the
  // rows to shards that know the node half.
  std::unique_ptr<Model> gather() const;
  void scatter(RemoteRows& to) const;
  // Shards in other processes hold the rows of this model, which has none itself.
  void attach(std::shared_ptr<RemoteRows> rows);
  std::unique_ptr<Model> copy() const;

  // --- changes -----------------------------------------------------------------------------------

  template <class Table>
  UpdateCounts update(const UpdateRequest<Table>& request, const UpdateRule& rule, int n_threads);
  UpdateCounts regrow(const UpdateRule& rule, double most_work, int n_threads);
  void refit(int n_threads);
  void refresh(int n_threads);
  // What the model remembers of these rows. Nothing changes that predictions or updates depend on.
  MemorySurvey memory_of(std::span<const RowId> ids, const std::string& argument,
                         const UpdateRule& rule, int n_threads);
  // What updates have deferred. Nothing changes, likewise.
  PendingSurvey pending(const UpdateRule& rule, int n_threads);
  // How many changes were made. A caller that was interrupted can tell whether its own was.
  std::int64_t n_changes() const;
  void set_histogram_memory(std::size_t bytes);

  // --- predictions -------------------------------------------------------------------------------

  // Scores of iterations [first, last), one column per tree of an iteration, in the target's own
  // units. Those of iteration 0 include the base score; last < 0 means all.
  template <class Table>
  Columns<double> scores(const Table& x, int first, int last, int n_threads) const;
  template <class Table>
  Columns<std::int32_t> leaf_ids(const Table& x, int n_threads) const;

  // --- reading -----------------------------------------------------------------------------------

  const BinMap& bins() const { return *bins_; }
  bool updatable() const { return updatable_; }
  // Calls `use` with the state while nothing changes it. Of a model from a file, only what
  // predictions need may be read; read_verified() allows everything.
  template <class Use>
  auto read(Use&& use) const {
    const Exclusive lock(*this);
    return use(std::as_const(state_));
  }
  template <class Use>
  auto read_verified(Use&& use) const {
    ensure_verified();
    return read(std::forward<Use>(use));
  }
  // The nodes of a tree, with gains of the present rows; empty if there is no such tree.
  std::vector<Node> tree_nodes(std::size_t t);
  HeldRows held_rows(std::span<const RowId> ids);
  // Throws std::runtime_error unless every stored sum is that of the rows.
  void check_state(int n_threads) const;

  // Verifies rows and state before they are first used. `verify_file` is called first, if there is
  // one, and may throw; then all recorded gradients are verified as well.
  void require_verification(std::function<void()> verify_file);

 private:
  // Held by whoever changes or reads the state.
  class Exclusive {
   public:
    explicit Exclusive(const Model& model) : lock_(model.lock_) {}

   private:
    ForkBarrier::AtWork at_work_;  // first: a fork waits for all who hold or want the lock
    std::lock_guard<std::mutex> lock_;
  };
  struct Snapshot;

  template <class Table>
  static std::unique_ptr<Model> fit(ModelState state, const Sample<Table>* validation,
                                    const FitParams& params, const OnIteration& on_iteration,
                                    int n_threads);
  // Runs a change under the lock and lets predictions see its result.
  template <class Change>
  auto change(Change&& change);
  void require_updatable() const;
  void ensure_verified() const;
  std::shared_ptr<const Snapshot> snapshot() const;

  ModelState state_;
  std::shared_ptr<const BinMap> bins_;
  bool updatable_;
  std::int64_t n_changes_ = 0;

  mutable std::mutex lock_;
  mutable std::mutex snapshot_lock_;
  mutable std::shared_ptr<const Snapshot> snapshot_;  // none since the last change

  mutable std::atomic<bool> is_unverified_ = false;
  mutable ForkSafeLock verification_lock_;
  mutable std::function<void()> verify_file_;
};

}  // namespace graftboost
