"""What comes with the rows beside their features: targets, and which rows are held out.

Every check names the argument that it checks, so that an error tells the caller where to look.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import assert_all_finite, check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from graftboost.row_ids import check_length
from graftboost.sparse import AnyTable, same_form
from graftboost.wiping import Copies

# Integers that span fewer values than this are told apart by a table instead of by sorting.
TABLE_SPAN = 1 << 16

# Says what a hash is drawn for, so that no two uses of a seed see the same numbers.
HELD_OUT = 0x76616C6964  # "valid"


@dataclass(frozen=True)
class Rows:
    """Rows as the engine takes them; `weight` None: each weighs one, `ids` None: from 0 on.

    `copies` takes note of what is copied when rows are made from these.
    """

    X: AnyTable
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    ids: NDArray[np.int64] | None = None
    copies: Copies = field(default_factory=Copies)

    def weighed_by_class(self, class_weights: NDArray[np.float64] | None) -> Rows:
        """Return these rows with their weights multiplied by the weight of their class."""
        if class_weights is None:
            return self
        weight = self.copies.add(class_weights[self.y.astype(np.intp)])
        if self.weight is not None:
            with np.errstate(over="ignore"):
                weight *= self.weight
            if not np.isfinite(weight).all():
                raise ValueError(
                    "sample_weight times class_weight exceeds the largest float64. Only the ratios "
                    "of weights matter: divide sample_weight by a large number."
                )
        return replace(self, weight=weight)

    def with_weights_near_one(self) -> Rows:
        """Return these rows with the largest weight between a half and one.

        For an average, in which only ratios count: a power of two changes no ratio.
        """
        if self.weight is None:
            return self
        exponent = np.frexp(self.weight.max())[1]
        return replace(self, weight=self.copies.add(np.ldexp(self.weight, -exponent)))

    def hold_out(self, fraction: float, seed: int) -> tuple[Rows, Rows]:
        """Return the rows to train on and the rows to validate on."""
        ids = np.arange(len(self.y)) if self.ids is None else self.ids
        held = held_out(ids, fraction, seed)
        return replace(self, ids=ids)._select(~held), self._select(held)

    def that_count(self) -> Rows:
        """Return the rows whose weight is not zero."""
        return self if self.weight is None or self.weight.all() else self._select(self.weight > 0)

    def _select(self, mask: NDArray[np.bool_]) -> Rows:
        def chosen(table: Any) -> Any:
            return None if table is None else self.copies.add(table[mask])

        return replace(
            self,
            X=chosen(self.X),
            y=chosen(self.y),
            weight=chosen(self.weight),
            ids=chosen(self.ids),
        )


def share_form(first: Rows, second: Rows) -> tuple[Rows, Rows]:
    """Return both with the features in one form and dtype, which the engine asks for."""
    X, other = same_form(first.X, second.X)
    return replace(first, X=X), replace(second, X=other)


def check_target(y: Any, n_rows: int, argument: str = "y") -> NDArray[np.float64]:
    """Return the target of a regression: finite, float64, one value a row."""
    _check_missing(y, argument)
    try:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name=argument)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(
            f"{argument} holds text that is no number, but a regression's target is one. Convert "
            "it first, or use a classifier."
        ) from None
    y = column_or_1d(y, warn=True)
    check_length(y, n_rows, argument)
    return np.ascontiguousarray(y)


def check_labels(y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the classes, sorted, and for each row the index of its class.

    Examples
    --------
    >>> classes, codes = check_labels(["yes", "no", "yes"], n_rows=3)
    >>> classes.tolist(), codes.tolist()
    (['no', 'yes'], [1.0, 0.0, 1.0])
    """
    y = _read_labels(y, n_rows, "y")
    coded = code_integers(y) or _code_strings(y)
    if coded is None:
        check_classification_targets(y)
        encoder = LabelEncoder()
        coded = encoder.fit_transform(y).astype(np.float64), encoder.classes_
    codes, classes = coded
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only: {classes.tolist()[0]!r}. "
            "A classifier needs rows of at least two classes."
        )
    return classes, codes


def check_known_labels(
    y: Any, n_rows: int, classes: NDArray[Any], argument: str
) -> NDArray[np.float64]:
    """Return for each row the index of its class among `classes`, those of the model."""
    labels = _read_labels(y, n_rows, argument).tolist()
    index = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.fromiter((index.get(label, -1) for label in labels), np.float64, n_rows)
    if (codes < 0).any():
        raise ValueError(
            f"{argument} holds the class {labels[np.argmin(codes)]!r}, which y does not have. "
            f"Leave its rows out of {argument}, or train on rows of that class too."
        )
    return codes


def check_added_labels(
    y: Any, n_rows: int, classes: NDArray[Any]
) -> tuple[NDArray[np.float64], list[int], NDArray[Any]]:
    """Return the rows' class codes, the new code of each class known before, and all classes.

    Examples
    --------
    >>> codes, relabel, classes = check_added_labels(["b", "c"], 2, np.array(["a", "c"]))
    >>> codes.tolist(), relabel, classes.tolist()
    ([1.0, 2.0], [0, 2], ['a', 'b', 'c'])
    """
    labels = _read_labels(y, n_rows, "y")
    unseen = set(labels.tolist()) - set(classes.tolist())
    if unseen:
        check_classification_targets(labels)
        try:
            everyone = sorted([*classes.tolist(), *unseen])
        except TypeError:
            kinds = [type(label).__name__ for label in (next(iter(unseen)), *classes.tolist())]
            raise ValueError(
                f"y holds a class of type {kinds[0]}, which cannot be ordered beside the classes "
                f"of the model, of type {kinds[1]}. Give labels of the same kind."
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


def check_enough_to_train(
    rows: Rows, validation: Rows | None, classes: NDArray[Any] | None, validation_fraction: float
) -> None:
    """Raise if no row that counts is left to train on, or to validate on.

    Every class needs a row too, of whatever weight. A class whose rows all weigh zero is one that
    the model knows and considers improbable, as after a bootstrap that drew none of them.
    """
    remedy = "Lower validation_fraction, pass more rows, or pass X_val and y_val."
    if not len(rows.y):
        raise ValueError(
            f"X has {len(validation.y) if validation else 0} sample(s), of which "
            f"validation_fraction={validation_fraction} leaves none to train on. {remedy}"
        )
    if rows.weight is not None and not rows.weight.any():
        raise ValueError(
            "No row has a positive weight (sample_weight, times class_weight where that is given), "
            "which leaves nothing to train on. Give at least one row a positive weight; with "
            "early_stopping, one that is not held out."
        )
    if validation is not None and validation.weight is not None and not validation.weight.any():
        raise ValueError(
            "No row held out for validation has a positive weight (sample_weight, times "
            "class_weight where that is given). Raise validation_fraction, or pass X_val and y_val."
        )
    if classes is None:
        return
    counts = np.bincount(rows.y.astype(np.intp), minlength=len(classes))
    if not counts.all():
        raise ValueError(
            f"All rows of the class {classes.tolist()[np.argmin(counts)]!r} of y are held out for "
            f"validation, which leaves none to train on. {remedy}"
        )


def code_integers(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[Any]] | None:
    """Return each value's position among the distinct values, and these, sorted.

    None if the values are not integers (of whatever dtype) in a narrow range: those need sorting,
    which takes ten times as long.

    Examples
    --------
    >>> codes, distinct = code_integers(np.array([30.0, 10.0, 30.0]))
    >>> codes.tolist(), distinct.tolist()
    ([1.0, 0.0, 1.0], [10.0, 30.0])
    >>> code_integers(np.array([0.5, 1.0])) is None
    True
    """
    if values.dtype.kind not in "biuf" or not values.size:
        return None
    low, high = values.min(), values.max()
    # Written so that NaN, which compares false with everything, fails it.
    if not float(high) - float(low) < TABLE_SPAN or abs(float(low)) > 2.0**53:
        return None
    offsets = values.astype(np.intp)
    if values.dtype.kind == "f" and (offsets.astype(values.dtype) != values).any():
        return None
    offsets -= int(low)
    seen = np.zeros(int(high) - int(low) + 1, dtype=bool)
    seen[offsets] = True
    distinct = (np.flatnonzero(seen) + int(low)).astype(values.dtype)
    return (np.cumsum(seen) - 1.0)[offsets], distinct


def _code_strings(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[Any]] | None:
    """Do the same for strings that are Python objects, which numpy sorts slowly."""
    if values.dtype != object:
        return None
    strings = values.tolist()
    distinct = set(strings)
    if not all(isinstance(value, str) for value in distinct):
        return None
    index = {value: float(code) for code, value in enumerate(sorted(distinct))}
    codes = np.fromiter(map(index.__getitem__, strings), np.float64, len(strings))
    return codes, np.array(list(index), dtype=object)


def held_out(ids: NDArray[np.int64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Return which rows are kept for validation.

    A row's lot depends on the seed and on its own id alone: neither the order of the rows nor what
    other rows there are can change it. Only if no row at all were drawn, the one closest to it is.

    Examples
    --------
    >>> ids = np.arange(1000)
    >>> int(held_out(ids, 0.1, seed=0).sum())
    89
    >>> bool((held_out(ids, 0.1, seed=0)[500:] == held_out(ids[500:], 0.1, seed=0)).all())
    True
    """
    lots = _hash(seed, HELD_OUT, ids)
    drawn: NDArray[np.bool_] = lots < np.uint64(fraction * 2.0**64)
    return drawn if drawn.any() else lots == lots.min()


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return the one 64-bit number from which a fit hashes all its randomness."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**63, dtype=np.int64))


def _hash(seed: int, purpose: int, ids: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hash (seed, purpose, id), the way the engine does."""
    start = _mix(_mix(np.array([seed], dtype=np.uint64)) + np.uint64(purpose))
    return _mix(start + ids.view(np.uint64))


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers (splitmix64); arrays wrap around silently, as they must here."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _read_labels(y: Any, n_rows: int, argument: str) -> NDArray[Any]:
    # A flat array of integers has nothing that could be wrong but its length.
    if not (type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biu"):
        _check_missing(y, argument)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name=argument)
    check_length(y, n_rows, argument)
    return np.asarray(y)


def _check_missing(y: Any, argument: str) -> None:
    """Raise if there are no targets, or one is missing in a way that numpy does not know."""
    if y is None:
        raise ValueError(
            f"{argument} is None: this estimator requires y to be passed, but the target y is None."
        )
    series = nw.from_native(y, series_only=True, pass_through=True)
    missing = series.null_count() if isinstance(series, nw.Series) else 0
    if missing or (not isinstance(series, nw.Series) and _holds_none(y)):
        raise ValueError(f"{argument} contains NaN: a target is missing. Leave those rows out.")


def _holds_none(y: Any) -> bool:
    if isinstance(y, np.ndarray) and y.dtype != object:
        return False
    return any(value is None for value in np.asarray(y, dtype=object).ravel())
