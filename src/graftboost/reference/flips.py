"""Flips: touched nodes whose best candidate is no longer their split."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from graftboost.reference.loss import NO_SUMS, Sums
from graftboost.reference.split_evaluation import best_split, candidates, sums_over
from graftboost.reference.tree import NEVER, NO_SPLIT, Split, Tree
from graftboost.reference.tree_update import LARGEST_SHIFT, ROWS_PER_MOVE, TreeUpdate


@dataclass
class Flip:
    """A better candidate of a node than its split, or the finding that its split must not stay."""

    weight: float  # how much of a difference at the node is left after more trees
    splits: bool = True  # whether the node can be split at all
    is_void: bool = False  # whether the split leaves a child too little
    regret: float = math.inf
    best: Split = NO_SPLIT
    left: Sums = NO_SUMS
    shifted: Split = NO_SPLIT  # a better threshold of the split's own feature
    n_moving: int = 0  # rows that it moves; 0 if there is none that moves few
    regrown_below: float = math.inf  # the flip is settled if less than this is tolerated
    shifted_below: float = math.inf
    action: str = ""  # "shift", "regrow" or nothing


def flips_that_stay(tree: Tree, flips: Mapping[int, Flip]) -> dict[int, Flip]:
    """The flips that are neither settled themselves nor below a node that is regrown."""
    regrown = {index for index, flip in flips.items() if flip.action == "regrow"}
    return {
        index: flip
        for index, flip in flips.items()
        if not flip.action and not regrown.intersection(tree.path(index))
    }


def survey(update: TreeUpdate, touched: set[int]) -> dict[int, Flip]:
    """Find the flips of a tree, by node, and set the gains of all touched nodes."""
    flips = {}
    for index in sorted(touched):
        node = update.tree.nodes[index]
        if node.left < 0:
            node.gain, node.split = best_split(
                update.settings, node.rows, update.codes, update.recorded
            )
            continue
        node.gain = update.current_gain(node)
        flip = _find_flip(update, index)
        if flip is not None:
            flips[index] = flip
    return flips


def _find_flip(update: TreeUpdate, index: int) -> Flip | None:
    node, settings = update.tree.nodes[index], update.settings
    n_leaves = len(update.tree.leaf_ids_under(index))
    flip = Flip(weight=1.0 / math.cbrt(n_leaves - 1.0))
    current = update.current_gain(node)
    flip.is_void = current == NEVER
    flip.splits = settings.may_split(node.sums)
    if not flip.splits:
        return flip
    best, flip.best = best_split(settings, node.rows, update.codes, update.recorded)
    if not best > current and not flip.is_void:
        return None
    flip.splits = best > NEVER
    if not flip.splits:
        return flip
    left = [r for r in node.rows if flip.best.left(update.codes[r])]
    flip.left = sums_over(left, update.recorded)
    _find_shift(update, index, flip)
    if not flip.is_void:
        factor = flip.weight * flip.weight
        n = node.sums.n
        flip.regret = best - current
        flip.regrown_below = factor * update.relative_regret(best, current, n)
        flip.shifted_below = flip.regrown_below
        if flip.n_moving:
            n_worked_on = min(n, ROWS_PER_MOVE * flip.n_moving)
            flip.shifted_below = factor * update.relative_regret(best, current, n_worked_on)
    return flip


def _find_shift(update: TreeUpdate, index: int, flip: Flip) -> None:
    """Find a threshold of the same feature that is as good, or any if the split is void."""
    node, settings = update.tree.nodes[index], update.settings
    split = flip.best
    if split.feature != node.split.feature:
        if not flip.is_void:
            return
        own = [
            (score, split)
            for score, split in candidates(settings, node.rows, update.codes, update.recorded)
            if split.feature == node.split.feature
        ]
        score, split = max(own, key=lambda candidate: candidate[0])
        if score == NEVER:
            return
    codes = update.codes
    moving = [r for r in node.rows if split.left(codes[r]) != node.split.left(codes[r])]
    n_moving = sums_over(moving, update.recorded).n
    if LARGEST_SHIFT * n_moving > node.sums.n:
        return
    flip.shifted, flip.n_moving = split, max(n_moving, 1)
