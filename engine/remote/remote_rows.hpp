// The rows of a model that shards in other processes hold, as the node half sees them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/array.hpp"
#include "data/row_table.hpp"
#include "model/gradient_array.hpp"
#include "model/loss.hpp"
#include "model/node_histogram.hpp"
#include "model/params.hpp"
#include "model/tree.hpp"
#include "model/weights.hpp"
#include "remote/encoding.hpp"
#include "remote/requests.hpp"
#include "remote/rounds.hpp"

namespace graftboost {

// A row, of one shard, that gets new cells because a rare column is laid out.
struct RowsWithNewCells {
  WipedVector<std::uint32_t> row, cell;  // numbers of rows, and new cells
  WipedVector<Totals> totals;            // by tree, then row: what it recorded
  WipedVector<std::uint16_t> leaves;     // likewise
  std::uint64_t n_rows = 0;
};

// Rows that a shifted split moved, as values.
struct FetchedMoves {
  RowTable rows;
  WipedVector<std::uint16_t> from, to;  // leaf ids
  WipedVector<Totals> totals;
};

// Turns what the node half needs from the rows into requests, and adds what shards answer to the
// caller's sums. Every sum is one of integers, so a model does not depend on where its rows are.
//
// The operations are all or nothing like those of a RowShard: until commit(), undo() restores all
// shards. Used by one operation of a model at a time; the threads of Rounds::together() may use it
// at once.
class RemoteRows {
 public:
  explicit RemoteRows(Exchange exchange) : rounds_(std::move(exchange)) {}

  Rounds& rounds() { return rounds_; }

  // Begins an operation, which commit() or undo() ends. Requests before it only read.
  void begin() {
    is_begun_ = true;
    rounds_.begin_operation();
  }

  // --- facts ---

  // As of the last read_facts(), with rows that an update has added and before it has removed any.
  std::size_t n_rows() const { return static_cast<std::size_t>(facts_.n_rows); }
  const RowFacts& facts() const { return facts_; }
  void read_facts();
  // Reads them if a shard did not answer when the last operation was committed.
  void ensure_facts() {
    if (!has_facts_) read_facts();
  }

  // The least and the greatest target.
  std::pair<double, double> target_range();
  void add_column_counts(WipedVector<std::uint32_t>& counts, std::size_t n_columns);
  void add_cell_counts(WipedVector<std::uint32_t>& counts);
  void set_layout(std::span<const std::uint32_t> added_columns);
  void put_on_grids(const Loss& loss, TargetSums& sums);
  const WeightStatistics& weights() const { return weights_; }

  // --- training ---

  void begin_training(const Loss& loss, const TrainingParams& params, bool packed,
                      std::span<const double> base_scores,
                      const WipedVector<std::uint32_t>* rows_in_cells);
  void record(std::size_t first_tree);
  void end_training(std::size_t n_trees);

  // --- growing ---

  std::uint32_t new_growth() { return n_growths_++; }
  void start_tree(std::uint32_t growth, std::size_t t);
  void split(std::uint32_t growth, const NodeSplit& split);
  // What the root of a growth answers besides its histogram.
  struct Root {
    Totals total;
    __int128 squares = 0;      // what the growth adds to the tree's sum of squared gradients
    std::uint64_t n_rows = 0;  // also those of weight 0
  };
  // Adds the histogram of the root. `before`, if it is not empty, gets that of what its rows
  // recorded before the growth.
  template <class Sums>
  Root count_root(std::uint32_t growth, Histogram<Sums>& histogram, Histogram<Sums>* before);
  template <class Sums>
  void count(std::uint32_t growth, std::span<const NodeIndex> nodes,
             std::span<Histogram<Sums>* const> histograms);
  // `nodes` are the nodes of the growth that are the leaves of the tree, by leaf id.
  void end_tree(std::uint32_t growth, std::size_t t, const Tree& tree,
                std::span<const NodeIndex> nodes);

  // --- updates ---

  struct Found {
    std::vector<std::uint8_t> is_removed_held, is_added_held;  // in the order of the ids
  };
  // Begins an update: rows to remove are marked, and fetched. No id may occur twice.
  Found find(std::span<const RowId> removed, std::span<const RowId> added,
             const CodeLayout& layout);
  const FetchedRows& removed() const { return removed_; }
  // The rows of the update as values, encoded.
  void add(RowTable rows);
  const RowTable& added() const { return added_; }
  void set_base_scores(std::span<const double> base_scores);
  void count_rare(std::span<const std::uint32_t> columns, std::span<std::int64_t> counts);
  // `layout` has these columns.
  std::vector<RowsWithNewCells> lay_out(std::span<const std::uint32_t> columns,
                                        const CodeLayout& layout);
  void mark_used_columns(std::vector<bool>& used);
  // Where the added rows are in a tree, and what they record there.
  void place(std::size_t t, std::span<const std::uint16_t> leaves,
             std::span<const Gradient> recorded);
  template <class Sums>
  void count_nodes(std::size_t t, std::span<const std::vector<std::int32_t>> leaves,
                   std::span<Histogram<Sums>* const> histograms);
  // The same of the rows held before the update.
  template <class Sums>
  void recount(std::size_t t, std::span<const NodeIndex> nodes,
               std::span<Histogram<Sums>* const> histograms);
  std::vector<FetchedMoves> shift(std::size_t t, NodeIndex node, const Split& before,
                                  const Split& after, const CodeLayout& layout);
  void merge_leaves(std::size_t t, std::int32_t from, std::int32_t to);
  // Shards know these trees.
  template <class Nodes>
  void know_trees(const Nodes& nodes) {
    sent_.clear();
    for (const auto& of_tree : nodes) sent_.push_back(of_tree.tree);
  }
  // Shards know the trees as they were when this was last called.
  void send_trees(std::size_t t_begin, std::size_t t_end,
                  const std::function<const Tree&(std::size_t)>& tree);

  void begin_regrowing(std::size_t first_tree, std::size_t n_rows, std::size_t n_rows_left);
  void start_node(std::uint32_t growth, std::size_t t, std::span<const std::int32_t> leaves,
                  bool wants_before);
  // `nodes` of the growth get these leaf ids.
  void end_node(std::uint32_t growth, std::size_t t, std::span<const NodeIndex> nodes,
                std::span<const std::int32_t> leaf_ids);

  // Sums of gradients and hessians by leaf id, per tree of the iteration, and squares.
  struct LeafTotals {
    std::vector<Totals> of_leaves;
    __int128 squares = 0;
  };
  std::vector<LeafTotals> refresh(std::size_t first_tree, std::size_t k_trees,
                                  std::size_t n_leaf_ids);
  void refit(std::span<const std::int32_t> relabel, LossKind kind, int n_classes);

  // The columns besides those with cuts that are laid out from the commit on.
  void set_layout_at_commit(std::span<const std::uint32_t> added_columns);
  // Sends what waits, so that nothing is left to be done but to commit.
  void prepare(const Bytes& node_half);
  // From here on the operation is done, even if a shard does not answer: whoever exchanges messages
  // sees to it that the shard learns of it.
  void commit() noexcept;
  void undo() noexcept;

  // --- reading ---

  void add_target_sums(TargetSums& sums);
  struct CheckedTree {
    std::vector<Totals> of_leaves;  // by leaf id
    __int128 squares = 0;
    std::uint64_t n_misplaced = 0;  // rows in another leaf than their codes lead to
  };
  CheckedTree check_tree(std::size_t t, std::size_t n_leaf_ids);
  std::vector<RowId> ids();
  void mark_held_codes(std::uint32_t feature, std::span<std::uint8_t> held);
  // The rows from `begin` on of every shard, up to `end`; there may be none left.
  std::vector<FetchedRows> fetch(std::size_t begin, std::size_t end, const CodeLayout& layout);
  // Each shard takes those rows that a hash of the id assigns to it.
  void give(const FetchedRows& rows);

 private:
  class Weights final : public WeightStatistics {
   public:
    explicit Weights(Rounds& rounds) : rounds_(rounds) {}
    double largest() const override;
    Sum sum(double top) const override;
    std::vector<std::uint64_t> count(const Steps& steps) const override;

   private:
    Rounds& rounds_;
  };

  void set_facts(const Answer& answer);
  void end(RequestKind kind, Phase phase) noexcept;
  static void add_target_sums(const Answer& answer, TargetSums& sums);
  template <class Sums>
  void ask_histograms(RequestKind kind, const Writer& request,
                      std::span<Histogram<Sums>* const> histograms);

  Rounds rounds_;
  Weights weights_{rounds_};
  RowFacts facts_;
  bool has_facts_ = false;
  std::atomic<std::uint32_t> n_growths_ = 0;
  FetchedRows removed_;
  RowTable added_;
  bool is_begun_ = false;                          // an operation, and shards know of it
  std::mutex sent_lock_;                           // trees that grow side by side end side by side
  std::vector<Tree> sent_;                         // trees as shards know them
  std::map<std::size_t, Tree> replaced_;           // as shards knew them before the update
  std::vector<LeafValue> replaced_values_;         // likewise, of other trees, in order
  std::optional<std::vector<Tree>> before_refit_;  // likewise
};

// Undoes what was begun in rows elsewhere, if there are any, unless it was committed.
class UndoRemote {
 public:
  explicit UndoRemote(std::shared_ptr<RemoteRows> rows) : rows_(std::move(rows)) {
    if (rows_) rows_->ensure_facts();
  }
  UndoRemote(const UndoRemote&) = delete;
  ~UndoRemote() {
    if (rows_) rows_->undo();
  }

 private:
  std::shared_ptr<RemoteRows> rows_;
};

}  // namespace graftboost
