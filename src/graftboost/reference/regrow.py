"""Regrowing: rebuild the subtree below a node from fresh gradients of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graftboost.reference.split_evaluation import best_split
from graftboost.reference.tree import Tree
from graftboost.reference.tree_grower import grow
from graftboost.reference.tree_update import TreeUpdate


@dataclass
class Graft:
    """A subtree that replaces a node; None turns the node into a leaf."""

    node: int
    subtree: Tree | None
    leaf_ids: list[int]  # of the subtree's leaves 0, 1, ...


def regrow(update: TreeUpdate, index: int, n_leaves: int, spare: list[int]) -> Graft:
    """Regrow a node to at most n leaves, which use its old leaf ids and the spare ones."""
    leaf_ids = update.tree.leaf_ids_under(index) + spare
    rows = update.tree.nodes[index].rows
    fresh = {row_id: update.model.fresh_gradient(update.t, row_id) for row_id in rows}
    update.model.gradients[update.t].update(fresh)
    update.n_regrown += 1
    subtree = grow(update.settings, rows, update.codes, update.recorded, n_leaves)
    return Graft(index, subtree, leaf_ids)


def insert(update: TreeUpdate, grafts: list[Graft]) -> None:
    """Insert grafts into the tree. Nodes are then numbered from the root, left before right."""
    by_node = {graft.node: graft for graft in grafts}
    old, joined = update.tree, Tree()

    def copy(source: Tree, index: int, parent: int, graft: Graft | None) -> int:
        node = replace(source.nodes[index], parent=parent)
        if graft is None and index in by_node:
            graft = by_node[index]
            if graft.subtree is not None:
                return copy(graft.subtree, 0, parent, graft)
            node = replace(node, left=-1, right=-1, leaf=graft.leaf_ids[0])
            node.gain, node.split = best_split(
                update.settings, node.rows, update.codes, update.recorded
            )
        elif graft is not None and node.left < 0:
            node.leaf = graft.leaf_ids[node.leaf]
        to = len(joined.nodes)
        joined.nodes.append(node)
        if node.left >= 0:
            node.left = copy(source, node.left, to, graft)
            node.right = copy(source, node.right, to, graft)
        return to

    copy(old, 0, -1, None)
    update.tree = joined
    update.recompute_sums()
    for node in joined.nodes:
        if node.left >= 0:
            node.gain = update.current_gain(node)
