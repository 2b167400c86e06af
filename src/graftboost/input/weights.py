"""Weights of rows and classes.

Every check names the argument that it checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.input.row_ids import check_length


def check_weight(
    sample_weight: Any,
    n_rows: int,
    argument: str = "sample_weight",
    *,
    all_may_be_zero: bool = False,
) -> NDArray[np.float64] | None:
    """Return the weights of rows, or None if all are one."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight)
    from sklearn.utils import check_array

    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name=argument
    )
    if weight.ndim != 1:
        raise ValueError(
            f"{argument} has shape {weight.shape}, but must have one number per row: "
            f"shape ({n_rows},). Sample weights must be 1D."
        )
    check_length(weight, n_rows, argument)
    if (weight < 0).any():
        row = int(np.argmin(weight))
        raise ValueError(
            f"{argument} is negative in row {row}, but weights must be zero or positive. Correct "
            "it, or remove the row."
        )
    if not all_may_be_zero and not weight.any():
        raise ValueError(
            f"{argument} is zero for every row, which leaves nothing to train on. "
            "Pass a positive weight for at least one row."
        )
    return None if (weight == 1).all() else weight


def weigh_classes(
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    counts: NDArray[np.int64],
) -> NDArray[np.float64] | None:
    """Return the weight of each class, or None if all are one.

    ``"balanced"`` gives all classes, of which there are `counts` rows, the same sum of weights, as
    in scikit-learn. A dict
    may omit classes, which then have weight one, or contain classes that are added later. A dict
    that does both is rejected, because a label is probably misspelt or of another type than in y.

    Examples
    --------
    >>> weigh_classes({"10": 3.0}, np.array(["10", "9"]), np.array([5, 7])).tolist()
    [3.0, 1.0]
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        weights = counts.sum() / (len(classes) * counts)
    else:
        missing = [label for label in classes if label not in class_weight]
        known = len(classes) - len(missing)
        if missing and known < len(class_weight):
            labels = set(classes)
            unknown = next(key for key in class_weight if key not in labels)
            raise ValueError(
                f"class_weight has a weight for {unknown!r}, which is not a class of y, but none "
                f"for {len(missing)} of the {len(classes)} classes of y. Use the same labels as in "
                f"y, of type {type(classes.tolist()[0]).__name__}."
            )
        weights = np.array([class_weight.get(label, 1.0) for label in classes])
    return check_weight(weights, len(classes), "class_weight")
