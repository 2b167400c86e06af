#include "update/changed_rows.hpp"

#include <algorithm>
#include <numeric>

#include "core/parallel.hpp"

namespace graftboost {

ChangedRows::ChangedRows(const ModelState& model, int n_threads) {
  rows_.layout = model.layout();
  for (std::size_t s = 0; s < model.shards.size(); ++s) {
    const RowShard& shard = model.shards[s];
    rows_.append_rows(shard.rows, shard.removed());
    for (const Slot slot : shard.removed()) locations_.push_back({s, slot});
  }
  if (model.elsewhere) append_all(model.elsewhere->removed().rows);
  n_removed_ = rows_.size();
  for (std::size_t s = 0; s < model.shards.size(); ++s) {
    const RowShard& shard = model.shards[s];
    std::vector<Slot> added(shard.size() - shard.n_before());
    std::iota(added.begin(), added.end(), static_cast<Slot>(shard.n_before()));
    rows_.append_rows(shard.rows, added);
    for (const Slot slot : added) locations_.push_back({s, slot});
  }
  if (model.elsewhere) append_all(model.elsewhere->added());
  const std::size_t n_trees = model.nodes.size(), n = size();
  recorded_ = GradientArray(model.loss.records_wide(), n_trees * n);
  leaves_.resize(n_trees * n);
  const auto copy = [&](std::size_t t) {
    for (std::size_t i = 0; model.elsewhere && i < n_removed_; ++i) {
      const FetchedRows& fetched = model.elsewhere->removed();
      recorded_.set(t * n + i, fetched.recorded[t * n_removed_ + i]);
      leaves_[t * n + i] = fetched.leaves[t * n_removed_ + i];
    }
    for (std::size_t i = 0; !model.elsewhere && i < n_removed_; ++i) {
      const TreeRows& tree = model.shards[locations_[i].shard].trees[t];
      recorded_.set(t * n + i, tree.recorded[locations_[i].slot]);
      leaves_[t * n + i] = tree.leaf_ids[locations_[i].slot];
    }
    const Tree& tree = model.nodes.tree(t);
    route(tree, n_removed_, n, [&](std::size_t i, NodeIndex leaf) {
      leaves_[t * n + i] = static_cast<std::uint16_t>(tree[leaf].leaf);
    });
  };
  list_cells();
  constexpr std::size_t few = 4096;  // copied before a second thread has started
  const std::size_t trees_together = std::max<std::size_t>(few / std::max<std::size_t>(n, 1), 1);
  parallel_blocks(n_threads, n_trees, trees_together, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) copy(t);
  });
  if (!GainBounds::are_grouped(model.layout())) return;
  for (Slot row = 0; row < n; ++row) features_.push_back(rows_.present(row));
}

void ChangedRows::append_all(const RowTable& rows) {
  std::vector<Slot> all(rows.size());
  std::iota(all.begin(), all.end(), Slot{0});
  rows_.append_rows(rows, all);
}

void ChangedRows::list_cells() {
  const CodeLayout& layout = rows_.layout;
  cells_begin_.assign(1, 0);
  for (Slot row = 0; row < size(); ++row) {
    rows_.for_each_cell(row, [&](std::uint32_t cell) { cells_.push_back(cell); });
    cells_begin_.push_back(cells_.size());
  }
  if (GainBounds::are_grouped(layout) || !GainBounds::are_kept(layout)) return;
  for (std::size_t row = 0; row < size(); ++row)
    for (std::size_t f = 0; f < layout.size(); ++f)
      codes_.push_back(rows_.code(static_cast<Slot>(row), layout[f], layout[f].column));
}

void ChangedRows::set_new_cells(const ModelState& model,
                                const std::vector<WipedVector<RowTable::NewCell>>& by_shard,
                                const std::vector<RowsWithNewCells>& elsewhere) {
  has_new_cells_ = true;
  if (model.elsewhere) return set_new_cells(model, elsewhere);
  std::vector<Shards::Location> with;
  for (std::size_t s = 0; s < by_shard.size(); ++s) {
    for (const RowTable::NewCell& cell : by_shard[s]) {
      if (cell.row >= model.shards[s].n_before()) continue;
      if (with.empty() || with.back().shard != s || with.back().slot != cell.row)
        with.push_back({s, cell.row});
      new_cells_.push_back({static_cast<std::uint32_t>(with.size() - 1), cell.cell});
    }
  }
  n_with_new_cells_ = with.size();
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    for (const auto& [s, slot] : with) {
      const RowShard& shard = model.shards[s];
      const bool inside = model.params.in_subsample(t, shard.rows.ids[slot]);
      new_totals_.push_back(inside ? shard.recorded_in(t, model.loss.kind).of(slot) : Totals{});
      new_leaves_.push_back(shard.trees[t].leaf_ids[slot]);
    }
  }
}

void ChangedRows::set_new_cells(const ModelState& model,
                                const std::vector<RowsWithNewCells>& elsewhere) {
  for (const RowsWithNewCells& part : elsewhere) {
    for (std::size_t i = 0; i < part.row.size(); ++i)
      new_cells_.push_back(
          {static_cast<std::uint32_t>(n_with_new_cells_ + part.row[i]), part.cell[i]});
    n_with_new_cells_ += static_cast<std::size_t>(part.n_rows);
  }
  for (std::size_t t = 0; t < model.nodes.size(); ++t) {
    for (const RowsWithNewCells& part : elsewhere) {
      const std::size_t n = static_cast<std::size_t>(part.n_rows), first = t * n;
      new_totals_.insert(new_totals_.end(), part.totals.begin() + first,
                         part.totals.begin() + first + n);
      new_leaves_.insert(new_leaves_.end(), part.leaves.begin() + first,
                         part.leaves.begin() + first + n);
    }
  }
}

}  // namespace graftboost
