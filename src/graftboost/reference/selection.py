"""Selection: which flips an update settles, so that it reaches its target fidelity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from graftboost.reference.boosting import Model
from graftboost.reference.flips import Flip
from graftboost.reference.row_memory import (
    IN_PLACE,
    MEMORY_UNIT,
    ChangedRow,
    Flips,
    RowLosses,
    each_shift,
    in_units,
    part_left,
    shifts_of,
)
from graftboost.reference.tree_update import ROWS_PER_MOVE, UpdateRule

MOST_ROWS = 4096  # by which flips are selected
# If the model remembers at least so many times the floor of a row, less than this part of the floor
# has to be left: the error of the estimate grows with the memory.
WELL_REMEMBERED, PART_OF_FLOOR = 2.0, 0.5
MORE_WORK = 0.25  # for rows that are still remembered when the target is reached


def reaches_floor(memory: int, floor: float) -> bool:
    """Whether a row with this memory is remembered at all."""
    return memory > 0 and float(memory) * MEMORY_UNIT >= floor


@dataclass
class Outlook:
    """What the flips that are settled so far would recover and leave of a row."""

    row: ChangedRow
    scores: list[float]  # when all changed rows are booked
    slopes: list[float]
    shifts: dict[tuple[int, int], float]  # by tree and node
    floor: float
    settled: set[tuple[int, int]] = field(default_factory=set)
    recovered: int = 0
    left: int = 0

    @property
    def is_remembered(self) -> bool:
        """Whether so much would be left that the row counts."""
        return reaches_floor(self.left, self.floor)

    def estimate(self, losses: RowLosses) -> None:
        """Recompute what is recovered and left."""
        done, staying = [0.0] * len(self.scores), [0.0] * len(self.scores)
        size_settled = size_staying = 0.0
        for (t, index), shift in self.shifts.items():
            if (t, index) in self.settled:
                done[t % len(done)] += shift
                size_settled += abs(shift)
            else:
                staying[t % len(staying)] += shift
                size_staying += abs(shift)
        part = part_left(size_settled, size_staying)
        done = [shift * IN_PLACE for shift in done]
        now = [shift + score for shift, score in zip(done, self.scores, strict=True)]
        self.recovered = losses.memory(self.row, self.scores, done)
        self.left = losses.memory(self.row, now, [shift * part for shift in staying])


def select(
    model: Model,
    flips: Flips,
    rows: Sequence[ChangedRow],
    scores: Sequence[list[float]],
    achieved: Sequence[int],
    rule: UpdateRule,
) -> float:
    """Set the actions of flips and return the regret that is tolerated in the growth order.

    `scores` and `achieved` are those of the changed rows when all of them are booked. Flips are
    settled in the order of the memory that this may recover relative to its work. Rows of which
    less than the floor is remembered, or left, do not count. If some are still remembered when the
    target is reached, a little more work is done for them. Splits that are void never stay.
    """
    losses = RowLosses(model)
    memory = {
        i: losses.memory(row, scores[i], shifts_of(model, flips, row)) for i, row in enumerate(rows)
    }
    remembered = [i for i in memory if reaches_floor(memory[i], rule.memory_floor)]
    remembered.sort(key=lambda i: (rows[i].row_id, rows[i].enters))
    stride = len(remembered) // MOST_ROWS + 1
    # Higher targets than the default ask for less than the floor.
    floor = rule.memory_floor * min((1 - rule.fidelity) / (1 - 0.85), 1.0)
    outlooks = [
        Outlook(
            rows[i],
            scores[i],
            losses.slopes(rows[i], scores[i]),
            {(t, index): shift for t, index, shift in each_shift(model, flips, rows[i])},
            floor * (PART_OF_FLOOR if _is_well_remembered(memory[i], rule) else 1.0),
        )
        for i in remembered[::stride]
    ]
    for outlook in outlooks:
        outlook.estimate(losses)
    settled: set[tuple[int, int]] = set()

    def newly_settled(t: int, index: int, action: str) -> list[tuple[int, int]]:
        """The flips that an action settles: regrowing a node also settles those below."""
        return [
            (t, i)
            for i in flips[t]
            if (t, i) not in settled
            and (i == index or (action == "regrow" and index in model.trees[t].path(i)))
        ]

    def take(t: int, index: int, action: str) -> None:
        now = newly_settled(t, index, action)
        flips[t][index].action = action
        settled.update(now)
        for outlook in outlooks:
            if touched := outlook.shifts.keys() & now:
                outlook.settled |= touched
                outlook.estimate(losses)

    def value(t: int, index: int, action: str, work: float) -> float:
        """The memory that an action may recover relative to its work.

        Shifts count by their size. By their sign, flips that happen to favour the changed rows
        would stay, and the rows would be predicted worse than by a retrain.
        """
        units = 0
        for outlook in outlooks:
            if outlook.is_remembered:
                slope = outlook.slopes[t % len(outlook.slopes)]
                for flip in outlook.shifts.keys() & newly_settled(t, index, action):
                    units += in_units(abs(slope * outlook.shifts[flip]))
        return float(units) / work

    for t, of_tree in enumerate(flips):
        for index in sorted(of_tree):
            if of_tree[index].is_void:
                take(t, index, "shift" if of_tree[index].n_moving else "regrow")

    done = max(float(sum(achieved)), 0.0) / float(stride)

    def reaches_target() -> bool:
        left = sum(outlook.left for outlook in outlooks if outlook.is_remembered)
        total = done + float(sum(outlook.recovered for outlook in outlooks))
        return total >= rule.fidelity * (total + float(left))

    steps = [
        (t, index, action, work)
        for t, of_tree in enumerate(flips)
        for index in sorted(of_tree)
        for action, work in _ways(model, t, index, of_tree[index])
    ]
    worked, most = 0.0, math.inf
    while any(outlook.is_remembered for outlook in outlooks):
        if math.isinf(most) and reaches_target():
            most = worked * (1 + MORE_WORK)
        steps = [step for step in steps if step[:2] not in settled and worked + step[3] <= most]
        values = [value(*step) for step in steps]
        if not any(values):
            break
        t, index, action, work = steps[values.index(max(values))]
        take(t, index, action)
        worked += work
    if not settled:
        return math.inf
    total = sum(memory[i] for i in remembered)
    return growth_order_tolerance(len(model.rows), float(total) * MEMORY_UNIT)


def growth_order_tolerance(n_rows: int, memory: float) -> float:
    """The regret that is tolerated in the growth order if any flip is settled.

    Flips tell nothing of the growth order, so it is replayed the more exactly, the more the model
    remembers of the changed rows relative to all its rows.
    """
    return max(1.0, float(n_rows) / (1e4 * memory)) if memory > 0 else math.inf


def _is_well_remembered(memory: int, rule: UpdateRule) -> bool:
    return reaches_floor(memory, WELL_REMEMBERED * rule.memory_floor)


def _ways(model: Model, t: int, index: int, flip: Flip) -> Iterator[tuple[str, float]]:
    """The ways to settle a flip, with the rows that would cost as much to regrow."""
    n_rows, n = len(model.rows), model.trees[t].nodes[index].sums.n
    if flip.n_moving:
        yield "shift", float(ROWS_PER_MOVE * flip.n_moving) + n / 8 + n_rows / 256
    yield "regrow", float(n) + n_rows / 256
