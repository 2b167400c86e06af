// Updates that keep the structure, after a refresh dropped the histograms.
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "model/model.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"

namespace graftboost {
namespace {

using testing::bins_of;
using testing::change;
using testing::check_same;
using testing::check_sums;
using testing::fit_model;
using testing::ModelOptions;
using testing::never_regrow;
using testing::Random;
using testing::random_rows;
using testing::state_of;
using testing::TrainingRows;
using testing::various_models;

bool any_cached(const TreeNodes& nodes) {
  return std::visit(
      [](const auto& histograms) {
        for (const auto& histogram : histograms)
          if (histogram.cached) return true;
        return false;
      },
      nodes.histograms);
}

// A window over rows: a step removes the oldest rows and adds as many.
struct Window {
  explicit Window(const ModelOptions& options)
      : all(random_rows(options, 260, 3)),
        bins(bins_of(all, options)),
        model(fit_model(all.slice(0, 200), options, bins)) {}

  UpdateCounts step(std::size_t size, const UpdateRule& rule, int n_threads = 2) {
    const TrainingRows added = all.slice(end, end + size);
    const auto removed = all.ids().subspan(begin, size);
    begin += size, end += size;
    return change(*model, added, removed, rule, n_threads);
  }

  TrainingRows all;
  std::shared_ptr<const BinMap> bins;
  std::unique_ptr<Model> model;
  std::size_t begin = 0, end = 200;
};

TEST_CASE("after a refresh, updates that keep the structure count no histograms") {
  UpdateRule zero_fidelity;
  zero_fidelity.kind = UpdateRule::Kind::fidelity;
  for (const ModelOptions& options : various_models()) {
    for (const UpdateRule& rule : {never_regrow, zero_fidelity}) {
      Window window(options);
      window.step(5, rule);
      for (const TreeNodes& nodes : state_of(*window.model).nodes) CHECK(nodes.counted);
      window.model->refresh(2);
      for (int i = 0; i < 2; ++i) {
        const UpdateCounts counts = window.step(6, rule);
        CHECK(!counts.refitted);
        const ModelState after = state_of(*window.model);
        for (const TreeNodes& nodes : after.nodes) {
          CHECK(!nodes.counted);
          CHECK(!any_cached(nodes));
        }
        check_sums(after);
        window.model->check_state(1);
      }
      // An update that looks at candidates counts them again.
      window.step(3, {UpdateRule::Kind::regret, 1e9, 1});
      const ModelState after = state_of(*window.model);
      for (const TreeNodes& nodes : after.nodes) CHECK(nodes.counted);
      CHECK(check_sums(after) > 0);
    }
  }
}

TEST_CASE("models and counts do not depend on whether histograms were dropped") {
  const std::vector<UpdateRule> rules{
      never_regrow, never_regrow, {UpdateRule::Kind::regret, 0.5, 1}, never_regrow};
  for (const ModelOptions& options : various_models()) {
    Window dropped(options), counted(options);
    for (const UpdateRule& rule : rules) {
      for (Window* window : {&dropped, &counted}) window->model->refresh(2);
      (void)counted.model->tree_nodes(0);  // counts the histograms of all trees
      for (const std::size_t size : {1, 12}) {
        const UpdateCounts without = dropped.step(size, rule, 1), with = counted.step(size, rule);
        CHECK_EQ(without.refitted, with.refitted);
        CHECK_EQ(without.trees_touched, with.trees_touched);
        CHECK_EQ(without.nodes_checked, with.nodes_checked);
        CHECK_EQ(without.nodes_regrown, with.nodes_regrown);
        CHECK_EQ(without.work.amount(), with.work.amount());
      }
    }
    for (Window* window : {&dropped, &counted}) (void)window->model->tree_nodes(0);
    check_same(state_of(*dropped.model), state_of(*counted.model));
  }
}

TEST_CASE("leaves of deferred rows keep the gain from before, also if the structure is kept") {
  UpdateRule booking;
  booking.defers = true;
  for (const ModelOptions& options : various_models()) {
    Window dropped(options), counted(options);
    for (Window* window : {&dropped, &counted}) {
      window->model->refresh(2);
      window->step(4, never_regrow);
      if (window == &counted) (void)window->model->tree_nodes(0);
      window->step(4, booking);
      window->model->refresh(2);
      if (window == &counted) (void)window->model->tree_nodes(0);
      window->step(4, never_regrow);
      (void)window->model->tree_nodes(0);
    }
    check_same(state_of(*dropped.model), state_of(*counted.model));
  }
}

}  // namespace
}  // namespace graftboost
