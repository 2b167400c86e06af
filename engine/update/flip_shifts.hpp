// The changes of scores by which flips tell what is remembered of changed rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "update/changed_rows.hpp"
#include "update/flip.hpp"
#include "update/row_memory.hpp"
#include "update/update_context.hpp"

namespace graftboost {

// The shifts that flips cause, by the formula of row_memory.hpp. The trees must be as they were
// when the flips were found. Owns a table of them per tree: which flips lie on the path to each
// leaf, and what they shift.
class FlipShifts {
 public:
  // Of the flips of some trees (the others have none) that stand for `scale` times as many.
  FlipShifts(const UpdateContext& context, const ChangedRows& changed,
             std::span<const TreeFlips> flips, double scale);

  // Calls use(tree, flip, shift) for every flip on the paths of a row.
  template <class Use>
  void for_each(std::size_t row, Use&& use) const {
    for (const OfTree& of_tree : trees_) for_each_in(of_tree, row, use);
  }
  // The shifts of all rows, and the sum of the absolute values of each row's.
  struct OfRows {
    ChangedScores shifts;
    WipedVector<double> sizes;
  };
  OfRows of_rows() const;
  // The standard error of the memory that rows with these scores have by the flips, in units: each
  // of them may as well contribute nothing.
  double error(const ChangedScores& scores) const;

 private:
  // Of the score of a row: by whether it goes left by the present split, and by the best.
  using Shifts = std::array<std::array<double, 2>, 2>;
  struct OfFlip {
    Shifts shifts;
    const FeatureLayout* feature;  // of the best split; null if there is none
  };
  // A flip on the path to a leaf.
  struct OnPath {
    std::uint32_t flip;
    bool left;     // whether the path goes left there
    double below;  // what splits below it add to the score that they would not add without the row
  };
  struct OfTree {
    std::size_t tree;
    std::vector<OfFlip> flips;
    std::vector<std::uint32_t> begin;  // by leaf id: of the leaf's path in `paths`; and the end
    std::vector<OnPath> paths;         // from the leaf up
  };

  OfTree table_of(std::size_t t, double scale) const;
  template <class Use>
  void for_each_in(const OfTree& of_tree, std::size_t row, Use&& use) const;

  const UpdateContext& context_;
  const ChangedRows& changed_;
  std::span<const TreeFlips> flips_;
  std::vector<OfTree> trees_;
};

// Below the topmost flip on the path of a row, all splits are found again.
template <class Use>
void FlipShifts::for_each_in(const OfTree& of_tree, std::size_t row, Use&& use) const {
  const std::size_t leaf = changed_.leaf(of_tree.tree, row);
  const std::uint32_t end = of_tree.begin[leaf + 1];
  for (std::uint32_t i = of_tree.begin[leaf]; i < end; ++i) {
    const OnPath& at = of_tree.paths[i];
    const OfFlip& of_flip = of_tree.flips[at.flip];
    const Split& best = flips_[of_tree.tree].flips[at.flip].best;
    const bool best_left =
        of_flip.feature != nullptr && best.goes_left(changed_.rows().code(
                                          static_cast<Slot>(row), *of_flip.feature, best.feature));
    const double shift = of_flip.shifts[at.left][best_left];
    use(of_tree.tree, at.flip, i + 1 == end ? shift - at.below : shift);
  }
}

}  // namespace graftboost
