"""Updates: add and remove rows in place (the paper's Algorithms 2 and 3, and ours).

First, the changed rows are booked in all trees. Then the touched nodes are checked from the root
down. By the fidelity rule, all trees are surveyed before that, and what is done about their flips
follows from what the model remembers of the changed rows. Nodes whose split is not kept are
regrown, tree by tree, and the growth order is replayed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graftboost.reference.booking import book
from graftboost.reference.boosting import Model
from graftboost.reference.deferral import (
    apply_deferred,
    defer,
    forget_deferred,
    select_deferred,
    survey_deferred,
)
from graftboost.reference.flips import flips_that_stay, survey
from graftboost.reference.growth_order import replay
from graftboost.reference.regrow import insert, regrow
from graftboost.reference.row_memory import (
    MEMORY_UNIT,
    ChangedRow,
    RowLosses,
    memory_error,
    part_left,
    scores_by_leaves,
    shifts_of,
    size_of_shifts,
)
from graftboost.reference.selection import reaches_floor, select
from graftboost.reference.split_check import apply, check
from graftboost.reference.tree_update import TreeUpdate, UpdateRule


@dataclass
class FidelityEstimate:
    """What an update achieved for the changed rows, and what a retrain would still change."""

    achieved: float
    left: float
    left_error: float = 0.0
    most_left: float = 0.0
    rows_remembered: int = 0
    rows_still_remembered: int = 0


@dataclass
class Updated:
    """What an update did."""

    nodes_regrown: int = 0
    fidelity: FidelityEstimate | None = None


def update(
    model: Model,
    added: Mapping[int, tuple[Sequence[float], float, float | None]],
    removed: Iterable[int],
    rule: UpdateRule,
) -> Updated:
    """Add rows (id: features, target, weight) and remove others."""
    gone = {row_id: model.rows.pop(row_id) for row_id in removed}
    for row_id, (x, y, weight) in added.items():
        model.rows[row_id] = model.encode(x, y, weight)
    changed = [ChangedRow(row_id, row, False) for row_id, row in gone.items()]
    changed += [ChangedRow(row_id, model.rows[row_id], True) for row_id in added]
    for row in changed:
        row.leaves = [t.nodes.index(t.route(row.row.codes)) for t in model.trees]
        row.recorded = _recorded(model, row.row_id)
    before = [scores_by_leaves(model, row) for row in changed]
    model.set_base()
    touched = [book(model, t, set(gone), list(added)) for t in range(len(model.trees))]
    updates = [TreeUpdate(model, t, rule) for t in range(len(model.trees))]
    if not rule.regrow:
        for row in changed:
            if row.enters:
                row.recorded = _recorded(model, row.row_id)
        defer(model, updates, touched, changed, before)
        return Updated()
    if rule.kind != "fidelity" or rule.keeps_structure:
        for t, work in enumerate(updates):
            if touched[t]:
                _regrow(work, check(work, 0, touched[t]))
        return Updated(sum(work.n_regrown for work in updates))
    return _update_by_fidelity(model, updates, touched, changed, before, rule)


def _recorded(model: Model, row_id: int) -> dict[int, int]:
    """The gradient that a row recorded in each tree in whose subsample it is."""
    return {t: found[row_id] for t, found in enumerate(model.gradients) if row_id in found}


def regrow_deferred(model: Model, rule: UpdateRule, work: float = math.inf) -> Updated:
    """Regrow nodes for rows that were only booked, with at most so much work."""
    if not model.deferred.n:
        return Updated()
    updates = [TreeUpdate(model, t, rule) for t in range(len(model.trees))]
    flips = survey_deferred(updates)
    left, reaches_target = select_deferred(updates, flips, rule, work)
    for tree_update, of_tree in zip(updates, flips, strict=True):
        if tree_update.tree.nodes[0].deferred.n:
            _regrow(tree_update, apply_deferred(tree_update, of_tree))
    achieved = float(model.deferred.achieved + model.deferred.settled) * MEMORY_UNIT
    if reaches_target:
        forget_deferred(model)
    n_regrown = sum(tree_update.n_regrown for tree_update in updates)
    return Updated(n_regrown, FidelityEstimate(achieved, left))


def _regrow(work: TreeUpdate, to_regrow: list[int]) -> None:
    """Regrow nodes of one tree, and replay its growth order."""
    if to_regrow:
        grafts = [regrow(work, i, len(work.tree.leaf_ids_under(i)), []) for i in to_regrow]
        insert(work, grafts)
    replay(work)
    for node in work.tree.nodes:
        node.value = work.settings.leaf_value(node.sums)
    work.model.trees[work.t] = work.tree


def _update_by_fidelity(
    model: Model,
    updates: list[TreeUpdate],
    touched: list[set[int]],
    changed: list[ChangedRow],
    before: list[list[float]],
    rule: UpdateRule,
) -> Updated:
    """Survey all trees, select what is done about their flips, do it, and estimate what is left."""
    losses = RowLosses(model)
    n = range(len(changed))
    flips = [survey(work, nodes) for work, nodes in zip(updates, touched, strict=True)]
    booked = [scores_by_leaves(model, row) for row in changed]
    by_booking = [losses.change(changed[i], before[i], booked[i]) for i in n]
    memory = [losses.memory(changed[i], booked[i], shifts_of(model, flips, changed[i])) for i in n]
    sizes = [size_of_shifts(model, flips, row) for row in changed]
    tolerance = select(model, flips, changed, booked, by_booking, rule)
    stay = [flips_that_stay(work.tree, flips[t]) for t, work in enumerate(updates)]
    shifts_left = []
    for row, size in zip(changed, sizes, strict=True):
        staying = size_of_shifts(model, stay, row)
        part = part_left(max(size - staying, 0.0), staying)
        shifts_left.append([shift * part for shift in shifts_of(model, stay, row)])
    error = memory_error(model, stay, changed, booked)
    for t, work in enumerate(updates):
        work.tolerance = tolerance
        if touched[t]:
            acts = any(flip.action for flip in flips[t].values())
            _regrow(work, apply(work, 0, touched[t], flips[t]) if acts else [])
    now = [model.scores_before(row.row.codes, len(model.trees)) for row in changed]
    done = [losses.change(changed[i], before[i], now[i]) for i in n]
    left = [losses.memory(changed[i], now[i], shifts_left[i]) for i in n]
    estimate = FidelityEstimate(
        float(sum(done)) * MEMORY_UNIT,
        float(sum(left)) * MEMORY_UNIT,
        error,
        float(max([0, *left])) * MEMORY_UNIT,
        sum(reaches_floor(units, rule.memory_floor) for units in memory),
        sum(reaches_floor(units, rule.memory_floor) for units in left),
    )
    return Updated(sum(work.n_regrown for work in updates), estimate)
