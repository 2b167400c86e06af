"""Deferral: book changed rows now, and regrow nodes later for many updates at once.

The rows themselves are gone by then. What stays of them are sums of absolute gradients at the nodes
on their paths. The memory of a flip is estimated from these sums and its regret.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from graftboost.reference.boosting import DeferredRows, Model
from graftboost.reference.flips import Flip, flips_that_stay, survey
from graftboost.reference.row_memory import (
    IN_PLACE,
    MEMORY_UNIT,
    ChangedRow,
    RowLosses,
    in_units,
    part_left,
    scores_by_leaves,
)
from graftboost.reference.split_check import apply
from graftboost.reference.tree import DeferredSums, Tree
from graftboost.reference.tree_update import ROWS_PER_MOVE, TreeUpdate, UpdateRule

DAMPING = 0.85
PART_RECORDED = 0.25  # of the way from the present slope of losses to that in training


@dataclass
class FlipMemory:
    """The memory of a flip: by the slope that losses have now, and in all."""

    now: int
    whole: int
    is_eligible: bool = False  # whether it is not too little to be regrown for


@dataclass
class MemoryCurve:
    """The memory that a part of all shifts accounts for."""

    now: float = 0.0
    whole: float = 0.0

    def add(self, memory: FlipMemory) -> None:
        """Add the memory of a flip."""
        self.now += float(memory.now)
        self.whole += float(memory.whole)

    def at(self, part: float) -> float:
        """The memory of a part: first by the present slope, and all of it at 1."""
        first = min(self.now, self.whole)
        return first * part + (self.whole - first) * (part * part * part)

    def outcome(self, settled: float) -> tuple[float, float]:
        """What is recovered and what is left if so much of the memory is settled."""
        part = settled / self.whole if self.whole > 0 else 1.0
        done = IN_PLACE * part
        recovered = self.at(done)
        return recovered, self.at(done + part_left(part, 1 - part) * (1 - part)) - recovered


def defer(
    model: Model,
    updates: Sequence[TreeUpdate],
    touched: Sequence[set[int]],
    changed: Sequence[ChangedRow],
    before: Sequence[Sequence[float]],
) -> None:
    """Note changed rows, which are booked, at the nodes on their paths."""
    losses = RowLosses(model)
    loss = model.settings.loss
    for update, nodes in zip(updates, touched, strict=True):
        for index in nodes:
            node = update.tree.nodes[index]
            if node.left >= 0:
                node.gain = update.current_gain(node)
    for row, scores in zip(changed, before, strict=True):
        booked = scores_by_leaves(model, row)
        model.deferred.achieved += losses.change(row, scores, booked)
        model.deferred.n += 1
        slopes = loss.slopes(row.row.target, booked)
        last = [round(abs(slope) / loss.slope_grid) for slope in slopes]
        for t, tree in enumerate(model.trees):
            if not model.in_bag(t, row.row_id):
                continue
            recorded = loss.row_sums(row.recorded[t], row.row.weight)
            for index in tree.path(row.leaves[t]):
                sums = tree.nodes[index].deferred
                sums.n += 1
                sums.recorded += abs(recorded.g)
                sums.last += last[t % len(last)]


def select_deferred(
    updates: Sequence[TreeUpdate], flips: Sequence[dict[int, Flip]], rule: UpdateRule, work: float
) -> tuple[float, bool]:
    """Set the actions of flips; return the memory that is settled and whether that is enough.

    No more rows are worked on than `work` times all rows in all trees.
    """
    model = updates[0].model
    memory = [
        {index: _memory_of(updates[t], index, flip) for index, flip in of_tree.items()}
        for t, of_tree in enumerate(flips)
    ]
    least_memory = rule.memory_floor / MEMORY_UNIT / len(flips)
    eligible = MemoryCurve()
    steps = []
    for t, of_tree in enumerate(flips):
        for number, index in enumerate(sorted(of_tree)):
            flip, of_flip = of_tree[index], memory[t][index]
            n = updates[t].tree.nodes[index].deferred.n
            if not flip.is_void and not (
                of_flip.whole > 0 and float(of_flip.whole) >= least_memory * n
            ):
                continue
            of_flip.is_eligible = True
            eligible.add(of_flip)
            if rule.keeps_structure:
                continue
            if flip.n_moving:
                steps.append((-flip.shifted_below, t, number, 1, index))
            if not flip.is_void or not flip.n_moving:
                steps.append((-flip.regrown_below, t, number, 2, index))
    before = max(float(model.deferred.achieved + model.deferred.settled), 0.0)

    def is_enough(settled: float) -> bool:
        recovered, left = eligible.outcome(settled)
        total = before + recovered
        return total >= rule.fidelity * (total + left)

    most_rows = work * len(model.rows) * len(flips)
    worked_on: dict[tuple[int, int], int] = {}
    settled = settled_eligible = 0.0

    def take(t: int, action: int, index: int, rows: int) -> None:
        nonlocal settled, settled_eligible
        for i in _settled_by(updates[t].tree, flips[t], action, index):
            if not flips[t][i].action and not _is_regrown(updates[t].tree, flips[t], i):
                settled += float(memory[t][i].whole)
                settled_eligible += float(memory[t][i].whole) if memory[t][i].is_eligible else 0.0
        worked_on[t, index] = worked_on.get((t, index), 0) + rows
        flips[t][index].action = "shift" if action == 1 else "regrow"

    tolerance = math.inf if not steps or is_enough(0.0) else 0.0
    too_large: list[tuple[int, int, int, int]] = []  # rows, tree, action and node of steps
    for negative_below, t, _, action, index in sorted(steps):
        flip, tree = flips[t][index], updates[t].tree
        if not flip.is_void and is_enough(settled_eligible):
            tolerance = max(tolerance, -negative_below)
            # Void splits come first, and must not stay whether the target is reached or not.
            too_large = [step for step in too_large if flips[step[1]][step[3]].is_void]
            break
        if _is_regrown(tree, flips[t], index):
            continue
        rows = tree.nodes[index].sums.n
        if action == 1:
            rows = min(rows, ROWS_PER_MOVE * flip.n_moving)
        else:
            below = _settled_by(tree, flips[t], action, index)
            rows = max(rows - sum(worked_on.get((t, i), 0) for i in below), 0)
        if sum(worked_on.values()) + rows <= most_rows:
            take(t, action, index, rows)
        else:
            too_large.append((rows, t, action, index))
    if too_large and not sum(worked_on.values()):  # every call does something
        rows, t, action, index = min(too_large, key=lambda step: step[0])
        take(t, action, index, rows)
    reaches_target = not too_large or (
        not any(
            flip.is_void
            for t, of_tree in enumerate(flips)
            for flip in flips_that_stay(updates[t].tree, of_tree).values()
        )
        and is_enough(settled_eligible)
    )
    if not reaches_target:  # the growth order is replayed when there is work left for it
        tolerance = math.inf
    for update in updates:
        update.tolerance = tolerance
    curve = MemoryCurve()
    for of_tree_memory in memory:
        for whole in of_tree_memory.values():
            curve.add(whole)
    model.deferred.settled += in_units(curve.outcome(settled)[0], model.deferred.n)
    return curve.outcome(settled)[1] * MEMORY_UNIT, reaches_target


def _memory_of(update: TreeUpdate, index: int, flip: Flip) -> FlipMemory:
    sums = update.tree.nodes[index].deferred
    if flip.is_void or index == 0 or sums.recorded == 0:
        return FlipMemory(0, 0)
    settings, unit = update.settings, RowLosses(update.model).unit
    recorded = float(sums.recorded) * settings.loss.gradient_unit
    last = float(sums.last) * settings.loss.slope_grid
    shift = settings.learning_rate * DAMPING * flip.weight * flip.regret / recorded
    mean = (1 - PART_RECORDED) * last + PART_RECORDED * (recorded / update.model.mean_weight())
    return FlipMemory(in_units(shift * last / unit, sums.n), in_units(shift * mean / unit, sums.n))


def _settled_by(tree: Tree, flips: dict[int, Flip], action: int, index: int) -> list[int]:
    """The flips that a step settles: shifting (1) its own, regrowing (2) also those below."""
    return [i for i in flips if i == index or (action == 2 and index in tree.path(i))]


def _is_regrown(tree: Tree, flips: dict[int, Flip], index: int) -> bool:
    """Whether a node or one above it is to be regrown."""
    return any(i in flips and flips[i].action == "regrow" for i in tree.path(index))


def survey_deferred(updates: Sequence[TreeUpdate]) -> list[dict[int, Flip]]:
    """The flips of all trees at nodes that deferred rows touched."""
    return [
        survey(update, {i for i, node in enumerate(update.tree.nodes) if node.deferred.n})
        for update in updates
    ]


def apply_deferred(update: TreeUpdate, flips: dict[int, Flip]) -> list[int]:
    """Apply the actions of flips in one tree; return the topmost nodes to regrow."""
    nodes = update.tree.nodes
    for index, flip in flips.items():
        if flip.action == "shift":
            nodes[index].deferred.recorded = nodes[index].deferred.last = 0
    if not any(flip.action for flip in flips.values()):
        return []
    return apply(update, 0, {i for i, node in enumerate(nodes) if node.deferred.n}, flips)


def forget_deferred(model: Model) -> None:
    """Forget all rows whose regrowing is deferred."""
    for tree in model.trees:
        for node in tree.nodes:
            node.deferred = DeferredSums()
    model.deferred = DeferredRows()
