"""Refresh: recompute all leaf values for the current tree structure."""

from __future__ import annotations

from graftboost.reference.boosting import Model
from graftboost.reference.split_evaluation import best_split
from graftboost.reference.tree_update import TreeUpdate, UpdateRule


def refresh(model: Model) -> None:
    """Record fresh gradients for all rows, and recompute sums, gains and leaf values."""
    for t, tree in enumerate(model.trees):
        for row_id in model.gradients[t]:
            model.gradients[t][row_id] = model.fresh_gradient(t, row_id)
        update = TreeUpdate(model, t, UpdateRule())
        update.recompute_sums()
        for node in tree.nodes:
            node.value = model.settings.leaf_value(node.sums)
            if node.left >= 0:
                node.gain = update.current_gain(node)
            elif not node.deferred.n:  # those of deferred rows are evaluated when they are regrown
                node.gain, node.split = best_split(
                    model.settings, node.rows, update.codes, update.recorded
                )
