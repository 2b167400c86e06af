#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "io/validate_state.hpp"
#include "tests/check.hpp"
#include "tests/io/stored_model.hpp"
#include "tests/models.hpp"

namespace graftboost {
namespace {

using testing::Corruption;
using testing::element;
using testing::fit_state;
using testing::is_refused;
using testing::ModelOptions;
using testing::random_rows;
using testing::Stored;

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
      {"typical_weight", [](Stored& s) { s.summary.loss.typical_weight = 0; }},
      {"learning_rate", [nan](Stored& s) { s.summary.params.learning_rate = nan; }},
      {"n_estimators", [](Stored& s) { ++s.summary.params.n_estimators; }},
      {"max_leaf_nodes", [](Stored& s) { s.summary.params.max_leaf_nodes = 3; }},
      {"min_samples_leaf", [](Stored& s) { s.summary.params.min_samples_leaf = 0; }},
      {"min_hessian", [](Stored& s) { s.summary.params.min_hessian = -1; }},
      {"min_hessian", [nan](Stored& s) { s.summary.params.min_hessian = nan; }},
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
      element<NarrowGradient>("tree_recorded", 7, std::numeric_limits<NarrowGradient>::min()),
      element<NarrowGradient>("tree_recorded", n, std::numeric_limits<NarrowGradient>::min()),
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
  CHECK(!is_found(
      sound,
      element<NarrowGradient>("tree_recorded", 7, std::numeric_limits<NarrowGradient>::min()),
      false));
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
