// Adding and removing rows in one pass.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/sample.hpp"
#include "model/model_state.hpp"
#include "update/update_counts.hpp"
#include "update/update_rule.hpp"
#include "update/update_trees.hpp"

namespace graftboost {

template <class Table>
struct UpdateRequest {
  const Sample<Table>* added = nullptr;
  std::span<const RowId> removed;
  std::string removed_argument;  // what messages call the rows to remove
  // If n_classes is more than the model has, it grows to so many, and its class k becomes
  // relabel[k].
  std::span<const std::int32_t> relabel;
  int n_classes = 1;
};

// Throws std::invalid_argument if the request is not valid, or std::bad_alloc; then nothing has
// changed.
template <class Table>
UpdateCounts update(ModelState& model, const UpdateRequest<Table>& request, const UpdateRule& rule,
                    int n_threads);

// Regrows nodes for rows whose regrowing earlier updates deferred, by the fidelity rule. Works on
// no more rows than `most_work` of all rows in all trees; from 1 on, a refit may be made instead.
// If it throws, nothing has changed.
UpdateCounts regrow(ModelState& model, const UpdateRule& rule, double most_work, int n_threads);
// What is deferred, and what regrowing it by this rule would take. Nothing changes.
PendingSurvey survey_pending(ModelState& model, const UpdateRule& rule, int n_threads);

// What the model remembers of rows (in nats, in the order of their ids), and what it would take to
// forget them by this rule. Nothing changes.
MemorySurvey survey_removal(ModelState& model, std::span<const RowId> ids,
                            const std::string& argument, const UpdateRule& rule, int n_threads);

}  // namespace graftboost
