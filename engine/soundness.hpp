// Whether the rows and states of a model that came from outside can be worked with at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "forest.hpp"

namespace graftboost {

// Looks at every index in the state of a model that was put together, and says what is wrong with one.
// Thorough: at all other numbers too, so that no arithmetic on them can go wrong.
std::optional<std::string> find_flaw(const Forest& forest, bool thorough, int n_threads);

}  // namespace graftboost
