"""What rows and classes weigh.

Every check names the argument that it checks, so that an error tells the caller where to look.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from graftboost.input.row_ids import check_length


def check_weight(
    sample_weight: Any,
    n_rows: int,
    argument: str = "sample_weight",
    *,
    all_may_be_zero: bool = False,
) -> NDArray[np.float64] | None:
    """Return the rows' weights, or None where every row weighs one."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight)
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name=argument
    )
    if weight.ndim != 1:
        raise ValueError(
            f"{argument} has shape {weight.shape}, but one number a row is expected: "
            f"shape ({n_rows},). Sample weights must be 1D."
        )
    check_length(weight, n_rows, argument)
    if (weight < 0).any():
        row = int(np.argmin(weight))
        raise ValueError(
            f"{argument} is negative ({weight[row]:g} in row {row}). Weights say how often a row "
            "counts: give zero or more."
        )
    if not all_may_be_zero and not weight.any():
        raise ValueError(
            f"{argument} is zero for every row, which leaves nothing to train on. "
            "Give at least one row a positive weight."
        )
    return None if (weight == 1).all() else weight


def weigh_classes(
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    codes: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Return the weight of each class, or None where every class weighs one.

    ``"balanced"`` gives all classes of `codes` the same sum of weights, as in scikit-learn. A dict
    may leave classes out, which then weigh one, or have weights for classes that are added later.
    It may not do both: then a label is most likely misspelt, or of another type than in y.

    Examples
    --------
    >>> weigh_classes({"10": 3.0}, np.array(["10", "9"]), np.array([0.0, 1.0])).tolist()
    [3.0, 1.0]
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        counts = np.bincount(codes.astype(np.intp), minlength=len(classes))
        weights = len(codes) / (len(classes) * counts)
    else:
        missing = [label for label in classes if label not in class_weight]
        known = len(classes) - len(missing)
        if missing and known < len(class_weight):
            labels = set(classes)
            unknown = next(key for key in class_weight if key not in labels)
            raise ValueError(
                f"class_weight has a weight for {unknown!r}, which is not a class of y, and none "
                f"for {len(missing)} of the {len(classes)} classes of y. Use the labels as they "
                f"are in y, of type {type(classes.tolist()[0]).__name__}."
            )
        weights = np.array([class_weight.get(label, 1.0) for label in classes])
    return check_weight(weights, len(classes), "class_weight")
