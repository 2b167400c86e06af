"""What an estimator has learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.estimators.update_lock import UpdateLock
from graftboost.input.columns import Columns

if TYPE_CHECKING:
    from graftboost._engine import EngineModel


def fitted_attributes(
    engine_model: EngineModel,
    next_id: int,
    columns: Columns,
    classes: NDArray[Any] | None,
    class_weights: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """Return the attributes of an estimator that has trained a model.

    Parameters
    ----------
    engine_model : EngineModel
        The model.
    next_id : int
        The smallest id that is larger than all ids used.
    columns : Columns
        The columns of X.
    classes, class_weights : ndarray or None
        The classes and their weights; None for a regression, or without weights.
    """
    learned: dict[str, Any] = {
        "_engine_model": engine_model,
        "_update_lock": UpdateLock(),
        "_next_id": next_id,
        "_columns": columns,
        "n_features_in_": columns.n_features,
    }
    if classes is not None:
        learned["_classes"] = {len(classes): classes}
        learned["_fitted_class_weights"] = (
            None if class_weights is None else (classes.tolist(), class_weights.tolist())
        )
    return learned
