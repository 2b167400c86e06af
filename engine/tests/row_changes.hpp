// The steps of an update that change the rows of a model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/models.hpp"

namespace graftboost::testing {

// Appends rows to shards in which an update is under way, and calls place(shard, tree, slot) for
// each of these rows and each tree.
template <class Place>
void append_rows(ModelState& model, const TrainingRows& added, Place&& place) {
  model.shards.append(*model.bins, added.sample(), model.loss.kind, 1);
  for (RowShard& shard : model.shards) {
    shard.put_on_grids(model.loss, shard.n_before());
    shard.extend_trees();
    for (std::size_t t = 0; t < shard.trees.size(); ++t) {
      for (std::size_t slot = shard.n_before(); slot < shard.size(); ++slot)
        place(shard, t, static_cast<Slot>(slot));
    }
  }
}

// Columns that were laid out, and their cells in each shard.
struct LaidOutColumns {
  std::vector<std::uint32_t> columns;
  std::vector<WipedVector<RowTable::NewCell>> cells;
};

// Lays out all rare columns that any row has, even if only few rows have them.
inline LaidOutColumns lay_out_rare_columns(ModelState& model) {
  LaidOutColumns laid_out;
  auto& [columns, cells] = laid_out;
  for (const RowShard& shard : model.shards) {
    const auto rare = shard.rows.rare_columns(0);
    columns.insert(columns.end(), rare.begin(), rare.end());
  }
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  CodeLayout next = model.layout();
  next.add(columns);
  for (RowShard& shard : model.shards) {
    cells.push_back(shard.rows.new_cells(next, columns));
    shard.lay_out_columns(next, columns, cells.back());
  }
  return laid_out;
}

}  // namespace graftboost::testing
