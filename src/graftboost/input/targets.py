"""Targets: numbers for a regression, class labels for a classification.

Every check names the argument that it checks. scikit-learn is imported by the checks that need it:
the process of a shard, which usually does not, starts in half the time.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from graftboost.input.distinct_values import code_integers, code_strings
from graftboost.input.row_ids import check_length


def check_target(y: Any, n_rows: int, argument: str = "y") -> NDArray[np.float64]:
    """Return the target of a regression as float64, with one finite value per row."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf" and np.isfinite(y).all():
        check_length(y, n_rows, argument)
        return np.ascontiguousarray(y, np.float64)
    from sklearn.utils import check_array, column_or_1d

    _check_missing(y, argument)
    try:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name=argument)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(
            f"{argument} contains text that is not a number. Convert it to numbers, or use a "
            "classifier."
        ) from None
    y = column_or_1d(y, warn=True)
    check_length(y, n_rows, argument)
    return np.ascontiguousarray(y)


def check_labels(y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the sorted classes, and the index of each row's class.

    Examples
    --------
    >>> classes, codes = check_labels(["yes", "no", "yes"], n_rows=3)
    >>> classes.tolist(), codes.tolist()
    (['no', 'yes'], [1.0, 0.0, 1.0])
    """
    codes, classes = _code_labels(_read_labels(y, n_rows, "y"))
    if len(classes) < 2:
        raise ValueError(
            "y contains only one class, but a classifier needs at least two. Pass rows of more "
            "classes."
        )
    return classes, codes


def count_labels(y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes that occur, and how often, of rows that are not all rows of a fit."""
    codes, found = _code_labels(_read_labels(y, n_rows, "y"))
    return found, np.bincount(codes.astype(np.intp), minlength=len(found))


def check_known_labels(
    y: Any, n_rows: int, classes: NDArray[Any], argument: str
) -> NDArray[np.float64]:
    """Return the index of each row's class among the classes of the model."""
    labels = _read_labels(y, n_rows, argument)
    index = {label: code for code, label in enumerate(classes.tolist())}
    coded = code_integers(labels) or code_strings(labels)
    if coded is None:
        codes = np.fromiter((index.get(label, -1) for label in labels.tolist()), np.float64, n_rows)
    else:
        of_found = np.array([index.get(label, -1) for label in coded[1].tolist()], np.float64)
        codes = of_found[coded[0].astype(np.intp)]
    if (codes < 0).any():
        raise ValueError(
            f"{argument} contains a class that y does not contain, in row {int(np.argmin(codes))}. "
            f"Remove such rows from {argument}, or add rows of that class to y."
        )
    return codes


def check_added_labels(
    y: Any, n_rows: int, classes: NDArray[Any]
) -> tuple[NDArray[np.float64], list[int], NDArray[Any]]:
    """Return the class codes of rows, the new code of each known class, and all classes.

    Examples
    --------
    >>> codes, relabel, classes = check_added_labels(["b", "c"], 2, np.array(["a", "c"]))
    >>> codes.tolist(), relabel, classes.tolist()
    ([1.0, 2.0], [0, 2], ['a', 'b', 'c'])
    """
    labels = _read_labels(y, n_rows, "y")
    unseen = set(labels.tolist()) - set(classes.tolist())
    if unseen:
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(labels)
        try:
            everyone = sorted([*classes.tolist(), *unseen])
        except TypeError:
            kinds = [type(label).__name__ for label in (next(iter(unseen)), *classes.tolist())]
            raise ValueError(
                f"y contains a class of type {kinds[0]}, which cannot be compared with the classes "
                f"of the model, of type {kinds[1]}. Pass labels of the same type."
            ) from None
        kind = object if classes.dtype == object else np.result_type(classes, labels)
        known, classes = classes, np.array(everyone, dtype=kind)
        index = {label: code for code, label in enumerate(everyone)}
        relabel = [index[label] for label in known.tolist()]
    else:
        index = {label: code for code, label in enumerate(classes.tolist())}
        relabel = list(range(len(classes)))
    codes = np.fromiter((index[label] for label in labels.tolist()), np.float64, n_rows)
    return codes, relabel, classes


def _read_labels(y: Any, n_rows: int, argument: str) -> NDArray[Any]:
    # Only the length of a flat array of integers can be wrong.
    if not (type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biu"):
        from sklearn.utils import assert_all_finite, column_or_1d

        _check_missing(y, argument)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name=argument)
    check_length(y, n_rows, argument)
    return np.asarray(y)


def _code_labels(labels: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the index of each row's class, and the sorted classes."""
    coded = code_integers(labels) or code_strings(labels)
    if coded is not None:
        return coded
    from sklearn.preprocessing import LabelEncoder
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(labels)
    encoder = LabelEncoder()
    return encoder.fit_transform(labels).astype(np.float64), encoder.classes_


def _check_missing(y: Any, argument: str) -> None:
    """Raise if y is None or contains missing values that numpy does not know."""
    if y is None:
        raise ValueError(
            f"{argument} is None: this estimator requires y to be passed, but the target y is None."
        )
    series = nw.from_native(y, series_only=True, pass_through=True)
    missing = series.null_count() if isinstance(series, nw.Series) else 0
    if missing or (not isinstance(series, nw.Series) and _holds_none(y)):
        raise ValueError(f"{argument} contains NaN or null. Remove rows without a target.")


def _holds_none(y: Any) -> bool:
    if isinstance(y, np.ndarray) and y.dtype != object:
        return False
    return any(value is None for value in np.asarray(y, dtype=object).ravel())
