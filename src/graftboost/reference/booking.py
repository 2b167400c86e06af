"""Booking: the changed rows enter and leave the sums of the nodes on their paths."""

from __future__ import annotations

from collections.abc import Sequence

from graftboost.reference.boosting import Model
from graftboost.reference.split_evaluation import sums_over


def book(model: Model, t: int, gone: set[int], added: Sequence[int]) -> set[int]:
    """Remove rows from a tree and add others; return the nodes on their paths.

    The gradient that an added row records follows from its leaves in the earlier trees, with all
    changed rows booked there and before any node is regrown.
    """
    tree, gradients = model.trees[t], model.gradients[t]
    touched = {i for i, node in enumerate(tree.nodes) if gone.intersection(node.rows)}
    for row_id in gone:
        gradients.pop(row_id, None)
    for node in tree.nodes:
        node.rows = [row_id for row_id in node.rows if row_id not in gone]
    for row_id in added:
        if not model.in_bag(t, row_id):
            continue
        gradients[row_id] = model.fresh_gradient(t, row_id)
        leaf = tree.nodes.index(tree.route(model.rows[row_id].codes))
        for i in tree.path(leaf):
            tree.nodes[i].rows.append(row_id)
            touched.add(i)
    recorded = model.recorded(t)
    for node in tree.nodes:
        node.sums = sums_over(node.rows, recorded)
        node.value = model.settings.leaf_value(node.sums)
    return touched
