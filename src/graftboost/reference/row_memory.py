"""Row memory: what the model remembers of the rows that an update changes, without a retrain.

A removed row is still remembered where a split that it brought about has stayed: at flips. Under
the best candidate of the node, the row would be in another child. A retrain changes the score of
the row by a part of the difference between the values of the two children, and by a part of what
the splits below the topmost flip add to its score. The memory of a row is the change of its loss by
all these shifts together. Likewise for added rows, which a retrain would learn better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graftboost.reference.boosting import Model, Row
from graftboost.reference.flips import Flip
from graftboost.reference.loss import on_leaf_grid

MEMORY_UNIT = 2.0**-28
LARGEST_LOSS = 2.0**12
DAMPING = 0.7  # the part of a difference just above the leaves that is left after more trees
OPTIMISM = 0.08  # the part of what splits add to a row's score that they would not add without it
IN_PLACE = 1.3  # regrowing shifts scores by more than a retrain: later trees do not adapt to it

Flips = Sequence[Mapping[int, Flip]]  # per tree, by node


@dataclass
class ChangedRow:
    """A row that an update removes or adds, with its leaf (a node) in every tree before that.

    What an added row records is known when it is booked.
    """

    row_id: int
    row: Row
    enters: bool
    leaves: list[int] = field(default_factory=list)
    recorded: dict[int, int] = field(default_factory=dict)  # per tree in whose subsample it is


class RowLosses:
    """Losses of changed rows in units of memory: nats, or for squared error residual variances."""

    def __init__(self, model: Model) -> None:
        self.loss = model.settings.loss
        self.unit = MEMORY_UNIT
        if self.loss.kind == "squared":
            self.unit *= model.variance(len(model.trees) - 1)

    def of_row(self, row: ChangedRow, scores: Sequence[float]) -> int:
        """The loss of a row with these scores."""
        return in_units(self.loss.of_row(row.row.target, scores) / self.unit)

    def change(self, row: ChangedRow, before: Sequence[float], after: Sequence[float]) -> int:
        """How much its loss rises, or falls if the row is added."""
        rise = self.of_row(row, after) - self.of_row(row, before)
        return -rise if row.enters else rise

    def memory(self, row: ChangedRow, scores: Sequence[float], shifts: Sequence[float]) -> int:
        """What is remembered of a row if these shifts are what a retrain would still do."""
        shifted = [score + shift for score, shift in zip(scores, shifts, strict=True)]
        return self.change(row, scores, shifted)

    def slopes(self, row: ChangedRow, scores: Sequence[float]) -> list[float]:
        """How fast the memory of a row grows with a shift of each of its scores."""
        factor = (-1.0 if row.enters else 1.0) / self.unit
        return [slope * factor for slope in self.loss.slopes(row.row.target, scores)]


def in_units(units: float, n_rows: int = 1) -> int:
    """The nearest integer, within the largest loss of so many rows."""
    most = min(LARGEST_LOSS / MEMORY_UNIT * float(n_rows), 2.0**60)
    return round(max(-most, min(most, units)))


def scores_by_leaves(model: Model, row: ChangedRow) -> list[float]:
    """The scores of a row by the leaves it was in before the update, with their present values."""
    scores = list(model.base)
    for t, tree in enumerate(model.trees):
        scores[t % len(scores)] += tree.nodes[row.leaves[t]].value
    return scores


def each_shift(model: Model, flips: Flips, row: ChangedRow) -> Iterator[tuple[int, int, float]]:
    """The tree, the node and the shift of the score for every flip on the paths of a row."""
    leaf_value = model.settings.leaf_value
    for t, of_tree in enumerate(flips):
        if not of_tree:
            continue
        nodes = model.trees[t].nodes
        path = model.trees[t].path(row.leaves[t])  # from the leaf to the root
        optimism = [on_leaf_grid(OPTIMISM * leaf_value(nodes[i].sums)) for i in path]
        found = []
        for depth in range(1, len(path)):
            index, child = path[depth], nodes[path[depth - 1]]
            if index not in of_tree:
                continue
            flip, node = of_tree[index], nodes[index]
            other = node.sums
            if flip.splits:
                goes_left = flip.best.left(row.row.codes)
                other = flip.left if goes_left else node.sums.minus(flip.left)
            weight = 0.0 if index == 0 else DAMPING * flip.weight
            difference = leaf_value(other) - leaf_value(child.sums)
            below = optimism[0] - optimism[depth - 1]
            found.append((index, on_leaf_grid(weight * difference), below))
        for number, (index, shift, below) in enumerate(found):
            is_topmost = number == len(found) - 1
            yield t, index, shift - below if is_topmost else shift


def shifts_of(model: Model, flips: Flips, row: ChangedRow) -> list[float]:
    """The shifts of a row's scores by all flips."""
    shifts = [0.0] * len(model.base)
    for t, _, shift in each_shift(model, flips, row):
        shifts[t % len(shifts)] += shift
    return shifts


def size_of_shifts(model: Model, flips: Flips, row: ChangedRow) -> float:
    """The sum of the absolute values of all shifts of a row."""
    size = 0.0
    for _, _, shift in each_shift(model, flips, row):
        size += abs(shift)
    return size


def part_left(settled: float, stay: float) -> float:
    """The part of the shifts of flips that stay by which a retrain would still shift a score.

    It depends on the sizes of the shifts of settled flips, which shifted the score too far, and of
    those that stay.
    """
    total = settled + stay
    return 1 - 0.5 * (settled / total) if total > 0 else 1.0


def memory_error(
    model: Model, flips: Flips, rows: Sequence[ChangedRow], scores: Sequence[Sequence[float]]
) -> float:
    """The standard error of the memory of all rows by these flips."""
    losses = RowLosses(model)
    of_flips = [dict.fromkeys(of_tree, 0) for of_tree in flips]
    for row, of_row in zip(rows, scores, strict=True):
        slopes = losses.slopes(row, of_row)
        for t, index, shift in each_shift(model, flips, row):
            of_flips[t][index] += in_units(slopes[t % len(slopes)] * shift)
    variance = 0.0
    for of_tree in of_flips:
        for index in sorted(of_tree):
            variance += float(of_tree[index]) * float(of_tree[index])
    return math.sqrt(variance) * MEMORY_UNIT
