#include "update/row_memory.hpp"

#include <algorithm>
#include <cmath>

namespace graftboost {
namespace {

// The loss of a row counts for no more than this.
constexpr double largest_loss = 0x1p12;

// The leaf that a changed row was in before the update.
const Node& leaf_before(const Tree& tree, const ChangedRows& changed, std::size_t t,
                        std::size_t row) {
  return tree[tree.leaves[changed.leaf(t, row)]];
}

// Adds up value_of(leaf) of the leaves that rows were in before the update, tree by tree. For trees
// whose rows are in other leaves now, add_others(t, begin, end, to) adds to the scores of rows
// [begin, end), which are to[row * k_trees], and returns true.
template <class ValueOf, class AddOthers>
ChangedScores add_up(const UpdateContext& context, const ChangedRows& changed,
                     const std::vector<double>& base_scores, ValueOf&& value_of,
                     AddOthers&& add_others) {
  const std::size_t k_trees = base_scores.size(), n_trees = context.model.nodes.size();
  ChangedScores scores;
  for (std::size_t i = 0; i < changed.size(); ++i)
    scores.insert(scores.end(), base_scores.begin(), base_scores.end());
  for_blocks(context, changed, [&](std::size_t begin, std::size_t end) {
    std::vector<double> by_leaf;
    for (std::size_t t = 0; t < n_trees; ++t) {
      double* to = scores.data() + t % k_trees;
      if (add_others(t, begin, end, to)) continue;
      const Tree& tree = context.model.nodes.tree(t);
      // Many rows share few leaves.
      if (end - begin < tree.leaves.size()) {
        for (std::size_t i = begin; i < end; ++i)
          to[i * k_trees] += value_of(leaf_before(tree, changed, t, i));
        continue;
      }
      by_leaf.assign(tree.leaves.size(), 0.0);
      for (std::size_t leaf = 0; leaf < by_leaf.size(); ++leaf)
        if (tree.leaves[leaf] != no_node) by_leaf[leaf] = value_of(tree[tree.leaves[leaf]]);
      for (std::size_t i = begin; i < end; ++i) to[i * k_trees] += by_leaf[changed.leaf(t, i)];
    }
  });
  return scores;
}

}  // namespace

std::int64_t in_memory_units(double units, std::int64_t n_rows) {
  constexpr double most_of_row = largest_loss / memory_unit, most_of_all = 0x1p60;
  const double most = std::min(most_of_row * static_cast<double>(n_rows), most_of_all);
  return static_cast<std::int64_t>(std::nearbyint(std::clamp(units, -most, most)));
}

double unit_of_losses(const UpdateContext& context) {
  const bool is_squared = context.model.loss.kind == LossKind::squared;
  return is_squared && !context.variance.empty() ? memory_unit * context.variance.back()
                                                 : memory_unit;
}

// --- scores --------------------------------------------------------------------------------------

namespace {

constexpr auto no_others = [](std::size_t, std::size_t, std::size_t, double*) { return false; };

}  // namespace

ChangedScores scores_before(const UpdateContext& context, const ChangedRows& changed) {
  return add_up(
      context, changed, context.undo.base_scores_before(),
      [](const Node& leaf) { return leaf.value; }, no_others);
}

ChangedScores scores_when_booked(const UpdateContext& context, const ChangedRows& changed) {
  const ModelState& model = context.model;
  return add_up(
      context, changed, model.base_scores,
      [&](const Node& leaf) { return model.leaf_value(leaf.sums); }, no_others);
}

ChangedScores scores_now(const UpdateContext& context, const ChangedRows& changed,
                         const std::vector<bool>& restructured) {
  const ModelState& model = context.model;
  const std::size_t k_trees = model.base_scores.size();
  const auto route_rows = [&](std::size_t t, std::size_t begin, std::size_t end, double* to) {
    if (!restructured[t]) return false;
    const Tree& tree = model.nodes.tree(t);
    changed.route(tree, begin, end,
                  [&](std::size_t i, NodeIndex leaf) { to[i * k_trees] += tree[leaf].value; });
    return true;
  };
  return add_up(
      context, changed, model.base_scores, [](const Node& leaf) { return leaf.value; }, route_rows);
}

// --- losses --------------------------------------------------------------------------------------

RowLoss::RowLoss(const UpdateContext& context, const ChangedRows& changed)
    : loss_(context.model.loss),
      changed_(changed),
      unit_(unit_of_losses(context)),
      shifted_(context.model.base_scores.size()) {}

std::int64_t RowLoss::operator()(std::size_t row, std::span<const double> scores) const {
  return in_memory_units(loss_.of_row(changed_.rows().target[row], scores) / unit_);
}

std::int64_t RowLoss::memory(std::size_t row, std::span<const double> scores,
                             std::span<const double> shifts) {
  for (std::size_t k = 0; k < shifted_.size(); ++k) shifted_[k] = scores[k] + shifts[k];
  const std::int64_t rise = (*this)(row, shifted_) - (*this)(row, scores);
  return changed_.enters(row) ? -rise : rise;
}

void RowLoss::slopes(std::size_t row, std::span<const double> scores, double* to) const {
  loss_.slopes(changed_.rows().target[row], scores, to);
  const double factor = (changed_.enters(row) ? -1 : 1) / unit_;
  for (std::size_t k = 0; k < scores.size(); ++k) to[k] *= factor;
}

ChangedLosses achieved(const UpdateContext& context, const ChangedRows& changed,
                       const ChangedScores& before, const ChangedScores& now) {
  const std::size_t k_trees = context.model.base_scores.size();
  ChangedLosses losses(changed.size());
  for_blocks(context, changed, [&](std::size_t begin, std::size_t end) {
    const RowLoss loss(context, changed);
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t rise =
          loss(i, of_row(now, i, k_trees)) - loss(i, of_row(before, i, k_trees));
      losses[i] = changed.enters(i) ? -rise : rise;
    }
  });
  return losses;
}

ChangedLosses memory_of(const UpdateContext& context, const ChangedRows& changed,
                        const ChangedScores& scores, const ChangedScores& shifts) {
  const std::size_t k_trees = context.model.base_scores.size();
  ChangedLosses memory(changed.size());
  for_blocks(context, changed, [&](std::size_t begin, std::size_t end) {
    RowLoss loss(context, changed);
    for (std::size_t i = begin; i < end; ++i)
      memory[i] = loss.memory(i, of_row(scores, i, k_trees), of_row(shifts, i, k_trees));
  });
  return memory;
}

}  // namespace graftboost
