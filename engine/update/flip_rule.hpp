// What the rules have in common that survey all trees before they select what is regrown.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "update/flip.hpp"
#include "update/update_context.hpp"
#include "update/update_counts.hpp"

namespace graftboost {

// Follows one update from the flips that surveys find to the estimate of what was achieved. Owns
// the flips and what is done about them.
class FlipRule {
 public:
  explicit FlipRule(UpdateContext& context)
      : context_(context), flips_(context.model.nodes.size()) {}
  virtual ~FlipRule() = default;

  // What the survey of a tree found. Different threads may set different trees.
  void set_flips(std::size_t t, std::vector<Flip> flips);
  // When these trees are surveyed: selects what is done about their flips, as if they stood for all
  // trees, and sets the context's tolerance.
  virtual void select(std::span<const std::size_t> trees) = 0;
  // To be called before anything selected is done, because that changes sums and numbers nodes
  // anew.
  virtual void before_settling() = 0;
  // When all is done; trees that are `restructured` have other splits than before.
  virtual FidelityEstimate estimate(const std::vector<bool>& restructured) const = 0;

  const TreeFlips& flips(std::size_t t) const { return flips_[t]; }
  bool has_actions(std::size_t t) const;
  // The topmost nodes of a tree that are to be regrown.
  std::vector<NodeIndex> nodes_to_regrow(std::size_t t) const;

 protected:
  UpdateContext& context_;
  std::vector<TreeFlips> flips_;  // per tree
};

}  // namespace graftboost
