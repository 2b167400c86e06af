// The work that an update takes, compared with that of a refit.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "update/changed_rows.hpp"
#include "update/tree_progress.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// Trees that are checked first, from which the work for all is estimated, and all others.
struct TreeSample {
  std::vector<std::size_t> chosen, others;
};

// Evenly spaced trees; but what added rows record is found out from the first tree on, so if there
// are any, the first trees.
TreeSample choose_sample(const ModelState& model, const ChangedRows& changed);

// Estimates from what is known of trees so far. Borrows everything.
class WorkEstimate {
 public:
  WorkEstimate(const UpdateContext& context, const ChangedRows& changed,
               std::span<const TreeProgress> progress)
      : context_(context), changed_(changed), progress_(progress) {}

  double of_refit(std::span<const std::size_t> trees) const;
  // Of regrowing the nodes that failed.
  double to_regrow(std::span<const std::size_t> trees) const;
  // What was done so far for these trees, relative to a refit's work for them.
  double share_done(std::span<const std::size_t> trees) const;
  // Whether what was done so far, and is left to do with these trees, exceeds this share of a
  // refit's work.
  bool exceeds(std::span<const std::size_t> trees, double share) const;

 private:
  const UpdateContext& context_;
  const ChangedRows& changed_;
  std::span<const TreeProgress> progress_;
};

}  // namespace graftboost
