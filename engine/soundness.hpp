// Whether the rows and states of a model that came from outside can be worked with at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "forest.hpp"

namespace graftboost {

// Looks at every number in the state of a model that was put together, and says what is wrong with one:
// no index is out of range, and no arithmetic can go wrong.
std::optional<std::string> find_flaw(const Forest& forest, int n_threads);

}  // namespace graftboost
