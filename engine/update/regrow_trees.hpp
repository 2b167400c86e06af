// Failed nodes of all trees are regrown, iteration by iteration.
#pragma once

#include <memory>
#include <span>

#include "update/split_check.hpp"
#include "update/tree_progress.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// When all trees are checked: regrows the nodes that failed, and replays the growth order where it
// changed. Works with these checkers, one per thread.
template <class Sums>
void regrow_trees(const UpdateContext& context,
                  std::span<const std::unique_ptr<SplitChecker<Sums>>> checkers,
                  std::span<TreeProgress> progress);

}  // namespace graftboost
