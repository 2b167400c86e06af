"""Models to compare with, made from copies: an audit never changes the model that it is given."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from graftboost.estimators.base_estimator import GraftBoost

Model = TypeVar("Model", bound="GraftBoost")


def trained_without(model: Model, row_ids: ArrayLike) -> Model:
    """Return the model that training from all its rows but these makes, with its bins."""
    held = model.row_ids_[np.isin(model.row_ids_, np.asarray(row_ids))]
    if not len(held):
        return trained_again(model)
    result = booked_only(model, held)  # quickly, for all trees are trained anew in any case
    result.set_params(tolerance_rule=model.tolerance_rule, tolerance=model.tolerance)
    return result.refit()


def trained_again(model: Model) -> Model:
    """Return the model that training from the rows held makes, with its bins."""
    return copy.deepcopy(model).refit()


def booked_only(
    model: Model, remove: ArrayLike | None = None, X: Any = None, y: ArrayLike | None = None
) -> Model:
    """Return a copy in whose sums and leaf values rows come and go, while no split changes."""
    result = copy.deepcopy(model)
    result.set_params(tolerance_rule="regret", tolerance=np.inf)
    report = result.update(X, y, remove=remove)
    if report.strategy == "refit":
        raise ValueError(
            "The change makes the model train all trees anew (a new class, the first weights, or "
            "too many rows), so its splits cannot be followed. Pass fewer rows, of known classes."
        )
    return result


def ids_in_one_only(holder: GraftBoost, other: GraftBoost) -> NDArray[np.int64]:
    """Return the ids of rows that the first model holds and the second does not."""
    return np.setdiff1d(holder.row_ids_, other.row_ids_)
