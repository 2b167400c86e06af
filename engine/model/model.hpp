// The model: trees, the rows they were grown from, and the state that makes them updatable.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/bins.hpp"
#include "core/forking.hpp"
#include "train/tree_grower.hpp"
#include "data/row_index.hpp"
#include "model/loss.hpp"
#include "data/table.hpp"
#include "predict/scorer.hpp"
#include "data/row_table.hpp"
#include "model/tree.hpp"

namespace graftboost {

struct TrainingParams {
  int n_estimators = 100;
  double learning_rate = 0.1;
  int max_leaf_nodes = 31;
  int min_samples_leaf = 20;
  double l2_regularization = 0;
  double subsample = 1;
  std::uint64_t seed = 0;
  bool updatable = true;
};

// RowTable to learn from or to validate on; `weight` and `ids` may be empty.
template <class Table>
struct Sample {
  Table x;
  std::span<const double> y;
  std::span<const double> weight;
  std::span<const RowId> ids;
};

// Throws std::invalid_argument if a table does not have a column for each feature.
void check_columns(std::size_t n_columns, const BinMap& bins);

// Throws std::invalid_argument if a sample is not one for a model with these bins and so many classes (1
// for squared error): arrays of other lengths, or numbers that stand for nothing.
template <class Table>
void check_sample(const Sample<Table>& sample, const BinMap& bins, int n_classes);

// So many values a row, row by row.
template <class T>
struct Columns {
  std::vector<T> values;
  std::size_t per_row = 0;
};

// When to stop before n_estimators: after `patience` iterations in which the validation loss did not
// fall by more than `tolerance` below its best. 0 means never. The best iteration is kept.
struct Stopping {
  int patience = 0;
  double tolerance = 0;
};

// Called after every iteration with how many are done and the validation loss (NaN without one);
// true ends training there. May throw: then nothing of the fit remains.
using OnIteration = std::function<bool(int, double)>;

// Owns all of it. What always holds: every sum in `trees` and `states` is the integer sum of what the
// rows recorded; a leaf's value is a function of its sums; slot i means the same row everywhere.
class Forest {
 public:
  template <class Table>
  static std::unique_ptr<Forest> fit(std::shared_ptr<const BinMap> bins,
                                     const Sample<Table>& sample, LossKind kind, int n_classes,
                                     const TrainingParams& params, std::size_t stats_memory,
                                     const Sample<Table>* validation, const Stopping& stopping,
                                     const OnIteration& on_iteration, int n_threads);

  // Appends rows, without recording anything of them in the trees or putting their targets and weights on
  // the grids.
  template <class Table>
  void append(const Sample<Table>& sample, int n_threads);

  std::unique_ptr<Forest> copy() const;

  // Trains all trees on the rows held: the same forest that fit() makes of them with these bins. It is
  // trained aside, on a copy of the rows that `change` may alter first, and then takes the place of this
  // one: if anything throws, nothing has changed. To be called with the lock held.
  void refit(int n_threads, const std::function<void(Forest&)>& change = {});

  int trees_per_iteration() const { return loss.trees_per_iteration(); }
  int n_iterations() const { return static_cast<int>(trees.size()) / trees_per_iteration(); }
  // When training is done, if it does not stop before.
  std::size_t n_trees_meant() const {
    return static_cast<std::size_t>(params.n_estimators) *
           static_cast<std::size_t>(trees_per_iteration());
  }

  // Scores of iterations [first, last), row by row with one column per tree of an iteration, in the
  // target's own units; the base score comes with iteration 0, and last < 0 means all.
  template <class Table>
  Columns<double> scores(const Table& x, int first, int last, int n_threads) const;
  template <class Table>
  Columns<std::int32_t> leaf_ids(const Table& x, int n_threads) const;

  // Sum of the gains of each feature's splits.
  std::vector<double> gain_importances() const;

  // Counts everything again from the rows. Returns what differs, or nothing.
  std::optional<std::string> find_fault(int n_threads) const;

  // Where the row with this id is, by the index, which must be built. If there is none, throws
  // std::invalid_argument, and calls the id by the name of the caller's argument.
  Slot slot_of(RowId id, const std::string& argument) const;

  // The regularization beside sums, which are in units of the weight scale.
  double l2() const { return params.l2_regularization / loss.weight_scale; }

  // Whether a row belongs to a tree's subsample: a hash, so that nothing need be stored.
  bool in_bag(std::size_t tree, RowId id) const {
    return params.subsample >= 1 ||
           as_fraction(hash(params.seed, tree, static_cast<std::uint64_t>(id))) < params.subsample;
  }
  Contributions contributions_to(std::size_t tree) const {
    return {states[tree].recorded.data(), rows.weight.empty() ? nullptr : rows.weight.data(),
            loss.kind};
  }

  std::shared_ptr<const BinMap> bins;
  Loss loss;
  TrainingParams params;
  RowTable rows;
  RowIndex index;                    // of rows.ids
  TargetSums target_sums;           // of the rows held
  std::vector<double> base_scores;  // follow from target_sums; one per tree of an iteration
  double noise = 1;  // the scale of gains: mean weight, times residual variance for squared error
  std::vector<Tree> trees;        // tree = iteration * trees_per_iteration + class
  std::vector<TreeState> states;  // one per tree; empty when not updatable
  std::vector<double> validation_losses;
  // Bytes that the candidates' sums of all nodes may take. Not of the model but of the machine.
  std::size_t stats_memory = std::numeric_limits<std::size_t>::max();

  // Held while the forest changes, or is looked at. Predictions meanwhile go on with the last snapshot,
  // if they have made one, or wait; so they see the forest before or after, never between.
  class Exclusive {
   public:
    explicit Exclusive(const Forest& forest) : lock_(forest.change_lock_) {}

   private:
    ForkBarrier::AtWork at_work_;  // first: a fork waits for those who hold or want the lock
    std::lock_guard<std::mutex> lock_;
  };
  // RowTable and states that came from outside are unseen until they are used for the first time. Then this
  // is called, by one thread at a time, and throws if they are not sound.
  mutable std::atomic<bool> unseen = false;
  mutable ForkSafeLock look_lock;
  mutable std::function<void()> first_look;
  // To be called at the end of a change, with the lock held: predictions see it from then on.
  void publish_change() noexcept;
  // How many there were. Whoever was interrupted can tell whether its own was made.
  std::int64_t n_changes = 0;

  // Forgets what rows recorded, and leaves none of it in memory.
  void drop_states(int n_threads);

  // The scales of targets and weights, from all rows held.
  void set_scales();
  // Targets and weights of the rows from `first` on, and their part of the target sums.
  void put_on_grids(std::size_t first);

 private:
  struct Snapshot;
  std::shared_ptr<const Snapshot> snapshot() const;

  mutable std::mutex change_lock_;
  mutable std::mutex snapshot_lock_;
  mutable std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace graftboost
