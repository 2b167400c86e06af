#include "update/selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "update/update_cost.hpp"

namespace graftboost {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// Flips are selected by so many of the rows that are remembered, evenly spaced.
constexpr std::size_t most_rows = 4096;
// If the model remembers at least so many times the floor of a row, less than this part of the floor
// has to be left: the error of the estimate grows with the memory.
constexpr double well_remembered = 2, part_of_floor = 0.5;
// Higher targets than the default ask for less than the floor: the floor is what may be left of a row
// by default.
double part_that_counts(double fidelity) { return std::min((1 - fidelity) / (1 - 0.85), 1.0); }
// When the target is reached, so much more work may be done for rows that are still remembered.
constexpr double more_work = 0.25;

// A way to settle a flip. Its value is the memory that it may recover relative to its work.
struct Step {
  double value;
  double work;
  std::size_t t;
  std::size_t flip;
  FlipAction action;

  // The step that is taken first is the largest.
  friend bool operator<(const Step& a, const Step& b) {
    if (a.value != b.value) return a.value < b.value;
    return std::tuple(a.t, a.flip, a.action) > std::tuple(b.t, b.flip, b.action);
  }
};

// The shifts that flips cause of the scores of some rows, by flip.
//
// Flips are numbered across trees; rows are numbers from 0 on.
class ShiftsByFlip {
 public:
  struct Shift {
    std::uint32_t row;
    double shift;
  };

  ShiftsByFlip(std::span<const TreeFlips> flips, const FlipShifts& shifts,
               std::span<const std::size_t> rows) {
    std::size_t n_flips = 0;
    for (const TreeFlips& of_tree : flips) {
      first_.push_back(n_flips);
      n_flips += of_tree.flips.size();
    }
    begin_.assign(n_flips + 2, 0);
    for (const std::size_t row : rows)
      shifts.for_each(row,
                      [&](std::size_t t, std::uint32_t f, double) { ++begin_[first_[t] + f + 2]; });
    for (std::size_t f = 2; f < begin_.size(); ++f) begin_[f] += begin_[f - 1];
    shifts_.resize(begin_.back());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      shifts.for_each(rows[i], [&](std::size_t t, std::uint32_t f, double shift) {
        shifts_[begin_[first_[t] + f + 1]++] = {static_cast<std::uint32_t>(i), shift};
      });
    }
  }

  std::size_t n_flips() const { return begin_.size() - 2; }
  std::size_t number(std::size_t t, std::size_t flip) const { return first_[t] + flip; }
  std::span<const Shift> of(std::size_t t, std::size_t flip) const {
    const std::size_t f = number(t, flip);
    return {shifts_.data() + begin_[f], shifts_.data() + begin_[f + 1]};
  }

 private:
  std::vector<std::size_t> first_;  // number of the first flip of each tree
  std::vector<std::size_t> begin_;  // of the shifts of each flip, and the end
  WipedVector<Shift> shifts_;
};

// What the flips that are settled so far would recover and leave of each of some rows.
class Outlook {
 public:
  Outlook(const UpdateContext& context, const ChangedRows& changed, const MemoryWhenBooked& booked,
          std::vector<std::size_t> rows)
      : booked_(booked),
        rows_(std::move(rows)),
        k_trees_(context.model.base_scores.size()),
        loss_(context, changed),
        states_(rows_.size()),
        staying_(rows_.size() * k_trees_),
        settled_(rows_.size() * k_trees_),
        slopes_(rows_.size() * k_trees_),
        done_(k_trees_),
        left_(k_trees_),
        now_(k_trees_) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      loss_.slopes(rows_[i], scores_of(i), slopes_.data() + i * k_trees_);
      const double floor = context.rule.memory_floor * part_that_counts(context.rule.fidelity);
      const bool is_well =
          reaches_floor(booked.memory[rows_[i]], well_remembered * context.rule.memory_floor);
      states_[i].floor = floor * (is_well ? part_of_floor : 1);
    }
  }

  // A flip shifts the k-th score of a row, and stays for now.
  void add(std::size_t row, std::size_t k, double shift) {
    staying_[row * k_trees_ + k] += shift;
    states_[row].size_staying += std::abs(shift);
  }
  void settle(std::size_t row, std::size_t k, double shift) {
    staying_[row * k_trees_ + k] -= shift;
    settled_[row * k_trees_ + k] += shift;
    states_[row].size_staying -= std::abs(shift);
    states_[row].size_settled += std::abs(shift);
  }
  // When the shifts of a row have been added, or some of them settled.
  void estimate(std::size_t row) {
    State& state = states_[row];
    count(state, -1);
    const std::span<const double> booked = scores_of(row);
    const double part = part_left(state.size_settled, state.size_staying);
    for (std::size_t k = 0; k < k_trees_; ++k) {
      done_[k] = settled_[row * k_trees_ + k] * in_place;
      left_[k] = staying_[row * k_trees_ + k] * part;
      now_[k] = done_[k] + booked[k];
    }
    state.recovered = loss_.memory(rows_[row], booked, done_);
    state.left = loss_.memory(rows_[row], now_, left_);
    count(state, 1);
  }

  std::size_t size() const { return rows_.size(); }
  bool is_remembered(std::size_t row) const { return is_remembered(states_[row]); }
  bool any_remembered() const { return n_remembered_ > 0; }
  bool reaches(double fidelity, double achieved) const {
    const double total = achieved + static_cast<double>(all_recovered_);
    return total >= fidelity * (total + static_cast<double>(all_left_));
  }
  // The memory that a shift of the k-th score of a row may account for. By the sign of shifts, flips
  // that happen to favour the changed rows would stay, and the rows would be predicted worse than by
  // a retrain.
  std::int64_t memory_at_stake(std::size_t row, std::size_t k, double shift) const {
    return in_memory_units(std::abs(slopes_[row * k_trees_ + k] * shift));
  }

 private:
  // Of a row: the memory from which on it counts, the sizes of all shifts, and the memory that
  // settling recovers and leaves.
  struct State {
    double floor = 0;
    double size_settled = 0, size_staying = 0;
    std::int64_t recovered = 0, left = 0;
  };

  static bool is_remembered(const State& state) { return reaches_floor(state.left, state.floor); }
  void count(const State& state, int sign) {
    all_recovered_ += sign * state.recovered;
    if (!is_remembered(state)) return;
    n_remembered_ += sign;
    all_left_ += sign * state.left;
  }
  std::span<const double> scores_of(std::size_t row) const {
    return of_row(booked_.scores, rows_[row], k_trees_);
  }

  const MemoryWhenBooked& booked_;
  std::vector<std::size_t> rows_;
  std::size_t k_trees_;
  RowLoss loss_;
  WipedVector<State> states_;                       // per row
  WipedVector<double> staying_, settled_, slopes_;  // per row and class
  WipedVector<double> done_, left_, now_;           // of one row
  std::int64_t n_remembered_ = 0;
  std::int64_t all_recovered_ = 0, all_left_ = 0;  // what is left of rows that are remembered
};

// Settles flips step by step. Borrows the flips and sets their actions.
class Selection {
 public:
  Selection(const UpdateContext& context, std::span<TreeFlips> flips, const ShiftsByFlip& shifts,
            Outlook& outlook)
      : context_(context),
        flips_(flips),
        shifts_(shifts),
        outlook_(outlook),
        k_trees_(context.model.base_scores.size()),
        is_settled_(shifts.n_flips()) {
    for (std::size_t t = 0; t < flips_.size(); ++t) {
      flips_[t].actions.assign(flips_[t].flips.size(), FlipAction::none);
      for (std::size_t f = 0; f < flips_[t].flips.size(); ++f)
        for (const auto& [row, shift] : shifts.of(t, f)) outlook.add(row, t % k_trees_, shift);
    }
    for (std::size_t row = 0; row < outlook.size(); ++row) outlook.estimate(row);
  }

  // Whatever is remembered.
  void settle_void() {
    for (std::size_t t = 0; t < flips_.size(); ++t) {
      for (std::size_t f = 0; f < flips_[t].flips.size(); ++f) {
        const Flip& flip = flips_[t].flips[f];
        if (flip.is_void)
          take({0, 0, t, f, flip.n_moving > 0 ? FlipAction::shift : FlipAction::regrow});
      }
    }
  }

  // Until the target is reached. Values only fall, because rows are remembered less and less and
  // flips are settled: a step whose value is still above that of the next one is the best.
  void settle(double achieved) {
    std::priority_queue<Step> steps(std::less<Step>{}, find_steps());
    double most = infinite;
    while (!steps.empty() && outlook_.any_remembered()) {
      if (most == infinite && outlook_.reaches(context_.rule.fidelity, achieved))
        most = work_ * (1 + more_work);
      Step step = steps.top();
      steps.pop();
      if (is_settled_[shifts_.number(step.t, step.flip)] || work_ + step.work > most) continue;
      step.value = value_of(step);
      if (!steps.empty() && step < steps.top()) {
        if (step.value > 0) steps.push(step);
      } else if (step.value > 0) {
        take(step);
      }
    }
  }

  bool any_settled() const { return std::ranges::count(is_settled_, true) > 0; }

 private:
  std::vector<Step> find_steps() const {
    std::vector<Step> steps;
    for (std::size_t t = 0; t < flips_.size(); ++t) {
      for (std::size_t f = 0; f < flips_[t].flips.size(); ++f) {
        const Flip& flip = flips_[t].flips[f];
        if (is_settled_[shifts_.number(t, f)] || shifts_.of(t, f).empty()) continue;
        const std::int64_t n = context_.model.nodes.tree(t)[flip.node].sums.n;
        const auto add = [&](FlipAction action, double work) {
          Step step{0, work, t, f, action};
          step.value = value_of(step);
          if (step.value > 0) steps.push_back(step);
        };
        add(FlipAction::regrow, cost::rows_to_regrow(n, context_.n_rows));
        if (flip.n_moving > 0)
          add(FlipAction::shift, cost::rows_to_shift(flip.n_moving, n, context_.n_rows));
      }
    }
    return steps;
  }

  double value_of(const Step& step) const {
    std::int64_t units = 0;
    for_each_settled(step, [&](std::size_t f) {
      for (const auto& [row, shift] : shifts_.of(step.t, f))
        if (outlook_.is_remembered(row))
          units += outlook_.memory_at_stake(row, step.t % k_trees_, shift);
    });
    return static_cast<double>(units) / step.work;
  }

  // Calls use(flip) for the flips of its tree that a step settles. Parents precede children.
  template <class Use>
  void for_each_settled(const Step& step, Use&& use) const {
    const std::vector<Flip>& flips = flips_[step.t].flips;
    const Tree& tree = context_.model.nodes.tree(step.t);
    const std::size_t end = step.action == FlipAction::shift ? step.flip + 1 : flips.size();
    for (std::size_t f = step.flip; f < end; ++f) {
      if (!is_settled_[shifts_.number(step.t, f)] &&
          is_under(tree, flips[f].node, flips[step.flip].node))
        use(f);
    }
  }

  void take(const Step& step) {
    flips_[step.t].actions[step.flip] = step.action;
    work_ += step.work;
    changed_.clear();
    for_each_settled(step, [&](std::size_t f) {
      is_settled_[shifts_.number(step.t, f)] = true;
      for (const auto& [row, shift] : shifts_.of(step.t, f)) {
        outlook_.settle(row, step.t % k_trees_, shift);
        changed_.push_back(row);
      }
    });
    std::ranges::sort(changed_);
    const auto repeated = std::ranges::unique(changed_);
    changed_.erase(repeated.begin(), repeated.end());
    for (const std::uint32_t row : changed_) outlook_.estimate(row);
  }

  const UpdateContext& context_;
  std::span<TreeFlips> flips_;
  const ShiftsByFlip& shifts_;
  Outlook& outlook_;
  std::size_t k_trees_;
  std::vector<bool> is_settled_;  // per flip
  double work_ = 0;
  std::vector<std::uint32_t> changed_;  // rows
};

}  // namespace

double select_actions(const UpdateContext& context, const ChangedRows& changed,
                      const FlipShifts& shifts, const MemoryWhenBooked& booked,
                      std::span<TreeFlips> flips) {
  std::vector<std::size_t> remembered;
  double achieved = 0;
  std::int64_t memory = 0;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    achieved += static_cast<double>(booked.achieved[i]);
    if (!reaches_floor(booked.memory[i], context.rule.memory_floor)) continue;
    remembered.push_back(i);
    memory += booked.memory[i];
  }
  // The order of changed rows depends on shards.
  std::ranges::sort(remembered, {}, [&](std::size_t i) {
    return std::pair(changed.rows().ids[i], changed.enters(i));
  });
  const std::size_t stride = remembered.size() / most_rows + 1;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < remembered.size(); i += stride) rows.push_back(remembered[i]);
  const ShiftsByFlip by_flip(flips, shifts, rows);
  Outlook outlook(context, changed, booked, std::move(rows));
  Selection selection(context, flips, by_flip, outlook);
  selection.settle_void();
  selection.settle(std::max(achieved, 0.0) / static_cast<double>(stride));
  return selection.any_settled()
             ? growth_order_tolerance(context.n_rows, static_cast<double>(memory) * memory_unit)
             : infinite;
}

}  // namespace graftboost
