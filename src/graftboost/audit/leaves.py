"""How far leaf values are from those that the present trees have on the rows held."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from graftboost.audit.copies import booked_only, ids_in_one_only
from graftboost.audit.result import Audit, Cell, Chart, percent
from graftboost.estimators.inspection import leaf_values

if TYPE_CHECKING:
    from graftboost.estimators.base_estimator import GraftBoost


def leaf_error(after: GraftBoost, *, before: GraftBoost | None = None) -> Audit:
    """Measure what recorded gradients, which updates do not renew, leave in the leaf values.

    The error is the sum over all leaves of how far their values are from those that the same trees
    get on the rows held, of the sum of the latter's sizes (the paper's approximation error of leaf
    scores). `refresh` makes it 0.

    Parameters
    ----------
    after : GraftBoostClassifier or GraftBoostRegressor
        A model that has been updated.
    before : GraftBoostClassifier or GraftBoostRegressor, default=None
        The model before rows were removed. If it is given, the error that its values have on the
        rows left, with its own trees, is shown beside: that is what doing nothing comes to. Of rows
        that were added it cannot be told, because `before` does not hold them.

    Returns
    -------
    Audit
        Its ``figures`` have "updated" and, with `before`, "left alone".
    """
    refreshed = copy.deepcopy(after).refresh()
    errors = {"updated": _error(after, refreshed)}
    if before is not None and not len(ids_in_one_only(after, before)):
        left = booked_only(before, ids_in_one_only(before, after))
        errors["left alone"] = _error(before, left.refresh())
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, "-" if error is None else percent(error)) for name, error in errors.items()
    )
    return Audit(
        "leaf_error",
        f"Leaf values of {after._forest.n_trees:,} trees, beside refreshed ones",
        ("model", "error"),
        rows,
        _in_words(errors),
        errors,
        Chart(
            "bars",
            list(errors),
            {
                "error of leaf values": [
                    float("nan") if error is None else 100 * error for error in errors.values()
                ]
            },
            y_label="error, per cent",
        ),
    )


def _error(model: GraftBoost, reference: GraftBoost) -> float | None:
    """Return the error, None where the trees are not the same."""
    distance = size = 0.0
    for mine, exact in zip(leaf_values(model), leaf_values(reference), strict=True):
        if len(mine) != len(exact):
            return None
        distance += float(np.abs(mine - exact).sum())
        size += float(np.abs(exact).sum())
    return distance / size if size else 0.0


def _in_words(errors: dict[str, float | None]) -> str:
    updated = errors["updated"]
    if not updated:
        return "Leaf values are exactly those that the trees have on the rows held."
    text = (
        f"Leaf values are {percent(updated)} of their size away from those that the trees have on "
        "the rows held, because rows keep the gradients that they recorded; refresh() makes it 0."
    )
    alone = errors.get("left alone")
    if alone is not None:
        text += f" The model that was left alone is {percent(alone)} away."
    return text
