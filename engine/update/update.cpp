#include "update/update.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "data/table.hpp"
#include "train/refit.hpp"
#include "update/changed_rows.hpp"
#include "update/deferral.hpp"
#include "update/node_undo.hpp"
#include "update/request_checks.hpp"
#include "update/update_context.hpp"
#include "update/update_trees.hpp"

namespace graftboost {
namespace {

// --- in place ------------------------------------------------------------------------------------

// Restores the rows of all shards unless the update is committed.
class ShardsUndo {
 public:
  explicit ShardsUndo(Shards& shards) : shards_(shards) {}
  ShardsUndo(const ShardsUndo&) = delete;
  ~ShardsUndo() {
    for (RowShard& shard : shards_) shard.undo();  // nothing if it was committed
  }

 private:
  Shards& shards_;
};

// Marks removed rows and takes their targets out of the sums.
void begin_removal(ModelState& model, const RemovedSlots& removed) {
  for (std::size_t s = 0; s < removed.size(); ++s) {
    RowShard& shard = model.shards[s];
    shard.begin_update(removed[s]);
    for (const Slot slot : removed[s])
      model.target_sums.add(shard.rows.target[slot], -shard.weight_of(slot));
  }
}

template <class Table>
void append_rows(ModelState& model, const Sample<Table>& added, int n_threads) {
  model.shards.append(*model.bins, added, model.loss.kind, n_threads);
  for (RowShard& shard : model.shards) {
    shard.put_on_grids(model.loss, shard.n_before());
    model.add_targets(shard, shard.n_before());
    shard.extend_trees();
  }
}

// Columns that were too rare to be split, and that enough rows have now, are laid out. Returns the
// new cells of all rows by shard; nothing if there are no such columns.
std::optional<std::vector<WipedVector<RowTable::NewCell>>> lay_out_frequent_columns(
    ModelState& model) {
  std::vector<std::uint32_t> columns;
  for (RowShard& shard : model.shards) {
    const auto rare = shard.rows.rare_columns(static_cast<Slot>(shard.n_before()));
    columns.insert(columns.end(), rare.begin(), rare.end());
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  std::erase_if(columns, [&](std::uint32_t column) {
    std::int64_t n = 0;
    for (RowShard& shard : model.shards) n += shard.rows.n_rows_with(column);
    return n < model.params.min_samples_leaf;
  });
  if (columns.empty()) return std::nullopt;
  CodeLayout layout = model.layout();
  layout.add(columns);
  std::vector<WipedVector<RowTable::NewCell>> cells;
  for (RowShard& shard : model.shards) cells.push_back(shard.rows.new_cells(layout, columns));
  for (std::size_t s = 0; s < model.shards.size(); ++s)
    model.shards[s].lay_out_columns(layout, columns, cells[s]);
  return cells;
}

// Columns that no row has any more leave the layout: nothing may reveal that a row had them. If a
// tree still splits by such a column, it stays as long as the split does.
std::optional<CodeLayout> layout_without_unused(const ModelState& model,
                                                const ChangedRows& changed) {
  std::vector<Slot> removed(changed.n_removed());
  std::iota(removed.begin(), removed.end(), Slot{0});
  if (!changed.rows().have_added_columns(removed)) return std::nullopt;
  const std::span<const std::uint32_t> added = model.layout().added();
  std::vector<bool> used(added.size());
  for (const RowShard& shard : model.shards) shard.rows.mark_added_columns(shard.removed(), used);
  std::vector<std::uint32_t> split_by;
  for (const TreeNodes& nodes : model.nodes)
    for (const Node& node : nodes.tree.nodes) split_by.push_back(node.split.feature);
  std::sort(split_by.begin(), split_by.end());
  std::vector<std::uint32_t> kept;
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (used[i] || std::ranges::binary_search(split_by, added[i])) kept.push_back(added[i]);
  }
  if (kept.size() == added.size()) return std::nullopt;
  CodeLayout layout(*model.bins);
  layout.add(kept);
  return layout;
}

void exchange_layout(ModelState& model, std::vector<CodeLayout>& layouts) noexcept {
  for (std::size_t s = 0; s < model.shards.size(); ++s)
    model.shards[s].rows.exchange_layout(layouts[s]);
  const CodeLayout& before = layouts[0];
  for (TreeNodes& nodes : model.nodes) {
    for (GainBounds& bounds : nodes.bounds) bounds.forget();
    std::visit(
        [&](auto& histograms) {
          for (auto& histogram : histograms) histogram.move_cells(before, model.layout());
        },
        nodes.histograms);
  }
}

// False, and nothing has changed, if a refit is cheaper.
template <class Table>
bool update_in_place(ModelState& model, const Sample<Table>* added, const RemovedSlots& removed,
                     const UpdateRule& rule, UpdateCounts& counts, int n_threads) {
  NodeUndo undo(model);
  const ShardsUndo rows_undo(model.shards);
  begin_removal(model, removed);
  if (added != nullptr) append_rows(model, *added, n_threads);
  model.base_scores = model.loss.base_scores(model.target_sums);
  const auto new_cells = lay_out_frequent_columns(model);
  ChangedRows changed(model, n_threads);
  if (new_cells) changed.set_new_cells(model, *new_cells);
  UpdateContext context(model, rule, undo, n_threads);
  if (!update_trees(context, changed, counts)) return false;

  std::vector<std::vector<RowTable::Move>> moves;
  for (const RowShard& shard : model.shards) moves.push_back(shard.moves_to_commit());
  std::vector<CodeLayout> layouts;
  if (const auto layout = layout_without_unused(model, changed))
    layouts.assign(model.shards.size(), *layout);

  counts.rows_deferred = model.deferred.n_rows();

  // Nothing below can fail.
  undo.commit();
  for (std::size_t s = 0; s < model.shards.size(); ++s) model.shards[s].commit(moves[s]);
  if (!layouts.empty()) exchange_layout(model, layouts);
  return true;
}

// --- by a refit ----------------------------------------------------------------------------------

void grow_classes(ModelState& model, std::span<const std::int32_t> relabel, int n_classes) {
  model.loss.kind = LossKind::softmax;
  model.loss.n_classes = n_classes;
  for (RowShard& shard : model.shards) {
    for (std::int32_t& target : shard.rows.target)
      target = relabel[static_cast<std::size_t>(target)];
  }
}

UpdateCounts refit_instead(ModelState& model, int n_threads,
                           const std::function<void(ModelState&)>& change = {}) {
  const auto start = std::chrono::steady_clock::now();
  refit(model, n_threads, change);
  UpdateCounts counts;
  counts.refitted = true;
  counts.seconds_refitting =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return counts;
}

}  // namespace

template <class Table>
UpdateCounts update(ModelState& model, const UpdateRequest<Table>& request, const UpdateRule& rule,
                    int n_threads) {
  const CheckedRequest checked = check_request(model, request, rule);
  UpdateCounts counts;
  if (!checked.refits &&
      update_in_place(model, request.added, checked.removed, rule, counts, n_threads))
    return counts;
  return refit_instead(model, n_threads, [&](ModelState& next) {
    if (checked.grows) grow_classes(next, request.relabel, request.n_classes);
    if (request.added != nullptr)
      next.shards.append(*next.bins, *request.added, next.loss.kind, n_threads);
    for (std::size_t s = 0; s < checked.removed.size(); ++s) {
      RowTable& rows = next.shards[s].rows;
      rows.vacate(checked.removed[s], rows.moves_to_vacate(checked.removed[s]));
    }
  });
}

UpdateCounts regrow(ModelState& model, const UpdateRule& rule, double most_work, int n_threads) {
  UpdateCounts counts;
  if (model.deferred.empty()) return counts;
  bool reaches_target = false;
  {
    NodeUndo undo(model);
    const ShardsUndo rows_undo(model.shards);
    begin_removal(model, RemovedSlots(model.shards.size()));
    ChangedRows none(model, n_threads);
    UpdateContext context(model, rule, undo, n_threads);
    if (regrow_deferred(context, none, most_work, reaches_target, counts)) {
      // Nothing below can fail.
      undo.commit();
      for (RowShard& shard : model.shards) shard.commit({});
      if (reaches_target) forget_deferred(model);
      counts.rows_deferred = model.deferred.n_rows();
      return counts;
    }
  }
  return refit_instead(model, n_threads);
}

PendingSurvey survey_pending(ModelState& model, const UpdateRule& rule, int n_threads) {
  if (model.deferred.empty()) return {};
  NodeUndo undo(model);
  const ShardsUndo rows_undo(model.shards);
  begin_removal(model, RemovedSlots(model.shards.size()));
  ChangedRows none(model, n_threads);
  UpdateContext context(model, rule, undo, n_threads);
  return survey_deferred(context, none);
}

MemorySurvey survey_removal(ModelState& model, std::span<const RowId> ids,
                            const std::string& argument, const UpdateRule& rule, int n_threads) {
  const UpdateRequest<DenseTable<double>> request{nullptr, ids, argument, {}, 1};
  const CheckedRequest checked = check_request(model, request, rule);
  NodeUndo undo(model);
  const ShardsUndo rows_undo(model.shards);
  begin_removal(model, checked.removed);
  model.base_scores = model.loss.base_scores(model.target_sums);
  ChangedRows changed(model, n_threads);
  UpdateContext context(model, rule, undo, n_threads);
  MemorySurvey found = survey_trees(context, changed);
  // The order of changed rows depends on shards.
  WipedVector<std::pair<RowId, double>> by_id;
  for (std::size_t i = 0; i < changed.size(); ++i)
    by_id.emplace_back(changed.rows().ids[i], found.memory[i]);
  std::ranges::sort(by_id);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto of_row =
        std::ranges::lower_bound(by_id, ids[i], {}, &std::pair<RowId, double>::first);
    found.memory[i] = of_row->second;
  }
  return found;
}

#define GRAFTBOOST_FOR_TABLE(Table) \
  template UpdateCounts update(ModelState&, const UpdateRequest<Table>&, const UpdateRule&, int);
GRAFTBOOST_FOR_TABLE(DenseTable<float>)
GRAFTBOOST_FOR_TABLE(DenseTable<double>)
GRAFTBOOST_FOR_TABLE(SparseTable<float>)
GRAFTBOOST_FOR_TABLE(SparseTable<double>)

}  // namespace graftboost
