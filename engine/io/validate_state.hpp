// Whether the rows and nodes of a model from a file can be used safely.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/model_state.hpp"

namespace graftboost {

// Checks every number in the state of a model that came from arrays: no index is out of range, and
// no arithmetic can overflow. Returns what is invalid, or nothing. Without `all`, the recorded
// gradients of unweighted rows are not read: no sum of so many numbers of 32 bits or fewer overflows, and they
// are most of a model, which a change to a store of gigabytes need not read.
std::optional<std::string> find_invalid_state(const ModelState& model, bool all, int n_threads);

}  // namespace graftboost
