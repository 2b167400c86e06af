#include "update/selection.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "core/parallel.hpp"

namespace graftboost {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// The tolerance is chosen by so many of the rows that are remembered, evenly spaced.
constexpr std::size_t most_rows = 2048;

using PerFlip = std::vector<std::vector<double>>;

// Marks with 1 the flips on the paths of these rows.
PerFlip flips_of(const FlipShifts& shifts, std::span<const TreeFlips> flips,
                 std::span<const std::size_t> rows) {
  PerFlip touched;
  for (const TreeFlips& of_tree : flips) touched.emplace_back(of_tree.flips.size());
  for (const std::size_t row : rows)
    shifts.for_each(row, [&](std::size_t t, std::uint32_t f, double) { touched[t][f] = 1; });
  return touched;
}

// The tolerance below which each flip is settled: with its own node, or with one above that is
// regrown.
PerFlip settled_below(const UpdateContext& context, std::span<const TreeFlips> flips,
                      const PerFlip& eligible) {
  PerFlip below;
  std::vector<double> regrown;  // per node
  for (std::size_t t = 0; t < flips.size(); ++t) {
    const std::vector<Flip>& of_tree = flips[t].flips;
    std::vector<double>& found = below.emplace_back();
    if (of_tree.empty()) continue;
    const Tree& tree = context.model.nodes.tree(t);
    regrown.assign(tree.nodes.size(), 0.0);
    for (std::size_t f = 0; f < of_tree.size(); ++f) {
      const bool may_be_regrown =
          of_tree[f].is_void ? of_tree[f].n_moving == 0 : eligible[t][f] != 0;
      if (may_be_regrown)
        regrown[static_cast<std::size_t>(of_tree[f].node)] = of_tree[f].regrown_below;
    }
    for (std::size_t i = 1; i < regrown.size(); ++i)
      regrown[i] = std::max(regrown[i], regrown[static_cast<std::size_t>(tree.nodes[i].parent)]);
    for (std::size_t f = 0; f < of_tree.size(); ++f) {
      const bool is_settled = of_tree[f].is_void || eligible[t][f] != 0;
      found.push_back(std::max(is_settled ? of_tree[f].shifted_below : 0,
                               regrown[static_cast<std::size_t>(of_tree[f].node)]));
    }
  }
  return below;
}

// What settling flips would achieve for some rows.
class Outlook {
 public:
  Outlook(const UpdateContext& context, const ChangedRows& changed, const FlipShifts& shifts,
          const MemoryWhenBooked& booked, const PerFlip& below, std::vector<std::size_t> rows)
      : context_(context),
        changed_(changed),
        booked_(booked),
        rows_(std::move(rows)),
        k_trees_(context.model.base_scores.size()) {
    std::vector<std::vector<bool>> is_listed;
    for (const std::vector<double>& of_tree : below) is_listed.emplace_back(of_tree.size());
    tolerances_.push_back(0);
    ends_.push_back(0);
    for (const std::size_t row : rows_) {
      shifts.for_each(row, [&](std::size_t t, std::uint32_t f, double shift) {
        shifts_.push_back({below[t][f], t % k_trees_, shift});
        if (is_listed[t][f] || below[t][f] == infinite) return;
        is_listed[t][f] = true;
        tolerances_.push_back(below[t][f]);
      });
      ends_.push_back(shifts_.size());
    }
    std::sort(tolerances_.begin(), tolerances_.end(), std::greater{});
    tolerances_.erase(std::unique(tolerances_.begin(), tolerances_.end()), tolerances_.end());
  }

  // Descending; the last one is 0.
  const std::vector<double>& tolerances() const { return tolerances_; }

  // What settling all flips above a tolerance would recover, and what it would leave.
  struct Outcome {
    std::int64_t recovered = 0, left = 0;
  };
  Outcome settle_above(double tolerance) const {
    constexpr std::size_t rows_together = 64;
    std::vector<Outcome> blocks(rows_.size() / rows_together + 1);
    parallel_blocks(context_.n_threads, rows_.size(), rows_together,
                    [&](std::size_t begin, std::size_t end) {
                      blocks[begin / rows_together] = settle_above(tolerance, begin, end);
                    });
    Outcome all;
    for (const Outcome& block : blocks) all.recovered += block.recovered, all.left += block.left;
    return all;
  }

 private:
  struct Shift {
    double below;
    std::size_t k;
    double shift;
  };

  // For some of the rows.
  Outcome settle_above(double tolerance, std::size_t begin, std::size_t end) const {
    Outcome found;
    RowLoss loss(context_, changed_);
    WipedVector<double> settled(k_trees_), stay(k_trees_);
    for (std::size_t i = begin; i < end; ++i) {
      std::fill(settled.begin(), settled.end(), 0.0);
      std::fill(stay.begin(), stay.end(), 0.0);
      double size_settled = 0, size_staying = 0;
      for (std::size_t at = ends_[i]; at < ends_[i + 1]; ++at) {
        const auto& [below, k, shift] = shifts_[at];
        const bool settles = below > tolerance || below == infinite;
        (settles ? settled : stay)[k] += shift;
        (settles ? size_settled : size_staying) += std::abs(shift);
      }
      const std::span<const double> booked = of_row(booked_.scores, rows_[i], k_trees_);
      const double part = part_left(size_settled, size_staying);
      for (std::size_t k = 0; k < k_trees_; ++k) settled[k] *= in_place, stay[k] *= part;
      found.recovered += loss.memory(rows_[i], booked, settled);
      for (std::size_t k = 0; k < k_trees_; ++k) settled[k] += booked[k];
      found.left += loss.memory(rows_[i], settled, stay);
    }
    return found;
  }

  const UpdateContext& context_;
  const ChangedRows& changed_;
  const MemoryWhenBooked& booked_;
  std::vector<std::size_t> rows_;
  std::size_t k_trees_;
  WipedVector<Shift> shifts_;
  std::vector<std::size_t> ends_;  // of the shifts of each row; the first one is 0
  std::vector<double> tolerances_;
};

// The largest tolerance by which the target is reached, infinity if nothing need be settled. The
// fidelity hardly ever falls when more is settled, so a binary search finds it.
double choose_tolerance(const UpdateContext& context, const Outlook& outlook, double achieved) {
  const auto reaches_target = [&](double tolerance) {
    const auto [recovered, left] = outlook.settle_above(tolerance);
    const double total = achieved + static_cast<double>(recovered);
    return total >= context.rule.fidelity * (total + static_cast<double>(left));
  };
  if (reaches_target(infinite)) return infinite;
  const std::vector<double>& tolerances = outlook.tolerances();
  std::size_t first = 0, last = tolerances.size() - 1;
  while (first < last) {
    const std::size_t middle = (first + last) / 2;
    if (reaches_target(tolerances[middle])) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return tolerances[first];
}

void set_actions(std::span<TreeFlips> flips, const PerFlip& eligible, double tolerance) {
  for (std::size_t t = 0; t < flips.size(); ++t) {
    TreeFlips& of_tree = flips[t];
    of_tree.actions.assign(of_tree.flips.size(), FlipAction::none);
    for (std::size_t f = 0; f < of_tree.flips.size(); ++f) {
      const Flip& flip = of_tree.flips[f];
      const bool can_shift = flip.n_moving > 0;
      if (flip.is_void) {
        of_tree.actions[f] = can_shift ? FlipAction::shift : FlipAction::regrow;
      } else if (eligible[t][f] != 0 && flip.regrown_below > tolerance) {
        of_tree.actions[f] = FlipAction::regrow;
      } else if (eligible[t][f] != 0 && can_shift && flip.shifted_below > tolerance) {
        of_tree.actions[f] = FlipAction::shift;
      }
    }
  }
}

}  // namespace

double select_actions(const UpdateContext& context, const ChangedRows& changed,
                      const FlipShifts& shifts, const MemoryWhenBooked& booked,
                      std::span<TreeFlips> flips) {
  std::vector<std::size_t> remembered;
  double achieved = 0;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    achieved += static_cast<double>(booked.achieved[i]);
    if (reaches_floor(booked.memory[i], context.rule.memory_floor)) remembered.push_back(i);
  }
  // The order of changed rows depends on shards.
  std::ranges::sort(remembered, {}, [&](std::size_t i) {
    return std::pair(changed.rows().ids[i], changed.enters(i));
  });
  const PerFlip eligible = flips_of(shifts, flips, remembered);
  const PerFlip below = settled_below(context, flips, eligible);
  const std::size_t stride = remembered.size() / most_rows + 1;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < remembered.size(); i += stride) rows.push_back(remembered[i]);
  achieved = std::max(achieved, 0.0) / static_cast<double>(stride);
  const Outlook outlook(context, changed, shifts, booked, below, std::move(rows));
  const double tolerance = choose_tolerance(context, outlook, achieved);
  set_actions(flips, eligible, tolerance);
  return tolerance;
}

}  // namespace graftboost
