"""Models for comparison, made from copies: an audit never changes a model that is passed to it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from graftboost.estimators.base_estimator import GraftBoost

Model = TypeVar("Model", bound="GraftBoost")


def refitted_without(model: Model, row_ids: ArrayLike) -> Model:
    """Return a refit of a copy of the model without these rows."""
    held = model.row_ids_[np.isin(model.row_ids_, np.asarray(row_ids))]
    if not len(held):
        return refitted(model)
    result = booked_only(model, held)  # without regrowing, because all trees are refitted anyway
    return result.refit()


def refitted(model: Model) -> Model:
    """Return a refit of a copy of the model."""
    return copy.deepcopy(model).refit()


def booked_only(
    model: Model, remove: ArrayLike | None = None, X: Any = None, y: ArrayLike | None = None
) -> Model:
    """Return a copy in which rows are added and removed while all splits are kept."""
    result = copy.deepcopy(model)
    result.set_params(update_rule="fidelity", tolerance=None)
    report = result.update(X, y, remove=remove, fidelity=0.0)
    result.set_params(update_rule=model.update_rule, tolerance=model.tolerance)
    if report.strategy == "refit":
        raise ValueError(
            "The change requires a refit (an unseen class, the first weights, or too many rows), "
            "so its effect on splits cannot be measured. Pass fewer rows, of known classes."
        )
    return result


def ids_in_one_only(holder: GraftBoost, other: GraftBoost) -> NDArray[np.int64]:
    """Return the ids of rows that the first model holds and the second does not."""
    return np.setdiff1d(holder.row_ids_, other.row_ids_)
