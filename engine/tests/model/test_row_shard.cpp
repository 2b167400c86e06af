#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/row_shard.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/row_changes.hpp"

namespace graftboost {
namespace {

using testing::append_rows;
using testing::check_same;
using testing::Contents;
using testing::contents_of;
using testing::fit_state;
using testing::lay_out_rare_columns;
using testing::ModelOptions;
using testing::Random;
using testing::random_rows;
using testing::TrainingRows;

constexpr std::size_t n_fitted = 150, n_all = 180;

struct Fixture {
  TrainingRows rows;
  ModelState model;
  std::vector<RowId> removed_ids;

  Fixture(const ModelOptions& options, std::uint64_t seed)
      : rows(random_rows(options, n_all, seed)),
        model(fit_state(rows.slice(0, n_fitted), options)) {}

  // Removes some rows and adds others, which are placed anywhere.
  void begin(double share_removed, Random& random) {
    for (RowShard& shard : model.shards) {
      std::vector<Slot> removed;
      for (Slot slot = 0; slot < shard.size(); ++slot)
        if (random.chance(share_removed)) removed.push_back(slot);
      for (const Slot slot : removed) removed_ids.push_back(shard.rows.ids[slot]);
      shard.begin_update(removed);
    }
    const TrainingRows added = rows.slice(n_fitted, n_all);
    append_rows(model, added, [&](RowShard& shard, std::size_t t, Slot slot) {
      shard.place(t, slot, static_cast<std::uint16_t>(random.below(3)),
                  static_cast<Gradient>(random.below(1000)) + 1);
    });
  }
  // Gives rows other leaves and gradients.
  void scramble(Random& random) {
    for (RowShard& shard : model.shards) {
      for (std::size_t t = 0; t < shard.trees.size(); ++t) {
        for (int times = 0; times < 2; ++times) {
          std::vector<Slot> slots;
          for (Slot slot = 0; slot < shard.size(); ++slot)
            if (random.chance(0.4)) slots.push_back(slot);
          shard.save_rows(t, slots);
          for (const Slot slot : slots)
            shard.place(t, slot, static_cast<std::uint16_t>(random.below(5)), 77);
        }
        Array<Slot> to_work_in;
        shard.merge_leaves(t, 0, 1, to_work_in);
        for (Slot slot = 0; slot < shard.size(); ++slot) CHECK(shard.trees[t].leaf_ids[slot] != 0);
      }
    }
  }
};

std::vector<ModelOptions> all_options() {
  ModelOptions plain, sparse, weighted;
  plain.training.max_leaf_nodes = 300;  // two bytes a leaf id
  plain.training.min_samples_leaf = 2;
  sparse.n_shards = 3;
  sparse.many_columns = true;
  weighted.n_shards = 2;
  weighted.weighted = true;
  weighted.loss = LossKind::squared;
  return {plain, sparse, weighted};
}

// Checks that every row can be found by its id, and that these cannot.
void check_index(ModelState& model, std::span<const RowId> absent) {
  for (std::size_t s = 0; s < model.shards.size(); ++s) {
    for (Slot slot = 0; slot < model.shards[s].size(); ++slot) {
      const RowId id = model.shards[s].rows.ids[slot];
      const auto found = model.shards.find(id);
      REQUIRE(found.has_value());
      CHECK_EQ(found->shard, s);
      CHECK_EQ(found->slot, slot);
    }
  }
  for (const RowId id : absent) CHECK(!model.shards.find(id));
}

TEST_CASE("an update that is undone has changed nothing") {
  std::size_t n_laid_out = 0;
  for (const ModelOptions& options : all_options()) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      Random random(seed);
      Fixture fixture(options, seed);
      ModelState& model = fixture.model;
      const Contents before = contents_of(model);
      const std::size_t histogram_size = model.layout().histogram_size();
      const auto n_cells = model.shards.cells_per_row();
      std::vector<std::vector<RowId>> ids;
      for (const RowShard& shard : model.shards)
        ids.emplace_back(shard.rows.ids.begin(), shard.rows.ids.end());

      fixture.begin(seed == 0 ? 0.02 : 0.3, random);
      CHECK_EQ(model.n_rows(), n_all);
      n_laid_out += lay_out_rare_columns(fixture.model).columns.size();
      fixture.scramble(random);
      for (RowShard& shard : model.shards) shard.undo();

      check_same(before, contents_of(model));
      CHECK_EQ(model.layout().histogram_size(), histogram_size);
      CHECK_EQ(model.shards.cells_per_row(), n_cells);
      for (std::size_t s = 0; s < model.shards.size(); ++s) {
        const RowShard& shard = model.shards[s];
        CHECK(std::ranges::equal(shard.rows.ids, ids[s]));
        CHECK(shard.removed().empty());
        CHECK_EQ(shard.n_before(), shard.size());
        for (const TreeRows& tree : shard.trees) CHECK_EQ(tree.recorded.size(), shard.size());
      }
      check_index(model, fixture.rows.slice(n_fitted, n_all).ids());
      CHECK(testing::check_sums(model) > 0);
    }
  }
  CHECK(n_laid_out > 0);
}

TEST_CASE("an update that is committed keeps the rows that stay and are added") {
  for (const ModelOptions& options : all_options()) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      Random random(seed);
      Fixture fixture(options, seed);
      ModelState& model = fixture.model;
      fixture.begin(seed == 0 ? 0.02 : 0.3, random);
      lay_out_rare_columns(fixture.model);
      fixture.scramble(random);
      Contents expected = contents_of(model);
      for (const RowId id : fixture.removed_ids) expected.rows.erase(id);
      for (RowShard& shard : model.shards) shard.commit(shard.moves_to_commit());
      CHECK_EQ(model.n_rows(), n_all - fixture.removed_ids.size());
      check_same(expected, contents_of(model));
      check_index(model, fixture.removed_ids);
      for (RowShard& shard : model.shards) {
        CHECK(shard.removed().empty());
        for (const TreeRows& tree : shard.trees) CHECK_EQ(tree.recorded.size(), shard.size());
        shard.undo();  // does nothing
      }
      check_same(expected, contents_of(model));
    }
  }
}

template <class T>
bool is_zero(const T* begin, const T* end) {
  return std::all_of(begin, end, [](T value) { return value == 0; });
}

TEST_CASE("what removed rows recorded is overwritten when an update is committed") {
  ModelOptions options;
  Fixture fixture(options, 5);
  RowShard& shard = fixture.model.shards[0];
  const std::size_t n = shard.size();
  std::vector<Slot> removed;
  for (Slot slot = 0; slot < n; slot += 3) removed.push_back(slot);
  shard.begin_update(removed);
  shard.commit(shard.moves_to_commit());
  const std::size_t n_left = n - removed.size();
  // Shrinking does not move an array, so that the memory past its new end is still its own.
  for (const TreeRows& tree : shard.trees) {
    REQUIRE(tree.recorded.size() == n_left);
    tree.recorded.visit(
        [&](const auto* recorded) { CHECK(is_zero(recorded + n_left, recorded + n)); });
    const auto& ids = tree.leaf_ids.narrow;
    CHECK(is_zero(ids.data() + n_left, ids.data() + n));
  }
  CHECK(is_zero(shard.rows.ids.data() + n_left, shard.rows.ids.data() + n));
  CHECK(is_zero(shard.rows.target.data() + n_left, shard.rows.target.data() + n));
}

TEST_CASE("what appended rows recorded is overwritten when an update is undone") {
  ModelOptions options;
  Fixture fixture(options, 6);
  Random random(6);
  RowShard& shard = fixture.model.shards[0];
  const std::size_t n = shard.size();
  fixture.begin(0.1, random);
  REQUIRE(shard.size() == n_all);
  shard.undo();
  for (const TreeRows& tree : shard.trees) {
    REQUIRE(tree.recorded.size() == n);
    tree.recorded.visit(
        [&](const auto* recorded) { CHECK(is_zero(recorded + n, recorded + n_all)); });
    CHECK(is_zero(tree.leaf_ids.narrow.data() + n, tree.leaf_ids.narrow.data() + n_all));
  }
  CHECK(is_zero(shard.rows.ids.data() + n, shard.rows.ids.data() + n_all));
}

TEST_CASE("rows of leaves are found without removed ones, the subsample first") {
  ModelOptions options;
  options.training.subsample = 0.6;
  for (const double share_removed : {0.02, 0.4}) {
    Random random(7);
    Fixture fixture(options, 7);
    ModelState& model = fixture.model;
    fixture.begin(share_removed, random);
    const RowShard& shard = model.shards[0];
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      for (std::int32_t leaf = 0; leaf < 3; ++leaf) {
        const std::vector<std::int32_t> leaves{leaf, 4};
        std::vector<Slot> inside, outside;
        for (Slot row = 0; row < shard.size(); ++row) {
          const std::int32_t id = shard.trees[t].leaf_ids[row];
          if (id != leaf && id != 4) continue;
          if (std::ranges::count(shard.removed(), row) != 0) continue;
          const bool counts = model.params.in_subsample(t, shard.rows.ids[row]);
          (counts ? inside : outside).push_back(row);
        }
        Array<Slot> slots;
        const ReachingRows found = shard.rows_in(t, leaves, model.params, slots);
        CHECK(std::ranges::equal(found.inside, inside));
        CHECK(std::ranges::equal(found.outside, outside));
        // Histograms read ahead.
        for (std::size_t i = 0; i < slots_read_ahead; ++i)
          CHECK(*(found.inside.data() + found.inside.size() + i) < shard.size());
      }
    }
  }
}

TEST_CASE("rows are dealt to shards by their ids") {
  ModelOptions options;
  options.n_shards = 4;
  Fixture fixture(options, 8);
  for (std::size_t s = 0; s < 4; ++s) {
    const RowShard& shard = fixture.model.shards[s];
    CHECK(shard.size() > 20);
    for (const RowId id : shard.rows.ids) CHECK_EQ(fixture.model.shards.shard_of(id), s);
  }
}

}  // namespace
}  // namespace graftboost
