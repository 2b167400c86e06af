#include "update/work_estimate.hpp"

#include <algorithm>

#include "update/update_cost.hpp"

namespace graftboost {

TreeSample choose_sample(const ModelState& model, const ChangedRows& changed) {
  const std::size_t n_trees = model.nodes.size();
  const auto k_trees = static_cast<std::size_t>(model.trees_per_iteration());
  const std::size_t stride =
      std::clamp<std::size_t>(n_trees / cost::fewest_sampled, 1, cost::trees_per_sample) *
      (1 + cost::rows_per_sample * changed.size() / model.n_rows());
  const std::size_t n_first = (n_trees / stride / k_trees + 1) * k_trees;
  TreeSample sample;
  for (std::size_t t = 0; t < n_trees; ++t) {
    const bool is_chosen =
        changed.n_added() == 0 ? t % stride == std::min(stride, n_trees) / 2 : t < n_first;
    (is_chosen ? sample.chosen : sample.others).push_back(t);
  }
  return sample;
}

double WorkEstimate::of_refit(std::span<const std::size_t> trees) const {
  double work = 0;
  for (const std::size_t t : trees)
    work += context_.cost.of_growing(context_.model.nodes.tree(t), 0);
  return work;
}

// Besides growing, terms of scores have to be gathered, from half of the trees on average, or
// carried along for all rows.
double WorkEstimate::to_regrow(std::span<const std::size_t> trees) const {
  double growing = 0, gathering = 0;
  for (const std::size_t t : trees) {
    const Tree& tree = context_.model.nodes.tree(t);
    for (const NodeIndex i : progress_[t].failed) {
      growing += context_.cost.of_growing(tree, i);
      gathering +=
          cost::gathered_value * static_cast<double>(tree[i].sums.n) * static_cast<double>(t) / 2;
    }
  }
  const double carrying = cost::carried_value * static_cast<double>(context_.model.n_rows()) *
                          static_cast<double>(trees.size());
  return (growing + std::min(gathering, carrying)) * cost::regrowing;
}

double WorkEstimate::share_done(std::span<const std::size_t> trees) const {
  return total_counts(progress_).work.amount() / of_refit(trees);
}

bool WorkEstimate::exceeds(std::span<const std::size_t> trees, double share) const {
  const double left = to_regrow(trees) * (changed_.n_added() == 0 ? 1 : cost::first_trees);
  return !context_.rule.keeps_structure() && share_done(trees) + left / of_refit(trees) > share;
}

}  // namespace graftboost
