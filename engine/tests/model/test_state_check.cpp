#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "model/state_check.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"

namespace graftboost {
namespace {

using testing::fit_state;
using testing::ModelOptions;
using testing::random_rows;

ModelState small_state(bool many_columns, bool weighted) {
  ModelOptions options;
  options.loss = LossKind::softmax;
  options.n_classes = 3;
  options.n_shards = 2;
  options.many_columns = many_columns;
  options.weighted = weighted;
  options.training.n_estimators = 2;
  options.training.subsample = 0.8;
  return fit_state(random_rows(options, 200, 1), options);
}

// A slot of a shard that counts in a tree.
Slot counting_row(const ModelState& model, std::size_t shard, std::size_t t) {
  const RowTable& rows = model.shards[shard].rows;
  for (Slot row = 0; row < rows.size(); ++row) {
    if (model.params.in_subsample(t, rows.ids[row]) && model.shards[shard].weight_of(row) != 0)
      return row;
  }
  return 0;
}

// Calls use(histogram) for a cached histogram of a tree other than the root's.
template <class Use>
void with_cached(ModelState& model, std::size_t t, Use&& use) {
  std::visit(
      [&](auto& histograms) {
        for (std::size_t i = 1; i < histograms.size(); ++i)
          if (histograms[i].cached) return use(histograms[i]);
        REQUIRE(false);
      },
      model.nodes[t].histograms);
}

struct Corruption {
  std::string expected;  // in the message
  std::function<void(ModelState&)> apply;
};

const std::vector<Corruption>& corruptions() {
  static const std::vector<Corruption> all{
      {"tree 4: the sums of node 2 ", [](ModelState& m) { ++m.nodes[4].tree[2].sums.g; }},
      {"the sums of node 0 ", [](ModelState& m) { --m.nodes[0].tree[0].sums.h; }},
      {"the sums of node 1 ", [](ModelState& m) { ++m.nodes[1].tree[1].sums.n; }},
      {"tree 5: the value of node 3 ",
       [](ModelState& m) { m.nodes[5].tree[3].value += leaf_value_grid; }},
      {"tree 3: the histogram of ",
       [](ModelState& m) {
         with_cached(m, 3, []<class Sums>(NodeHistogram<Sums>& histogram) {
           histogram.plain[1] += Sums(Totals{1, 0, 0});
         });
       }},
      {"recorded in another leaf",
       [](ModelState& m) {
         auto& ids = m.shards[1].trees[2].leaf_ids.narrow;
         ids[7] = static_cast<std::uint8_t>(ids[7] == 0 ? 1 : 0);
       }},
      {"is recorded in no leaf",
       [](ModelState& m) { m.shards[0].trees[2].leaf_ids.narrow[3] = 200; }},
      // The square stays the same.
      {"tree 1: the sums of ",
       [](ModelState& m) {
         GradientArray& recorded = m.shards[1].trees[1].recorded;
         const Slot row = counting_row(m, 1, 1);
         recorded.set(row, -recorded[row]);
       }},
      {"tree 1: the sum of squared gradients ",
       [](ModelState& m) {
         GradientArray& recorded = m.shards[1].trees[1].recorded;
         const Slot row = counting_row(m, 1, 1);
         recorded.set(row, recorded[row] + 1);
       }},
      {"tree 3: the sum of squared gradients ", [](ModelState& m) { ++m.nodes[3].squares; }},
      {"tree 0: the sum of squared gradients ",
       [](ModelState& m) { m.nodes[0].squares += static_cast<__int128>(1) << 64; }},
      {"the sums of targets ",
       [](ModelState& m) {
         const Slot row = counting_row(m, 0, 0);
         m.shards[0].rows.target[row] = (m.shards[0].rows.target[row] + 1) % 3;
       }},
      {"the sums of targets ", [](ModelState& m) { ++m.target_sums.classes[1]; }},
      {"the base scores ", [](ModelState& m) { m.base_scores[2] += leaf_value_grid; }},
  };
  return all;
}

TEST_CASE("a model as fitted has no difference") {
  for (const bool many_columns : {false, true}) {
    for (const bool weighted : {false, true}) {
      const ModelState model = small_state(many_columns, weighted);
      REQUIRE(model.nodes.size() == 6);
      CHECK(!find_difference(model, 2));
      CHECK(testing::check_sums(model) > 6);
    }
  }
}

TEST_CASE("single corruptions are found") {
  for (const bool weighted : {false, true}) {
    const ModelState model = small_state(false, weighted);
    for (const Corruption& corruption : corruptions()) {
      ModelState corrupted = model;
      corruption.apply(corrupted);
      const auto difference = find_difference(corrupted, 2);
      REQUIRE(difference.has_value());
      if (difference->find(corruption.expected) == std::string::npos)
        CHECK_EQ(*difference, corruption.expected);
    }
  }
}

TEST_CASE("a cell of a sparse feature that is wrong, missing or left over is found") {
  const ModelState model = small_state(true, false);
  const auto is_found = [&](auto&& corrupt) {
    ModelState corrupted = model;
    with_cached(corrupted, 0, corrupt);
    const auto difference = find_difference(corrupted, 1);
    return difference && difference->find("histogram") != std::string::npos;
  };
  CHECK(is_found([]<class Sums>(NodeHistogram<Sums>& h) { h.sums[2] += Sums(Totals{0, 1, 0}); }));
  CHECK(is_found([](auto& h) {
    h.cells.resize(h.cells.size() - 1);
    h.sums.resize(h.sums.size() - 1);
  }));
  // A cell that no row falls into would reveal that one once did.
  CHECK(is_found([]<class Sums>(NodeHistogram<Sums>& h) {
    h.cells.push_back(h.cells[h.cells.size() - 1] + 1);
    h.sums.push_back(Sums(Totals{}));
  }));
  CHECK(!is_found([](auto&) {}));
}

TEST_CASE("a row whose code changed is found") {
  ModelState model = small_state(false, false);
  RowTable& rows = model.shards[0].rows;
  int n_found = 0;
  for (Slot row = 0; row < 20; ++row) {
    std::uint8_t& cell = rows.cells[row * rows.layout.row_bytes()];
    const std::uint8_t before = cell;
    cell = before == 1 ? 2 : 1;
    n_found += find_difference(model, 1).has_value();
    cell = before;
  }
  CHECK_EQ(n_found, 20);
  CHECK(!find_difference(model, 1));
}

}  // namespace
}  // namespace graftboost
