// Whether the rows and states of a model that came from outside can be worked with at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/model.hpp"

namespace graftboost {

// Looks at every number in the state of a model that was put together, and says what is wrong with one:
// no index is out of range, and no arithmetic can go wrong. Without `all`, recorded gradients of unweighted
// rows are left out: no sum of so many 32-bit numbers overflows, and they are most of a model, which a
// change to a store of gigabytes need not read.
std::optional<std::string> find_flaw(const Forest& forest, bool all, int n_threads);

}  // namespace graftboost
