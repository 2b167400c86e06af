"""Updates: add and remove rows in place (the paper's Algorithms 2 and 3, and ours).

First, the changed rows are booked in all trees. Then, for each tree, the touched nodes are checked
from the root down, those whose split is not kept are regrown, and the growth order is replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graftboost.reference.booking import book
from graftboost.reference.boosting import Model
from graftboost.reference.growth_order import replay
from graftboost.reference.regrow import insert, regrow
from graftboost.reference.split_check import check
from graftboost.reference.tree_update import ToleranceRule, TreeUpdate


def update(
    model: Model,
    added: Mapping[int, tuple[Sequence[float], float, float | None]],
    removed: Iterable[int],
    rule: ToleranceRule,
) -> int:
    """Add rows (id: features, target, weight), remove others, and return the nodes regrown."""
    gone = {row_id: model.rows.pop(row_id) for row_id in removed}
    for row_id, (x, y, weight) in added.items():
        model.rows[row_id] = model.encode(x, y, weight)
    model.set_base()
    touched = [book(model, t, set(gone), list(added)) for t in range(len(model.trees))]
    return sum(_update_tree(model, t, nodes, rule) for t, nodes in enumerate(touched))


def _update_tree(model: Model, t: int, touched: set[int], rule: ToleranceRule) -> int:
    """Check and regrow the nodes of one tree in which the changed rows are booked."""
    if not touched:
        return 0
    work = TreeUpdate(model, t, rule)
    to_regrow = check(work, 0, touched)
    if to_regrow:
        grafts = [regrow(work, i, len(work.tree.leaf_ids_under(i)), []) for i in to_regrow]
        insert(work, grafts)
    replay(work)
    for node in work.tree.nodes:
        node.value = model.settings.leaf_value(node.sums)
    model.trees[t] = work.tree
    return work.n_regrown
