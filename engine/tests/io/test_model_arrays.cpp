#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/model_arrays.hpp"
#include "io/validate_state.hpp"
#include "model/state_check.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"

namespace graftboost {
namespace {

using testing::change;
using testing::check_same;
using testing::fit_model;
using testing::fit_state;
using testing::ModelOptions;
using testing::random_rows;
using testing::state_of;
using testing::TrainingRows;

std::size_t bytes_of(Number number) {
  switch (number) {
    case Number::u8:
      return 1;
    case Number::u16:
      return 2;
    case Number::u32:
    case Number::i32:
      return 4;
    default:
      return 8;
  }
}

// The arrays of a model as a file would hold them. Owns the memory.
struct Stored {
  struct Bytes {
    Number number;
    std::size_t size;            // in elements
    std::vector<__int128> data;  // aligned as mapped pages are
  };
  Summary summary;
  std::map<std::string, Bytes> arrays;

  Stored(const ModelState& model, bool state, bool room) : summary(summary_of(model, state, room)) {
    for (const ModelArray& array : arrays_of(model, state, room)) {
      const std::size_t width = bytes_of(array.number);
      std::size_t size = array.distance * array.pieces.size();
      if (array.distance == 0)
        for (const ModelArray::Piece& piece : array.pieces) size += piece.length;
      Bytes& stored = arrays[array.name];
      stored = {array.number, size, std::vector<__int128>(size * width / 16 + 1)};
      std::size_t at = 0;
      for (const ModelArray::Piece& piece : array.pieces) {
        REQUIRE(array.distance == 0 || piece.length <= array.distance);
        if (piece.length != 0)
          std::memcpy(reinterpret_cast<char*>(stored.data.data()) + at * width, piece.data,
                      piece.length * width);
        at += array.distance == 0 ? piece.length : array.distance;
      }
    }
  }

  template <class T>
  T* array(const std::string& name) {
    REQUIRE(arrays.contains(name));
    return reinterpret_cast<T*>(arrays.at(name).data.data());
  }
  std::size_t size(const std::string& name) const { return arrays.at(name).size; }

  GivenArrays given() {
    GivenArrays all;
    for (auto& [name, bytes] : arrays) all[name] = {bytes.number, bytes.data.data(), bytes.size};
    return all;
  }
  // A model that borrows this memory, and must not outlive it.
  ModelState model() {
    const std::shared_ptr<const void> lender(this, [](const void*) {});
    return model_from(summary, given(), lender);
  }
};

const UpdateRule rule{UpdateRule::Kind::regret, 3, 1};

std::vector<ModelOptions> all_options() {
  ModelOptions plain, weighted, sparse, wide;
  plain.training.subsample = 0.7;
  weighted.weighted = true;
  weighted.loss = LossKind::squared;
  sparse.many_columns = true;
  sparse.loss = LossKind::softmax;
  sparse.n_classes = 3;
  wide.max_bins = 600;
  wide.training.max_leaf_nodes = 300;
  wide.training.min_samples_leaf = 2;
  return {plain, weighted, sparse, wide};
}

void check_round_trip(const ModelState& model) {
  for (const bool room : {false, true}) {
    auto stored = std::make_shared<Stored>(model, true, room);
    ModelState loaded = model_from(stored->summary, stored->given(), stored);
    check_same(model, loaded);
    CHECK_EQ(loaded.shards.size(), 1);
    CHECK_EQ(loaded.params.n_estimators, model.params.n_estimators);
    CHECK(loaded.validation_losses == model.validation_losses);
    const auto invalid = find_invalid_state(loaded, true, 2);
    if (invalid) CHECK_EQ(*invalid, std::string("nothing"));
    const auto difference = find_difference(loaded, 2);
    if (difference) CHECK_EQ(*difference, std::string("nothing"));
    // Cached histograms are kept.
    for (std::size_t t = 0; t < model.nodes.size(); ++t) {
      CHECK_EQ(model.nodes[t].counted, loaded.nodes[t].counted);
      std::visit(
          [&]<class Sums>(const TreeHistograms<Sums>& histograms) {
            const auto& others = std::get<TreeHistograms<Sums>>(loaded.nodes[t].histograms);
            REQUIRE(histograms.size() == others.size());
            for (std::size_t i = 0; i < histograms.size(); ++i) {
              CHECK_EQ(histograms[i].cached, others[i].cached);
              CHECK(histograms[i] == others[i]);
            }
          },
          model.nodes[t].histograms);
    }
  }
}

TEST_CASE("a model comes back from its arrays as it was") {
  for (ModelOptions options : all_options()) {
    for (const std::size_t n_shards : {1, 3}) {
      options.n_shards = n_shards;
      check_round_trip(fit_state(random_rows(options, 200, 1), options));
    }
  }
}

TEST_CASE("a model that was changed comes back from its arrays as it was") {
  for (ModelOptions options : all_options()) {
    for (const std::size_t n_shards : {1, 3}) {
      options.n_shards = n_shards;
      const TrainingRows rows = random_rows(options, 240, 2);
      const auto model = fit_model(rows.slice(0, 220), options);
      for (std::size_t step = 0; step < 3; ++step) {
        const TrainingRows removed = rows.slice(10 * step, 10 * step + 10);
        change(*model, rows.slice(220 + 5 * step, 225 + 5 * step), removed.ids(), rule);
        check_round_trip(state_of(*model));
      }
      model->refresh(1);
      check_round_trip(state_of(*model));
    }
  }
}

UpdateRule deferring_rule() {
  UpdateRule deferring;
  deferring.kind = UpdateRule::Kind::fidelity;
  deferring.fidelity = 0.9;
  deferring.defers = true;
  return deferring;
}

// A model whose updates only booked rows.
std::unique_ptr<Model> fit_and_defer(const ModelOptions& options, std::uint64_t seed) {
  const TrainingRows rows = random_rows(options, 230, seed);
  auto model = fit_model(rows.slice(0, 220), options);
  for (std::size_t step = 0; step < 2; ++step) {
    const TrainingRows removed = rows.slice(10 * step, 10 * step + 8);
    change(*model, rows.slice(220 + 5 * step, 225 + 5 * step), removed.ids(), deferring_rule());
  }
  return model;
}

TEST_CASE("deferred rows come back, and are regrown for alike") {
  for (ModelOptions options : all_options()) {
    for (const std::size_t n_shards : {1, 3}) {
      options.n_shards = n_shards;
      const auto model = fit_and_defer(options, 7);
      const ModelState state = state_of(*model);
      CHECK_EQ(state.deferred.n_removed, 16);
      CHECK_EQ(state.deferred.n_added, 10);
      CHECK(state.deferred.achieved != 0);
      CHECK(!state.nodes.tree(0)[0].deferred.empty());
      check_round_trip(state);
      const auto stored = std::make_shared<Stored>(state, true, true);
      Model loaded(model_from(stored->summary, stored->given(), stored));
      loaded.require_verification({});
      UpdateRule regrowing = deferring_rule();
      regrowing.defers = false;
      for (const double most_work : {0.05, 0.9}) {
        model->regrow(regrowing, most_work, 2);
        loaded.regrow(regrowing, most_work, 1);
        check_same(state_of(*model), state_of(loaded));
        check_round_trip(state_of(*model));
      }
    }
  }
}

TEST_CASE("without deferred rows no array mentions them") {
  ModelOptions options;
  const auto model = fit_and_defer(options, 8);
  CHECK(Stored(state_of(*model), true, false).arrays.contains("node_deferred"));
  // For predictions they do not matter.
  CHECK(!Stored(state_of(*model), false, false).arrays.contains("deferred_rows"));
  model->refit(1);
  const Stored refitted(state_of(*model), true, false);
  CHECK(!refitted.arrays.contains("deferred_rows"));
  CHECK(!refitted.arrays.contains("node_deferred"));
}

TEST_CASE("a loaded model goes on like the one that was stored") {
  for (ModelOptions options : all_options()) {
    for (const std::size_t n_shards : {1, 3}) {
      options.n_shards = n_shards;
      const TrainingRows rows = random_rows(options, 230, 3);
      const auto model = fit_model(rows.slice(0, 200), options);
      for (const bool room : {false, true}) {
        const auto stored = std::make_shared<Stored>(state_of(*model), true, room);
        Model loaded(model_from(stored->summary, stored->given(), stored));
        loaded.require_verification({});
        const auto other = model->copy();
        for (std::size_t step = 0; step < 3; ++step) {
          const TrainingRows added = rows.slice(200 + 10 * step, 210 + 10 * step);
          const TrainingRows removed = rows.slice(3 * step, 3 * step + 3);
          change(loaded, added, removed.ids(), rule);
          change(*other, added, removed.ids(), rule);
          check_same(state_of(*other), state_of(loaded));
          loaded.check_state(1);
        }
      }
    }
  }
}

TEST_CASE("without its state a model comes back for predictions only") {
  ModelOptions options;
  const TrainingRows rows = random_rows(options, 200, 4);
  const auto model = fit_model(rows, options);
  Stored stored(state_of(*model), false, false);
  CHECK(!stored.arrays.contains("row_ids"));
  const Model loaded(stored.model());
  CHECK(!loaded.updatable());
  const auto table = rows.table.dense();
  CHECK(loaded.scores(table, 0, -1, 1).values == model->scores(table, 0, -1, 1).values);
}

// --- corruptions ---------------------------------------------------------------------------------

ModelState sparse_state() {
  ModelOptions options;
  options.many_columns = true;
  return fit_state(random_rows(options, 150, 5), options);
}
ModelState weighted_state() {
  ModelOptions options;
  options.weighted = true;
  options.loss = LossKind::squared;
  return fit_state(random_rows(options, 150, 6), options);
}

struct Corruption {
  const char* name;
  std::function<void(Stored&)> apply;
};

template <class T>
Corruption element(const char* name, std::size_t index, T value) {
  return {name, [=](Stored& stored) { stored.array<T>(name)[index] = value; }};
}

// Whether arrays are refused when a model is put together.
bool is_refused(Stored stored) {
  try {
    stored.model();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

TEST_CASE("arrays that are no model are refused at once") {
  const ModelState model = sparse_state();
  const Stored sound(model, true, false);
  CHECK(!is_refused(sound));
  for (const auto& [name, bytes] : sound.arrays) {
    const std::string which = name;
    const auto refuses = [&](auto&& corrupt) {
      Stored corrupted = sound;
      corrupt(corrupted.arrays.at(which));
      const bool refused = is_refused(corrupted);
      if (!refused) CHECK_EQ(which, std::string("refused"));
    };
    // All but the losses of validation rows have a length that follows from the others.
    if (which != "validation_losses") {
      refuses([](Stored::Bytes& stored) { ++stored.size; });
      // With fewer columns laid out, the contents of rows are wrong, which are not read yet.
      if (bytes.size != 0 && which != "row_columns")
        refuses([](Stored::Bytes& stored) { --stored.size; });
    }
    refuses([](Stored::Bytes& stored) {
      stored.number = stored.number == Number::u8 ? Number::u16 : Number::u8;
    });
    Stored without = sound;
    without.arrays.erase(which);
    // Rows need not have entries.
    if (which != "row_sparse_begin") CHECK(is_refused(without));
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Corruption> corruptions{
      element<std::int32_t>("node_left", 0, 0),
      element<std::int32_t>("node_left", 0, 10'000),
      element<std::int32_t>("node_left", 0, -5),
      element<std::int32_t>("node_right", 0, no_node),
      element<std::int32_t>("node_right", 0, 1),
      element<std::int32_t>("node_leaf", 0, 0),
      element<std::uint32_t>("node_feature", 0, 88),
      element<Code>("node_low", 0, 2),
      element<Code>("node_span", 0, 500),
      element<double>("node_gain", 1, nan),
      element<double>("node_value", 1, nan),
      element<double>("node_value", 1, 0x1p20),
      element<double>("base_scores", 0, nan),
      element<std::uint32_t>("tree_sizes", 0, 14),
      element<std::uint32_t>("bin_columns", 1, 0),
      element<std::uint32_t>("bin_columns", 0, 1000),
      element<std::uint32_t>("bin_edge_counts", 0, 70'000),
      element<std::uint32_t>("bin_categories", 0, 3),
      element<double>("bin_edges", 1, -1e9),
      element<double>("bin_edges", 0, nan),
      element<Code>("bin_common_codes", 0, 5000),
      element<double>("bin_common_shares", 0, 1.5),
      element<double>("bin_common_shares", 0, nan),
      element<std::int32_t>("bin_bundles", 0, -7),
      element<std::int32_t>("bin_bundles", 0, 1'000'000),
      element<std::int64_t>("target_sums", 0, std::int64_t{1} << 62),
      element<std::uint32_t>("kept_nodes", 1, 0),
      element<std::uint32_t>("kept_nodes", 1, 1'000'000),
      element<std::uint64_t>("kept_counts", 0, std::uint64_t{1} << 63),
      {"n_rows", [](Stored& s) { ++s.summary.n_rows; }},
      {"no rows", [](Stored& s) { s.summary.n_rows = s.summary.room = 0; }},
      {"room", [](Stored& s) { s.summary.room += 3; }},
      {"n_entries", [](Stored& s) { ++s.summary.n_entries; }},
      {"n_features", [](Stored& s) { s.summary.n_features = 3; }},
      {"n_classes", [](Stored& s) { s.summary.loss.n_classes = 3; }},
      {"weighted", [](Stored& s) { s.summary.loss.weighted = true; }},
      {"packed", [](Stored& s) { s.summary.packed = false; }},
      {"scale", [nan](Stored& s) { s.summary.loss.scale = nan; }},
      {"least_hessian", [](Stored& s) { s.summary.loss.least_hessian = 0; }},
      {"learning_rate", [nan](Stored& s) { s.summary.params.learning_rate = nan; }},
      {"n_estimators", [](Stored& s) { ++s.summary.params.n_estimators; }},
      {"max_leaf_nodes", [](Stored& s) { s.summary.params.max_leaf_nodes = 3; }},
      {"min_samples_leaf", [](Stored& s) { s.summary.params.min_samples_leaf = 0; }},
      {"l2", [](Stored& s) { s.summary.params.l2_regularization = -1; }},
      {"subsample", [](Stored& s) { s.summary.params.subsample = 0; }},
      element<std::int64_t>("tree_squares", 0, -1),
      element<std::int64_t>("tree_squares", 6, largest_sum),
      {"tree_squares", [](Stored& s) { --s.arrays.at("tree_squares").size; }},
  };
  for (const Corruption& corruption : corruptions) {
    Stored corrupted = sound;
    corruption.apply(corrupted);
    if (!is_refused(corrupted)) CHECK_EQ(std::string(corruption.name), std::string("refused"));
  }
}

TEST_CASE("deferred rows that no updates can have left are refused") {
  ModelOptions options;
  options.training.subsample = 0.7;
  const ModelState model = state_of(*fit_and_defer(options, 9));
  const Stored sound(model, true, false);
  CHECK(!is_refused(sound));
  for (const std::string name : {"deferred_rows", "node_deferred"}) {
    for (const int more : {-1, 1}) {
      Stored corrupted = sound;
      corrupted.arrays.at(name).size += static_cast<std::size_t>(more);
      CHECK(is_refused(corrupted));
    }
    Stored corrupted = sound;
    corrupted.arrays.at(name).number = Number::f64;
    CHECK(is_refused(corrupted));
  }
  for (const std::string name : {"deferred_rows", "node_deferred"}) {
    Stored without = sound;
    without.arrays.erase(name);
    CHECK(is_refused(without));
  }

  // A node of the first tree that has rows, and a child that has some, too.
  const std::vector<Node>& nodes = model.nodes.tree(0).nodes;
  std::size_t inner = 1;
  while (nodes[inner].is_leaf() || nodes[inner].deferred.empty()) ++inner;
  REQUIRE(inner < nodes.size());
  const auto child = static_cast<std::size_t>(
      nodes[static_cast<std::size_t>(nodes[inner].left)].deferred.empty() ? nodes[inner].right
                                                                          : nodes[inner].left);
  REQUIRE(!nodes[child].deferred.empty());
  const auto clear = [](Stored& stored, std::size_t node) {
    for (std::size_t i = 0; i < 3; ++i)
      stored.array<std::int64_t>("node_deferred")[3 * node + i] = 0;
  };
  constexpr std::int64_t most = DeferredSums::most;
  std::vector<Corruption> corruptions{
      {"a node follows one without rows", [=](Stored& s) { clear(s, inner); }},
      {"the root has no rows", [=](Stored& s) { clear(s, 0); }},
      {"all rows are 0",
       [](Stored& s) {
         for (std::size_t i = 0; i < 4; ++i) s.array<std::int64_t>("deferred_rows")[i] = 0;
       }},
      {"no rows, but losses",
       [](Stored& s) {
         for (std::size_t i = 0; i < 2; ++i) s.array<std::int64_t>("deferred_rows")[i] = 0;
       }},
      element<std::int64_t>("deferred_rows", 0, -1),
      element<std::int64_t>("deferred_rows", 1, -1),
      element<std::int64_t>("deferred_rows", 0, largest_sum),
      element<std::int64_t>("deferred_rows", 1, std::numeric_limits<std::int64_t>::max()),
      element<std::int64_t>("deferred_rows", 2, largest_sum),
      element<std::int64_t>("deferred_rows", 2, -largest_sum),
      element<std::int64_t>("deferred_rows", 3, largest_sum),
      element<std::int64_t>("deferred_rows", 3, std::numeric_limits<std::int64_t>::min()),
      // Sums without rows.
      element<std::int64_t>("node_deferred", 3 * child, 0),
  };
  for (std::size_t i = 0; i < 3; ++i) {
    corruptions.push_back(element<std::int64_t>("node_deferred", 3 * child + i, -1));
    corruptions.push_back(element<std::int64_t>("node_deferred", 3 * child + i, most + 1));
    corruptions.push_back(element<std::int64_t>("node_deferred", i, most + 1));
  }
  for (const Corruption& corruption : corruptions) {
    Stored corrupted = sound;
    corruption.apply(corrupted);
    if (!is_refused(corrupted)) CHECK_EQ(std::string(corruption.name), std::string("refused"));
  }
  // The largest sums are read.
  for (std::size_t i = 0; i < 3; ++i) {
    Stored largest = sound;
    element<std::int64_t>("node_deferred", i, most).apply(largest);
    CHECK(!is_refused(largest));
  }
}

// Whether a model that could be put together is found to be invalid.
bool is_found(const Stored& sound, const Corruption& corruption, bool all = true) {
  Stored corrupted = sound;
  corruption.apply(corrupted);
  const ModelState model = corrupted.model();
  return find_invalid_state(model, all, 2).has_value();
}

TEST_CASE("single corruptions of the rows and their state are found") {
  const ModelState model = sparse_state();
  const Stored sound(model, true, false);
  CHECK(!find_invalid_state(Stored(sound).model(), true, 1));
  const std::size_t n = model.n_rows();
  const RowTable& rows = model.shards[0].rows;
  REQUIRE(rows.has_sparse());
  REQUIRE(!rows.layout.added().empty());
  std::size_t with_two = 0;
  while (rows.sparse_count[with_two] < 2) ++with_two;
  const std::size_t first = rows.sparse_begin[with_two];
  const std::uint32_t n_cells = static_cast<std::uint32_t>(rows.layout.histogram_size());
  const std::vector<Corruption> corruptions{
      element<std::uint8_t>("row_cells", 2 * rows.layout.row_bytes(), 255),
      {"row_ids", [](Stored& s) { s.array<RowId>("row_ids")[1] = s.array<RowId>("row_ids")[0]; }},
      element<std::int32_t>("row_target", n - 1, 2),
      element<std::int32_t>("row_target", 0, -1),
      element<std::uint64_t>("row_sparse_begin", 3, std::uint64_t{1} << 40),
      element<std::uint64_t>("row_sparse_begin", 3, ~std::uint64_t{0}),
      {"entries of another row",
       [](Stored& s) {
         s.array<std::uint64_t>("row_sparse_begin")[1] =
             s.array<std::uint64_t>("row_sparse_begin")[0];
       }},
      element<std::uint32_t>("row_sparse_count", n - 1, 0xffffffff),
      element<std::uint32_t>("row_rare_count", n - 1, 0xffffffff),
      element<std::uint32_t>("row_sparse_entries", first, n_cells),
      element<std::uint32_t>("row_sparse_entries", first + 1, 0),
      {"an entry twice",
       [=](Stored& s) {
         auto* entries = s.array<std::uint32_t>("row_sparse_entries");
         entries[first + 1] = entries[first];
       }},
      {"row_columns", [](Stored& s) { --s.arrays.at("row_columns").size; }},
      element<std::uint8_t>("tree_leaf_ids", 4, 8),
      element<std::uint8_t>("tree_leaf_ids", 3 * n + 4, 255),
      element<Gradient>("tree_recorded", 7, 1 << 21),
      element<Gradient>("tree_recorded", n, std::numeric_limits<Gradient>::min()),
      element<std::int64_t>("node_sums", 0, std::int64_t{1} << 62),
      element<std::int64_t>("node_sums", 1, -1),
      element<std::int64_t>("node_sums", 2, 1'000'000),
      {"sums of a child", [](Stored& s) { ++s.array<std::int64_t>("node_sums")[3]; }},
      element<std::int64_t>("kept_sums", 2, std::int64_t{1} << 62),
      element<std::int64_t>("kept_sums_sparse", 0, std::numeric_limits<std::int64_t>::min()),
      element<std::uint32_t>("kept_sums_cells", 1, 0),
      element<std::uint32_t>("kept_sums_cells", 0, n_cells + 1000),
  };
  for (const Corruption& corruption : corruptions) {
    if (!is_found(sound, corruption)) CHECK_EQ(std::string(corruption.name), std::string("found"));
  }
  // Without `all`, gradients of unweighted rows are not read.
  CHECK(!is_found(sound, element<Gradient>("tree_recorded", 7, 1 << 21), false));
}

TEST_CASE("single corruptions of weights and targets are found") {
  const ModelState model = weighted_state();
  const Stored sound(model, true, true);
  CHECK(!find_invalid_state(Stored(sound).model(), true, 1));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Corruption> corruptions{
      element<Weight>("row_weight", 3, -1),
      element<Weight>("row_weight", 3, std::numeric_limits<Weight>::max()),
      element<double>("row_raw_weight", 3, nan),
      element<double>("row_raw_weight", 3, -1.0),
      element<double>("row_raw_target", 3, nan),
      element<std::int32_t>("row_target", 3, std::numeric_limits<std::int32_t>::min()),
      {"all weights",
       [&](Stored& s) {
         for (std::size_t r = 0; r < 150; ++r) s.array<Weight>("row_weight")[r] = 1 << 30;
       }},
  };
  for (const Corruption& corruption : corruptions) {
    if (!is_found(sound, corruption)) CHECK_EQ(std::string(corruption.name), std::string("found"));
  }
  // Gradients of weighted rows are read in any case: their sums could overflow.
  CHECK(is_found(sound, element<Gradient>("tree_recorded", 7, std::numeric_limits<Gradient>::max()),
                 false));
}

}  // namespace
}  // namespace graftboost
