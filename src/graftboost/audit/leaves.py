"""The difference between leaf values and refreshed leaf values."""

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
    """Measure the error of leaf values that is due to recorded gradients.

    Updates keep the recorded gradients of rows outside regrown nodes, although earlier trees have
    changed. The error is the sum of absolute differences between leaf values and refreshed leaf
    values, divided by the sum of absolute refreshed leaf values (the paper's approximation error of
    leaf scores). After `refresh` it is 0.

    Parameters
    ----------
    after : GraftBoostClassifier or GraftBoostRegressor
        A model that has been updated.
    before : GraftBoostClassifier or GraftBoostRegressor, default=None
        The model before rows were removed. If given, the error of this untouched model on the
        remaining rows is included. If rows were added, this is not possible, because `before` does
        not hold them.

    Returns
    -------
    Audit
        Its ``figures`` contain "updated" and, with `before`, "untouched".
    """
    refreshed = copy.deepcopy(after).refresh()
    errors = {"updated": _error(after, refreshed)}
    if before is not None and not len(ids_in_one_only(after, before)):
        left = booked_only(before, ids_in_one_only(before, after))
        errors["untouched"] = _error(before, left.refresh())
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, "-" if error is None else percent(error)) for name, error in errors.items()
    )
    return Audit(
        "leaf_error",
        f"Leaf values of {after._engine_model.n_trees:,} trees, compared with refreshed ones",
        ("model", "error"),
        rows,
        _summary(errors),
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
    """Return the error, or None if the trees differ."""
    distance = size = 0.0
    for mine, exact in zip(leaf_values(model), leaf_values(reference), strict=True):
        if len(mine) != len(exact):
            return None
        distance += float(np.abs(mine - exact).sum())
        size += float(np.abs(exact).sum())
    return distance / size if size else 0.0


def _summary(errors: dict[str, float | None]) -> str:
    updated = errors["updated"]
    if not updated:
        return "The leaf values are equal to refreshed leaf values."
    text = (
        f"The leaf values differ from refreshed leaf values by {percent(updated)}, because rows "
        "keep their recorded gradients. refresh() removes the difference."
    )
    untouched = errors.get("untouched")
    if untouched is not None:
        text += (
            f" Those of the untouched model differ by {percent(untouched)}; its trees have not "
            "changed, so most recorded gradients are still accurate."
        )
    return text
