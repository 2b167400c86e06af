"""Checking: compare the split of every touched node with its best candidate."""

from __future__ import annotations

from collections.abc import Mapping

from graftboost.reference.flips import Flip
from graftboost.reference.split_evaluation import best_split, candidates, sums_over
from graftboost.reference.tree import NEVER, Split
from graftboost.reference.tree_update import LARGEST_SHIFT, ROWS_PER_MOVE, TreeUpdate


def check(update: TreeUpdate, index: int, touched: set[int]) -> list[int]:
    """Check a node and the touched nodes below it; return the topmost nodes to regrow."""
    node = update.tree.nodes[index]
    gain, split = best_split(update.settings, node.rows, update.codes, update.recorded)
    if node.left < 0:
        node.gain, node.split = gain, split
        return []
    keeps = _rank_keeps if update.rule.kind == "rank" else _regret_keeps
    if not update.rule.keeps_structure and not keeps(update, index, gain, touched):
        return [index]
    node.gain = update.current_gain(node)
    to_regrow = []
    for child in (node.left, node.right):
        if child in touched:
            to_regrow += check(update, child, touched)
    return to_regrow


def apply(
    update: TreeUpdate, index: int, touched: set[int], flips: Mapping[int, Flip]
) -> list[int]:
    """Apply the actions that were selected for flips; return the topmost nodes to regrow."""
    node = update.tree.nodes[index]
    if node.left < 0:
        node.gain, node.split = best_split(
            update.settings, node.rows, update.codes, update.recorded
        )
        return []
    action = flips[index].action if index in flips else ""
    if action == "regrow":
        return [index]
    if action == "shift":
        _shift(update, index, flips[index].shifted, touched)
    node.gain = update.current_gain(node)
    stays = index in flips and flips[index].is_void and not action
    if node.gain == NEVER and not stays:  # a shift, here or above, has left a child too little
        return [index]
    to_regrow = []
    for child in (node.left, node.right):
        if child in touched:
            to_regrow += apply(update, child, touched, flips)
    return to_regrow


def _shift(update: TreeUpdate, index: int, split: Split, touched: set[int]) -> None:
    """Replace a node's split by another one of the same feature, and move rows."""
    update.tree.nodes[index].split = split
    _route_rows(update, index, touched)
    update.recompute_sums()


def _rank_keeps(update: TreeUpdate, index: int, best: float, touched: set[int]) -> bool:
    """Whether a node's split is among its top candidates."""
    node = update.tree.nodes[index]
    current = update.current_gain(node)
    scores = candidates(update.settings, node.rows, update.codes, update.recorded)
    n_better = sum(update.settings.gain(node.sums, score) > current for score, _ in scores)
    return current > NEVER and n_better < update.rule.top_candidates


def _regret_keeps(update: TreeUpdate, index: int, best: float, touched: set[int]) -> bool:
    """Whether a node keeps its split, or another one of the same feature that moves few rows."""
    node, settings = update.tree.nodes[index], update.settings
    current = update.current_gain(node)
    is_void = current == NEVER
    if is_void and (update.tolerance == 0 or best == NEVER):
        return False
    scores = candidates(settings, node.rows, update.codes, update.recorded)
    score, split = max(
        ((score, split) for score, split in scores if split.feature == node.split.feature),
        key=lambda candidate: candidate[0],
    )
    best_own = settings.gain(node.sums, score)
    kept = best_own if is_void else current
    if kept == NEVER or not update.tolerates(best, kept, node.sums.n):
        return False
    if not best_own > current:
        return True
    codes = update.codes
    moving = [r for r in node.rows if split.left(codes[r]) != node.split.left(codes[r])]
    n_moving = sums_over(moving, update.recorded).n
    if is_void and LARGEST_SHIFT * n_moving > node.sums.n:
        return False
    cost = min(node.sums.n, ROWS_PER_MOVE * n_moving)
    if is_void or not update.tolerates(best_own, current, cost):
        _shift(update, index, split, touched)
    return True


def _route_rows(update: TreeUpdate, index: int, touched: set[int]) -> None:
    """Route a node's rows to its descendants; those whose rows change become touched."""
    nodes = update.tree.nodes
    node = nodes[index]
    if node.left < 0:
        return
    for child, is_left in ((node.left, True), (node.right, False)):
        rows = [r for r in node.rows if node.split.left(update.codes[r]) == is_left]
        if set(rows) != set(nodes[child].rows):
            touched.add(child)
        nodes[child].rows = rows
        _route_rows(update, child, touched)
