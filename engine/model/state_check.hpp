// Whether the stored sums of a model are those of its rows.
#pragma once

#include <optional>
#include <string>

#include "model/model_state.hpp"

namespace graftboost {

// Recomputes everything from the rows and compares exactly. Returns the first difference, or
// nothing.
std::optional<std::string> find_difference(const ModelState& model, int n_threads);

}  // namespace graftboost
