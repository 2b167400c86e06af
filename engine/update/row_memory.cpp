#include "update/row_memory.hpp"

#include <algorithm>
#include <cmath>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

// The part of a difference just above the leaves that is left when training has gone on. This and
// `optimism` are the same for all data. They were found by regression: of the changes of scores
// that retrains caused, on the terms of the formula.
constexpr double damping = 0.7;
// The part of what splits add to the score of a row that they would not add without it.
constexpr double optimism = 0.08;
// The loss of a row counts for no more than this.
constexpr double largest_loss = 0x1p12;

// Calls block(begin, end) for blocks of the changed rows.
template <class Block>
void for_blocks(const UpdateContext& context, const ChangedRows& changed, Block&& block) {
  constexpr std::size_t rows_together = 256;
  parallel_blocks(context.n_threads, changed.size(), rows_together, block);
}

std::span<const double> of_row(const ChangedScores& scores, std::size_t row, std::size_t k_trees) {
  return {scores.data() + row * k_trees, k_trees};
}

// Adds up value_of(tree, row) of all trees, for all rows.
template <class ValueOf>
ChangedScores add_up(const UpdateContext& context, const ChangedRows& changed,
                     const std::vector<double>& base_scores, ValueOf&& value_of) {
  const std::size_t k_trees = base_scores.size(), n_trees = context.model.nodes.size();
  ChangedScores scores;
  for (std::size_t i = 0; i < changed.size(); ++i)
    scores.insert(scores.end(), base_scores.begin(), base_scores.end());
  for_blocks(context, changed, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = 0; t < n_trees; ++t)
      for (std::size_t i = begin; i < end; ++i) scores[i * k_trees + t % k_trees] += value_of(t, i);
  });
  return scores;
}

// The leaf that a changed row was in before the update.
const Node& leaf_before(const UpdateContext& context, const ChangedRows& changed, std::size_t t,
                        std::size_t row) {
  const Tree& tree = context.model.nodes.tree(t);
  return tree[tree.leaves[changed.leaf(t, row)]];
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

ChangedScores scores_before(const UpdateContext& context, const ChangedRows& changed) {
  return add_up(
      context, changed, context.undo.base_scores_before(),
      [&](std::size_t t, std::size_t i) { return leaf_before(context, changed, t, i).value; });
}

ChangedScores scores_when_booked(const UpdateContext& context, const ChangedRows& changed) {
  const ModelState& model = context.model;
  return add_up(context, changed, model.base_scores, [&](std::size_t t, std::size_t i) {
    return model.leaf_value(leaf_before(context, changed, t, i).sums);
  });
}

ChangedScores scores_now(const UpdateContext& context, const ChangedRows& changed,
                         const std::vector<bool>& restructured) {
  const ModelState& model = context.model;
  const RowTable& rows = changed.rows();
  return add_up(context, changed, model.base_scores, [&](std::size_t t, std::size_t i) {
    if (!restructured[t]) return leaf_before(context, changed, t, i).value;
    const Tree& tree = model.nodes.tree(t);
    const auto row = static_cast<Slot>(i);
    return tree[tree.route([&](std::uint32_t column) { return rows.code(row, column); })].value;
  });
}

// --- losses --------------------------------------------------------------------------------------

RowLoss::RowLoss(const UpdateContext& context, const ChangedRows& changed)
    : loss_(context.model.loss),
      changed_(changed),
      unit_(unit_of_losses(context)),
      shifted_(context.model.base_scores.size()),
      gradients_(shifted_.size()) {}

std::int64_t RowLoss::operator()(std::size_t row, std::span<const double> scores) const {
  return in_memory_units(loss_.of_row(changed_.rows().target[row], scores) / unit_);
}

std::int64_t RowLoss::memory(std::size_t row, std::span<const double> scores,
                             std::span<const double> shifts) {
  for (std::size_t k = 0; k < shifted_.size(); ++k) shifted_[k] = scores[k] + shifts[k];
  const std::int64_t rise = (*this)(row, shifted_) - (*this)(row, scores);
  return changed_.enters(row) ? -rise : rise;
}

void RowLoss::slopes(std::size_t row, std::span<const double> scores, double* to) {
  loss_.record_row(changed_.rows().target[row], scores, gradients_.data());
  const double grid = loss_.gradient_grid();
  const double factor = (changed_.enters(row) ? -grid : grid) / unit_;
  for (std::size_t k = 0; k < gradients_.size(); ++k)
    to[k] = static_cast<double>(gradients_[k]) * factor;
}

ChangedLosses achieved(const UpdateContext& context, const ChangedRows& changed,
                       const ChangedScores& before, const ChangedScores& now) {
  const std::size_t k_trees = context.model.base_scores.size();
  const RowLoss loss(context, changed);
  ChangedLosses losses;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const std::int64_t rise =
        loss(i, of_row(now, i, k_trees)) - loss(i, of_row(before, i, k_trees));
    losses.push_back(changed.enters(i) ? -rise : rise);
  }
  return losses;
}

ChangedLosses memory_of(const UpdateContext& context, const ChangedRows& changed,
                        const ChangedScores& scores, const ChangedScores& shifts) {
  const std::size_t k_trees = context.model.base_scores.size();
  RowLoss loss(context, changed);
  ChangedLosses memory;
  for (std::size_t i = 0; i < changed.size(); ++i)
    memory.push_back(loss.memory(i, of_row(scores, i, k_trees), of_row(shifts, i, k_trees)));
  return memory;
}

// --- shifts --------------------------------------------------------------------------------------

FlipShifts::FlipShifts(const UpdateContext& context, const ChangedRows& changed,
                       std::span<const TreeFlips> flips, double scale)
    : context_(context), changed_(changed), flips_(flips) {
  const ModelState& model = context.model;
  for (std::size_t t = 0; t < flips.size(); ++t) {
    if (flips[t].flips.empty()) continue;
    const Tree& tree = model.nodes.tree(t);
    OfTree of_tree{t, std::vector<std::uint32_t>(tree.nodes.size(), no_flip), {}, {}};
    for (const Node& node : tree.nodes)
      of_tree.optimism.push_back(on_leaf_grid(scale * optimism * model.leaf_value(node.sums)));
    for (const Flip& flip : flips[t].flips) {
      const Node& node = tree[flip.node];
      of_tree.flip_of[static_cast<std::size_t>(flip.node)] =
          static_cast<std::uint32_t>(of_tree.shifts.size());
      Shifts& shifts = of_tree.shifts.emplace_back();
      for (const bool left : {false, true}) {
        const double present = model.leaf_value(tree[left ? node.left : node.right].sums);
        for (const bool best_left : {false, true}) {
          const Totals& other = !flip.splits ? node.sums
                                : best_left  ? flip.left
                                             : node.sums - flip.left;
          const double difference = model.leaf_value(other) - present;
          const double weight = flip.node == 0 ? 0 : damping * flip.weight;
          shifts[left][best_left] = on_leaf_grid(scale * weight * difference);
        }
      }
    }
    trees_.push_back(std::move(of_tree));
  }
}

ChangedScores FlipShifts::of_rows() const {
  const std::size_t k_trees = context_.model.base_scores.size();
  ChangedScores shifts(changed_.size() * k_trees);
  for_blocks(context_, changed_, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      for_each(i, [&](std::size_t t, std::uint32_t, double shift) {
        shifts[i * k_trees + t % k_trees] += shift;
      });
    }
  });
  return shifts;
}

WipedVector<double> FlipShifts::sizes() const {
  WipedVector<double> sizes(changed_.size());
  for_blocks(context_, changed_, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for_each(i, [&](std::size_t, std::uint32_t, double shift) { sizes[i] += std::abs(shift); });
  });
  return sizes;
}

double FlipShifts::error(const ChangedScores& scores) const {
  const std::size_t k_trees = context_.model.base_scores.size();
  std::vector<std::vector<std::int64_t>> of_flips;
  for (const TreeFlips& flips : flips_) of_flips.emplace_back(flips.flips.size());
  RowLoss loss(context_, changed_);
  WipedVector<double> slopes(k_trees);
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    loss.slopes(i, of_row(scores, i, k_trees), slopes.data());
    for_each(i, [&](std::size_t t, std::uint32_t f, double shift) {
      of_flips[t][f] += in_memory_units(slopes[t % k_trees] * shift);
    });
  }
  double variance = 0;
  for (const std::vector<std::int64_t>& of_tree : of_flips) {
    for (const std::int64_t of_flip : of_tree)
      variance += static_cast<double>(of_flip) * static_cast<double>(of_flip);
  }
  return std::sqrt(variance);
}

}  // namespace graftboost
