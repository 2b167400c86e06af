// The trees of a model are updated in place: booked, checked, regrown.
#pragma once

#include "update/changed_rows.hpp"
#include "update/update_context.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// Takes the removed rows out of every tree and puts the added rows in. The rows of the shards stay
// where they are. False if a refit is cheaper: then nodes and rows are to be restored.
bool update_trees(UpdateContext& context, ChangedRows& changed, UpdateCounts& counts);

// What the model remembers of rows that an update would change, and what it would take to forget
// or learn them.
struct MemorySurvey {
  WipedVector<double> memory;  // per changed row, if all are changed together
  double work = 0;             // relative to that of a refit
};

// By the fidelity rule, which must not keep the structure. The histograms are as before; the caller
// restores nodes and rows.
MemorySurvey survey_trees(UpdateContext& context, ChangedRows& changed);

// What is deferred, and what regrowing it would take.
struct PendingSurvey {
  DeferredRows rows;
  std::int64_t n_nodes = 0;  // whose split is no longer the best
  double work = 0;           // to reach the rule's fidelity: rows worked on, relative to a refit
  FidelityEstimate now;
};

// Regrows nodes for rows that earlier updates deferred, with `none` as changed rows, and works on
// no more rows than this fraction of all rows in all trees. False if a refit is cheaper.
bool regrow_deferred(UpdateContext& context, ChangedRows& none, double most_work,
                     bool& reaches_target, UpdateCounts& counts);
// The histograms are as before; the caller restores nodes.
PendingSurvey survey_deferred(UpdateContext& context, ChangedRows& none);

}  // namespace graftboost
