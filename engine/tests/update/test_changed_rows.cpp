#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "update/changed_rows.hpp"

namespace graftboost {
namespace {

using testing::ModelOptions;
using testing::recorded;
using testing::StartedUpdate;
using testing::various_models;

TEST_CASE("changed rows are copies of the removed and the added rows") {
  for (const ModelOptions& options : various_models()) {
    const StartedUpdate update(options, 150, 9, 0.1, 1);
    const ModelState& model = update.model;
    const ChangedRows& changed = *update.changed;
    std::set<RowId> removed, added, found_removed, found_added;
    for (const RowShard& shard : model.shards) {
      for (const Slot slot : shard.removed()) removed.insert(shard.rows.ids[slot]);
      for (std::size_t slot = shard.n_before(); slot < shard.size(); ++slot)
        added.insert(shard.rows.ids[slot]);
    }
    CHECK_EQ(added.size(), 9);
    CHECK_EQ(changed.n_added(), 9);
    CHECK_EQ(changed.n_removed(), removed.size());
    CHECK_EQ(changed.size(), removed.size() + 9);
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const auto row = static_cast<Slot>(i);
      const auto [s, slot] = changed.location(i);
      const RowTable& of_shard = model.shards[s].rows;
      CHECK_EQ(changed.enters(i), i >= removed.size());
      CHECK_EQ(changed.rows().ids[i], of_shard.ids[slot]);
      CHECK_EQ(changed.rows().target[i], of_shard.target[slot]);
      CHECK_EQ(changed.rows().weight.empty(), !options.weighted);
      if (options.weighted) CHECK_EQ(changed.rows().weight[i], of_shard.weight[slot]);
      for (std::uint32_t c = 0; c < model.bins->n_features(); ++c)
        CHECK_EQ(changed.rows().code(row, c), of_shard.code(slot, c));
      (changed.enters(i) ? found_added : found_removed).insert(changed.rows().ids[i]);
      for (std::size_t t = 0; t < model.nodes.size(); ++t) {
        const Tree& tree = model.nodes.tree(t);
        CHECK_EQ(changed.leaf(t, i),
                 tree[tree.route([&](std::uint32_t c) { return of_shard.code(slot, c); })].leaf);
        if (changed.enters(i)) continue;
        CHECK_EQ(changed.leaf(t, i), model.shards[s].trees[t].leaf_ids[slot]);
        CHECK(changed.recorded_in(t, model.loss.kind).of(row) == recorded(model, t, s, slot));
      }
      if (!GainBounds::are_grouped(model.layout())) continue;
      std::set<std::uint32_t> present;
      for (std::uint32_t f = 0; f < model.layout().size(); ++f) {
        const FeatureLayout& feature = model.layout()[f];
        if (feature.counts_only_differing() &&
            of_shard.code(slot, feature.column) != feature.common_code)
          present.insert(f);
      }
      const auto& features = changed.features_of(i);
      CHECK(std::set<std::uint32_t>(features.begin(), features.end()) == present);
    }
    CHECK(found_removed == removed);
    CHECK(found_added == added);
  }
}

TEST_CASE("neither threads nor what is recorded later change the copies of rows") {
  for (const ModelOptions& options : various_models()) {
    StartedUpdate update(options, 150, 9, 0.1, 3);
    const ModelState& model = update.model;
    ChangedRows& changed = *update.changed;
    const ChangedRows other(model, 3);
    REQUIRE(other.size() == changed.size());
    const std::size_t last = changed.size() - 1;
    for (std::size_t t = 0; t < model.nodes.size(); ++t)
      changed.record(t, last, static_cast<Gradient>(100 + t));
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      const auto a = changed.recorded_in(t, model.loss.kind);
      const auto b = other.recorded_in(t, model.loss.kind);
      for (std::size_t i = 0; i < other.size(); ++i) {
        CHECK_EQ(other.leaf(t, i), changed.leaf(t, i));
        CHECK_EQ(other.rows().ids[i], changed.rows().ids[i]);
        if (!changed.enters(i)) CHECK_EQ(a.gradient[i], b.gradient[i]);
      }
      CHECK_EQ(a.gradient[last], 100 + t);
    }
  }
}

TEST_CASE("new cells are those of the rows that stay or are removed, with what they recorded") {
  std::size_t n_cells = 0;
  for (const ModelOptions& options : various_models()) {
    const StartedUpdate update(options, 150, 9, 0.1, 2, true);
    const ModelState& model = update.model;
    const ChangedRows& changed = *update.changed;
    REQUIRE(changed.has_new_cells());
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      // By cell and leaf: what the rows in them recorded.
      std::map<std::pair<std::uint32_t, std::uint16_t>, Totals> found, expected;
      for (const ChangedRows::NewCell& cell : changed.new_cells())
        found[{cell.cell, changed.new_cell_leaf(t, cell.row)}] +=
            changed.new_cell_totals(t, cell.row);
      for (std::size_t s = 0; s < model.shards.size(); ++s) {
        const RowShard& shard = model.shards[s];
        for (Slot row = 0; row < shard.n_before(); ++row) {
          for (const std::uint32_t column : model.layout().added()) {
            if (update.before.layout().number_of(column) != ColumnIndex::none) continue;
            const FeatureLayout& feature = model.layout().of(column);
            const Code code = shard.rows.code(row, column);
            if (code == feature.common_code) continue;
            const bool counts = model.params.in_subsample(t, shard.rows.ids[row]);
            expected[{feature.offset + code, shard.trees[t].leaf_ids[row]}] +=
                counts ? recorded(model, t, s, row) : Totals{};
          }
        }
      }
      CHECK(found == expected);
      n_cells += expected.size();
    }
  }
  CHECK(n_cells > 20);
}

}  // namespace
}  // namespace graftboost
