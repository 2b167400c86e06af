// Models with deferred rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/model.hpp"
#include "model/state_check.hpp"
#include "tests/check.hpp"
#include "tests/models.hpp"
#include "tests/update/started_update.hpp"
#include "tests/update/surveys.hpp"
#include "update/changed_rows.hpp"
#include "update/flip.hpp"
#include "update/node_undo.hpp"
#include "update/row_answers.hpp"
#include "update/split_check.hpp"
#include "update/update_context.hpp"

namespace graftboost::testing {

inline UpdateRule deferring(double fidelity = 0.9) {
  UpdateRule rule = fidelity_rule(fidelity);
  rule.defers = true;
  return rule;
}

inline std::vector<ModelOptions> models_that_defer() {
  std::vector<ModelOptions> all = various_models();
  ModelOptions squared, weighted;
  squared.loss = LossKind::squared;
  weighted.loss = LossKind::softmax;
  weighted.n_classes = 3;
  weighted.weighted = true;
  weighted.training.n_estimators = 2;
  all.insert(all.end(), {squared, weighted});
  return all;
}

// Rows, and a model of the first 300 of them from which updates remove some and add others.
struct Deferring {
  explicit Deferring(const ModelOptions& options, std::uint64_t seed)
      : rows(random_rows(options, 340, seed)), model(fit_model(rows.slice(0, 300), options)) {}

  TrainingRows removed(std::size_t step) const { return rows.slice(20 * step, 20 * step + 10); }
  // The second update only removes rows.
  TrainingRows added(std::size_t step) const {
    return rows.slice(300 + 5 * step, 300 + 5 * step + (step == 1 ? 0 : 4));
  }
  UpdateCounts defer(std::size_t step, int n_threads = 2) {
    return change(*model, added(step), removed(step).ids(), deferring(), n_threads);
  }
  void defer_all(std::size_t n_steps = 3) {
    for (std::size_t step = 0; step < n_steps; ++step) defer(step);
  }

  TrainingRows rows;
  std::unique_ptr<Model> model;
};

// A model with deferred rows.
inline ModelState deferred_state(const ModelOptions& options, std::uint64_t seed) {
  Deferring deferring(options, seed);
  deferring.defer_all();
  return state_of(*deferring.model);
}

inline std::int64_t n_with_sums(const ModelState& model) {
  std::int64_t n = 0;
  for (const TreeNodes& nodes : model.nodes)
    for (const Node& node : nodes.tree.nodes) n += !(node.deferred == DeferredSums{});
  return n;
}

// A node with sums follows one with sums, and none has any without rows.
inline void check_closed(const ModelState& model) {
  for (const TreeNodes& nodes : model.nodes) {
    for (const Node& node : nodes.tree.nodes) {
      if (node.deferred.empty()) {
        CHECK(node.deferred == DeferredSums{});
      } else {
        CHECK(node.parent == no_node || nodes.tree[node.parent].deferred.n >= node.deferred.n);
      }
    }
  }
  if (model.deferred.empty()) CHECK(model.deferred == DeferredRows{});
  if (model.deferred.empty()) CHECK_EQ(n_with_sums(model), 0);
}

inline void check_sound(const ModelState& model) {
  check_closed(model);
  const auto difference = find_difference(model, 1);
  if (difference) CHECK_EQ(*difference, std::string("nothing"));
}

// Owns a model with deferred rows, and what regrowing for them needs. Nothing is committed.
class StartedRegrow {
 public:
  StartedRegrow(ModelState of, const UpdateRule& by)
      : model(std::move(of)), rule(by), undo(std::make_unique<NodeUndo>(model)) {
    for (RowShard& shard : model.shards) shard.begin_update({});
    none = std::make_unique<ChangedRows>(model, 1);
    context = std::make_unique<UpdateContext>(model, rule, *undo, 1);
  }

  // The flips of all trees at nodes with deferred rows.
  std::vector<std::vector<Flip>> survey() {
    std::vector<std::vector<Flip>> flips(model.nodes.size());
    for_sums_of(model, [&]<class Sums>(Sums) {
      SplitChecker<Sums> checker(*context);
      TreeCheck<Sums> check;
      Array<Slot> slots;
      for (std::size_t t = 0; t < flips.size(); ++t) {
        check.reset(t, model.nodes.tree(t).nodes.size(), GainBounds::are_grouped(model.layout()));
        check.is_survey = true;
        if (!checker.begin_deferred(check)) continue;
        while (check.is_waiting()) {
          answer(*context, check, slots);
          checker.resume(check);
        }
        flips[t] = check.flips;
      }
    });
    return flips;
  }

  void abandon() {
    undo.reset();
    for (RowShard& shard : model.shards) shard.undo();
  }

  ModelState model;
  const UpdateRule rule;
  std::unique_ptr<NodeUndo> undo;
  std::unique_ptr<ChangedRows> none;
  std::unique_ptr<UpdateContext> context;
};

}  // namespace graftboost::testing
