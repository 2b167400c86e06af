"""Selection: which flips an update settles, so that it reaches its target fidelity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graftboost.reference.boosting import Model
from graftboost.reference.row_memory import (
    IN_PLACE,
    MEMORY_UNIT,
    ChangedRow,
    Flips,
    RowLosses,
    each_shift,
    part_left,
    shifts_of,
)
from graftboost.reference.tree_update import UpdateRule

MOST_ROWS = 2048  # by which the tolerance is chosen


def reaches_floor(memory: int, rule: UpdateRule) -> bool:
    """Whether a row with this memory is remembered at all."""
    return memory > 0 and float(memory) * MEMORY_UNIT >= rule.memory_floor


def select(
    model: Model,
    flips: Flips,
    rows: Sequence[ChangedRow],
    scores: Sequence[list[float]],
    achieved: Sequence[int],
    rule: UpdateRule,
) -> float:
    """Set the actions of flips and return the tolerance that they follow from.

    `scores` and `achieved` are those of the changed rows when all of them are booked. Flips are
    settled in the order of their regret and not of what they contribute to the memory. Otherwise
    those that happen to favour the changed rows would stay, and the rows would be predicted worse
    than by a retrain.
    """
    losses = RowLosses(model)
    memory = {
        i: losses.memory(row, scores[i], shifts_of(model, flips, row)) for i, row in enumerate(rows)
    }
    remembered = [i for i in memory if reaches_floor(memory[i], rule)]
    remembered.sort(key=lambda i: (rows[i].row_id, rows[i].enters))
    eligible = {(t, index) for i in remembered for t, index, _ in each_shift(model, flips, rows[i])}
    below = _settled_below(model, flips, eligible)
    stride = len(remembered) // MOST_ROWS + 1
    chosen = remembered[::stride]
    shifts = {
        i: [(below[t, n], t, shift) for t, n, shift in each_shift(model, flips, rows[i])]
        for i in chosen
    }

    def reaches_target(tolerance: float) -> bool:
        """Whether settling all flips above a tolerance reaches the target."""
        recovered = left = 0
        for i in chosen:
            settled, stay = [0.0] * len(model.base), [0.0] * len(model.base)
            size_settled = size_staying = 0.0
            for settled_below, t, shift in shifts[i]:
                if settled_below > tolerance or math.isinf(settled_below):
                    settled[t % len(settled)] += shift
                    size_settled += abs(shift)
                else:
                    stay[t % len(stay)] += shift
                    size_staying += abs(shift)
            part = part_left(size_settled, size_staying)
            settled = [shift * IN_PLACE for shift in settled]
            recovered += losses.memory(rows[i], scores[i], settled)
            now = [shift + score for shift, score in zip(settled, scores[i], strict=True)]
            left += losses.memory(rows[i], now, [shift * part for shift in stay])
        total = done + float(recovered)
        return total >= rule.fidelity * (total + float(left))

    done = max(float(sum(achieved)), 0.0) / float(stride)
    tolerance = math.inf
    if not reaches_target(math.inf):
        finite = {value for of_row in shifts.values() for value, _, _ in of_row if value < math.inf}
        tolerances = sorted(finite | {0.0}, reverse=True)
        first, last = 0, len(tolerances) - 1
        while first < last:
            middle = (first + last) // 2
            if reaches_target(tolerances[middle]):
                last = middle
            else:
                first = middle + 1
        tolerance = tolerances[first]
    _set_actions(flips, eligible, tolerance)
    return tolerance


def _settled_below(
    model: Model, flips: Flips, eligible: set[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """The tolerance below which a flip is settled: with its own node or with one above."""
    below = {}
    for t, of_tree in enumerate(flips):
        for index, flip in of_tree.items():
            acts = flip.is_void or (t, index) in eligible
            settled = flip.shifted_below if acts else 0.0
            for above in model.trees[t].path(index):
                other = of_tree.get(above)
                if other is None:
                    continue
                regrows = other.n_moving == 0 if other.is_void else (t, above) in eligible
                if regrows:
                    settled = max(settled, other.regrown_below)
            below[t, index] = settled
    return below


def _set_actions(flips: Flips, eligible: set[tuple[int, int]], tolerance: float) -> None:
    for t, of_tree in enumerate(flips):
        for index, flip in of_tree.items():
            if flip.is_void:
                flip.action = "shift" if flip.n_moving else "regrow"
            elif (t, index) in eligible and flip.regrown_below > tolerance:
                flip.action = "regrow"
            elif (t, index) in eligible and flip.n_moving and flip.shifted_below > tolerance:
                flip.action = "shift"
