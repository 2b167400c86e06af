#include "update/update.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "data/table.hpp"
#include "remote/node_half.hpp"
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

// Takes the targets of rows elsewhere out of the sums, or adds them.
void add_targets(ModelState& model, const RowTable& rows, int sign) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t weight = rows.weight.empty() ? 1 : rows.weight[i];
    model.target_sums.add(rows.target[i], sign * weight);
  }
}

// Marks removed rows and takes their targets out of the sums.
void begin_removal(ModelState& model, const RemovedSlots& removed) {
  for (std::size_t s = 0; s < removed.size(); ++s) {
    RowShard& shard = model.shards[s];
    shard.begin_update(removed[s]);
    for (const Slot slot : removed[s])
      model.target_sums.add(shard.rows.target[slot], -shard.weight_of(slot));
  }
  if (model.elsewhere) add_targets(model, model.elsewhere->removed().rows, -1);
}

// Added rows as values, encoded, on the grids of the loss if it has them.
template <class Table>
RowTable encode_rows(const ModelState& model, const Sample<Table>& added, bool on_grids,
                     int n_threads) {
  RowShard encoded;
  encoded.rows.layout = model.layout();
  encoded.append(*model.bins, added, model.loss.kind, n_threads);
  RowTable& rows = encoded.rows;
  if (rows.raw_weight.empty() && model.loss.weighted) {
    rows.raw_weight.resize(rows.size());
    rows.raw_weight.fill(1);
    rows.weight.resize(rows.size());
  }
  if (on_grids) encoded.put_on_grids(model.loss, 0);
  return std::move(rows);
}

template <class Table>
void append_rows(ModelState& model, const Sample<Table>& added, int n_threads) {
  if (model.elsewhere) {
    model.elsewhere->add(encode_rows(model, added, true, n_threads));
    add_targets(model, model.elsewhere->added(), 1);
    return;
  }
  model.shards.append(*model.bins, added, model.loss.kind, n_threads);
  for (RowShard& shard : model.shards) {
    shard.put_on_grids(model.loss, shard.n_before());
    model.add_targets(shard, shard.n_before());
    shard.extend_trees();
  }
}

// Rows with cells of columns that were too rare to be split until now.
struct NewCells {
  std::vector<WipedVector<RowTable::NewCell>> here;  // per shard
  std::vector<RowsWithNewCells> elsewhere;
};

// Columns that were too rare to be split, and that enough rows have now, are laid out. Returns the
// new cells of all rows; nothing if there are no such columns.
std::optional<NewCells> lay_out_frequent_columns(ModelState& model) {
  std::vector<std::uint32_t> columns;
  const auto add = [&](const RowTable& rows, std::size_t first) {
    const auto rare = rows.rare_columns(static_cast<Slot>(first));
    columns.insert(columns.end(), rare.begin(), rare.end());
  };
  for (RowShard& shard : model.shards) add(shard.rows, shard.n_before());
  if (model.elsewhere) add(model.elsewhere->added(), 0);
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  if (columns.empty()) return std::nullopt;
  std::vector<std::int64_t> counts(columns.size());
  for (RowShard& shard : model.shards)
    for (std::size_t i = 0; i < columns.size(); ++i)
      counts[i] += shard.rows.n_rows_with(columns[i]);
  if (model.elsewhere) model.elsewhere->count_rare(columns, counts);
  std::vector<std::uint32_t> frequent;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (counts[i] >= model.params.min_samples_leaf) frequent.push_back(columns[i]);
  if (frequent.empty()) return std::nullopt;
  CodeLayout layout = model.layout();
  layout.add(frequent);
  NewCells cells;
  for (RowShard& shard : model.shards) cells.here.push_back(shard.rows.new_cells(layout, frequent));
  for (std::size_t s = 0; s < model.shards.size(); ++s)
    model.shards[s].lay_out_columns(layout, frequent, cells.here[s]);
  if (model.elsewhere) cells.elsewhere = model.elsewhere->lay_out(frequent, layout);
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
  if (model.elsewhere) model.elsewhere->mark_used_columns(used);
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

// Shards elsewhere get all trees as they are now; `layout` is that after the commit. If this fails,
// everything can still be undone.
void prepare_elsewhere(ModelState& model, const CodeLayout& layout) {
  model.elsewhere->send_trees(0, model.nodes.size(),
                              [&](std::size_t t) -> const Tree& { return model.nodes.tree(t); });
  model.elsewhere->prepare(write_node_half(model, layout.added()));
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
  if (model.elsewhere) model.elsewhere->set_base_scores(model.base_scores);
  const auto new_cells = lay_out_frequent_columns(model);
  ChangedRows changed(model, n_threads);
  if (new_cells) changed.set_new_cells(model, new_cells->here, new_cells->elsewhere);
  UpdateContext context(model, rule, undo, n_threads);
  if (!update_trees(context, changed, counts)) return false;

  std::vector<std::vector<RowTable::Move>> moves;
  for (const RowShard& shard : model.shards) moves.push_back(shard.moves_to_commit());
  std::vector<CodeLayout> layouts;
  if (const auto layout = layout_without_unused(model, changed))
    layouts.assign(model.shards.size(), *layout);

  counts.rows_deferred = model.deferred.n_rows();
  if (model.elsewhere) {
    if (!layouts.empty()) model.elsewhere->set_layout_at_commit(layouts[0].added());
    prepare_elsewhere(model, layouts.empty() ? model.layout() : layouts[0]);
  }

  // Nothing below can fail.
  undo.commit();
  for (std::size_t s = 0; s < model.shards.size(); ++s) model.shards[s].commit(moves[s]);
  if (model.elsewhere) model.elsewhere->commit();
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
  const UndoRemote undo_elsewhere(model.elsewhere);
  const CheckedRequest checked = check_request(model, request, rule);
  UpdateCounts counts;
  if (!checked.refits &&
      update_in_place(model, request.added, checked.removed, rule, counts, n_threads))
    return counts;
  return refit_instead(model, n_threads, [&](ModelState& next) {
    if (checked.grows) grow_classes(next, request.relabel, request.n_classes);
    if (next.elsewhere) {
      RemoteRows& rows = *next.elsewhere;
      // What was tried in place is undone first.
      rows.undo();
      rows.find(request.removed, {}, next.layout());
      if (request.added != nullptr) rows.add(encode_rows(next, *request.added, false, n_threads));
      rows.refit(checked.grows ? request.relabel : std::span<const std::int32_t>(), next.loss.kind,
                 next.loss.n_classes);
      return;
    }
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
  const UndoRemote undo_elsewhere(model.elsewhere);
  {
    if (model.elsewhere) model.elsewhere->find({}, {}, model.layout());
    NodeUndo undo(model);
    const ShardsUndo rows_undo(model.shards);
    begin_removal(model, RemovedSlots(model.shards.size()));
    ChangedRows none(model, n_threads);
    UpdateContext context(model, rule, undo, n_threads);
    if (regrow_deferred(context, none, most_work, reaches_target, counts)) {
      for (std::size_t t = 0; model.elsewhere && t < model.nodes.size(); ++t) undo.save_tree(t);
      if (reaches_target) forget_deferred(model);
      if (model.elsewhere) prepare_elsewhere(model, model.layout());
      // Nothing below can fail.
      undo.commit();
      for (RowShard& shard : model.shards) shard.commit({});
      if (model.elsewhere) model.elsewhere->commit();
      counts.rows_deferred = model.deferred.n_rows();
      return counts;
    }
  }
  if (model.elsewhere) model.elsewhere->undo();
  return refit_instead(model, n_threads);
}

PendingSurvey survey_pending(ModelState& model, const UpdateRule& rule, int n_threads) {
  if (model.deferred.empty()) return {};
  const UndoRemote undo_elsewhere(model.elsewhere);
  if (model.elsewhere) model.elsewhere->find({}, {}, model.layout());
  NodeUndo undo(model);
  const ShardsUndo rows_undo(model.shards);
  begin_removal(model, RemovedSlots(model.shards.size()));
  ChangedRows none(model, n_threads);
  UpdateContext context(model, rule, undo, n_threads);
  return survey_deferred(context, none);
}

MemorySurvey survey_removal(ModelState& model, std::span<const RowId> ids,
                            const std::string& argument, const UpdateRule& rule, int n_threads) {
  const UndoRemote undo_elsewhere(model.elsewhere);
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
