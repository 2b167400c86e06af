"""Tree growing: best-first, up to the maximal number of leaves."""

from __future__ import annotations

from collections.abc import Sequence

from graftboost.reference.split_evaluation import Codes, Recorded, Settings, best_split, sums_over
from graftboost.reference.tree import Node, Tree


def grow(
    settings: Settings, rows: Sequence[int], codes: Codes, recorded: Recorded, max_leaf_nodes: int
) -> Tree:
    """Grow one tree."""

    def new_node(rows: list[int], parent: int, leaf: int) -> Node:
        node = Node(rows, sums_over(rows, recorded), parent, leaf)
        node.gain, node.split = best_split(settings, rows, codes, recorded)
        node.value = settings.leaf_value(node.sums)
        return node

    tree = Tree([new_node(list(rows), -1, 0)])
    for n_leaves in range(1, max_leaf_nodes):
        leaves = [i for i, node in enumerate(tree.nodes) if node.left < 0]
        index = max(leaves, key=lambda i: tree.nodes[i].gain)
        node = tree.nodes[index]
        if not node.gain > settings.loss.least_gain:
            break
        left: list[int] = []
        right: list[int] = []
        for row in node.rows:
            (left if node.split.left(codes[row]) else right).append(row)
        node.left, node.right = len(tree.nodes), len(tree.nodes) + 1
        tree.nodes.append(new_node(left, index, node.leaf))
        tree.nodes.append(new_node(right, index, n_leaves))
        node.leaf = -1
    return tree
