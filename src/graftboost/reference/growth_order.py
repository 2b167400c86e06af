"""Growth order: replay best-first growth from the gains that the nodes store.

If a leaf now precedes a split that was made, that split is undone and the leaf is split instead.
"""

from __future__ import annotations

import math

from graftboost.reference.regrow import Graft, insert, regrow
from graftboost.reference.tree_update import TreeUpdate


def replay(update: TreeUpdate) -> None:
    """Exchange splits for leaves until the growth order is acceptable under the rule."""
    for _ in range(update.settings.max_leaf_nodes):
        nodes = update.tree.nodes
        # Growth reaches a node after all nodes on its path: at the smallest gain of the path.
        key: list[float] = []
        for node in nodes:
            key.append(min(node.gain, key[node.parent]) if node.parent >= 0 else node.gain)
        least = update.settings.loss.least_gain
        leaves = [i for i, n in enumerate(nodes) if n.left < 0 and n.gain > least]
        if not leaves:
            return
        leaf = max(leaves, key=key.__getitem__)
        current, n, undone = 0.0, nodes[leaf].sums.n, -1
        if (len(nodes) + 1) // 2 >= update.settings.max_leaf_nodes:
            removable = _splits_with_two_leaves(update, without=leaf)
            if not removable:
                return
            undone = min(removable, key=key.__getitem__)
            current, n = key[undone], n + nodes[undone].sums.n
        if not key[leaf] > current or _keeps_order(update, key, leaf, current, n):
            return
        _exchange(update, leaf, undone)


def _splits_with_two_leaves(update: TreeUpdate, without: int) -> list[int]:
    """The nodes whose children are both leaves, neither of them this one."""
    nodes = update.tree.nodes
    return [
        i
        for i, node in enumerate(nodes)
        if node.left >= 0
        and nodes[node.left].left < 0
        and nodes[node.right].left < 0
        and without not in (node.left, node.right)
    ]


def _keeps_order(update: TreeUpdate, key: list[float], leaf: int, current: float, n: int) -> bool:
    """Whether the rule accepts the growth order although this leaf precedes the last split."""
    if update.rule.keeps_structure:
        return True
    if update.rule.kind != "rank":
        return update.tolerates(key[leaf], current, n)
    n_better = sum(node.left < 0 and key[i] > current for i, node in enumerate(update.tree.nodes))
    return n_better <= math.ceil(update.rule.tolerance * update.settings.max_leaf_nodes)


def _exchange(update: TreeUpdate, leaf: int, undone: int) -> None:
    """Split a leaf, after undoing another split unless that is -1."""
    nodes, grafts = update.tree.nodes, []
    if undone >= 0:
        spare = nodes[nodes[undone].right].leaf
        grafts.append(Graft(undone, None, [nodes[nodes[undone].left].leaf]))
    else:
        used = update.tree.leaf_ids_under(0)
        spare = next(i for i in range(len(used) + 1) if i not in used)
    insert(update, [*grafts, regrow(update, leaf, 2, [spare])])
