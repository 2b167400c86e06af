"""Deferral: book changed rows now, and regrow nodes later for many updates at once.

The rows themselves are gone by then. What stays of them are sums of absolute gradients at the nodes
on their paths. The memory of a flip is estimated from these sums and its regret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graftboost.reference.boosting import DeferredRows, Model
from graftboost.reference.flips import Flip, survey
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
        last = loss.gradients(row.row.target, booked)
        for t, tree in enumerate(model.trees):
            if not model.in_bag(t, row.row_id):
                continue
            recorded = loss.row_sums(row.recorded[t], row.row.weight)
            for index in tree.path(row.leaves[t]):
                sums = tree.nodes[index].deferred
                sums.n += 1
                sums.recorded += abs(recorded.g)
                sums.last += abs(last[t % len(last)])


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
            eligible.add(of_flip)
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
    settled = settled_eligible = tolerance = 0.0
    lacks_work = False
    for negative_below, t, _, action, index in sorted(steps):
        flip, tree = flips[t][index], updates[t].tree
        if not flip.is_void and is_enough(settled_eligible):
            tolerance, lacks_work = max(tolerance, -negative_below), False
            break
        if _is_regrown(tree, flips[t], index):
            continue
        below = [i for i in flips[t] if index in tree.path(i)] if action == 2 else [index]
        rows = tree.nodes[index].sums.n
        if action == 1:
            rows = min(rows, ROWS_PER_MOVE * flip.n_moving)
        else:
            rows = max(rows - sum(worked_on.get((t, i), 0) for i in below), 0)
        if not flip.is_void and sum(worked_on.values()) + rows > most_rows:
            tolerance, lacks_work = max(tolerance, -negative_below), True
            continue
        for i in below:
            if not flips[t][i].action and not _is_regrown(tree, flips[t], i):
                settled += float(memory[t][i].whole)
                settled_eligible = min(settled_eligible + float(memory[t][i].whole), eligible.whole)
        worked_on[t, index] = worked_on.get((t, index), 0) + rows
        flip.action = "shift" if action == 1 else "regrow"
    for update in updates:
        update.tolerance = tolerance
    curve = MemoryCurve()
    for of_tree_memory in memory:
        for whole in of_tree_memory.values():
            curve.add(whole)
    model.deferred.settled += in_units(curve.outcome(settled)[0])
    return curve.outcome(settled)[1] * MEMORY_UNIT, not lacks_work or is_enough(settled_eligible)


def _memory_of(update: TreeUpdate, index: int, flip: Flip) -> FlipMemory:
    sums = update.tree.nodes[index].deferred
    if flip.is_void or index == 0 or sums.recorded == 0:
        return FlipMemory(0, 0)
    settings, unit = update.settings, RowLosses(update.model).unit
    grid = 2.0**-24 if settings.loss.kind == "squared" else 2.0**-20
    recorded = float(sums.recorded) * settings.loss.gradient_unit
    last = float(sums.last) * grid
    shift = settings.learning_rate * DAMPING * flip.weight * flip.regret / recorded
    mean = (1 - PART_RECORDED) * last + PART_RECORDED * (recorded / update.model.mean_weight())
    return FlipMemory(in_units(shift * last / unit), in_units(shift * mean / unit))


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
