"""Rows encoded for the engine: features, targets, weights and ids."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.input.holdout import held_out
from graftboost.input.sparse import AnyTable, is_sparse, same_form
from graftboost.input.wiping import Copies

# With weights that differ less, a model without splits is what it should be.
UNEQUAL = 1000.0


@dataclass(frozen=True)
class Rows:
    """Rows encoded for the engine.

    If `weight` is None, all weights are one; if `ids` is None, rows are numbered from 0. Arrays
    that are derived from these rows are registered in `copies`.
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
                    "sample_weight times class_weight exceeds the range of float64. Only the "
                    "ratios of weights matter, so divide sample_weight by a large number."
                )
        return replace(self, weight=weight)

    def with_weights_near_one(self) -> Rows:
        """Return these rows with weights scaled so that the largest is between 0.5 and 1.

        Averages depend only on the ratios of weights, which a power of two preserves exactly.
        """
        if self.weight is None:
            return self
        exponent = np.frexp(self.weight.max())[1]
        return replace(self, weight=self.copies.add(np.ldexp(self.weight, -exponent)))

    def hold_out(self, fraction: float, seed: int) -> tuple[Rows, Rows]:
        """Return the rows to train on and the rows to validate on."""
        ids = np.arange(len(self.y)) if self.ids is None else self.ids
        return replace(self, ids=ids).divide(held_out(ids, fraction, seed))

    def divide(self, held: NDArray[np.bool_]) -> tuple[Rows, Rows]:
        """Return the rows that are not held out, and those that are."""
        return self._select(~held), self._select(held)

    def of_positive_weight(self) -> Rows:
        """Return the rows of positive weight."""
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
    """Return both with features of the same form and dtype, as the engine requires."""
    X, other = same_form(first.X, second.X)
    return replace(first, X=X), replace(second, X=other)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Return rows of the same columns together, which may come from tables of different dtypes."""

    def joined(arrays: list[Any]) -> Any:
        return None if arrays[0] is None else np.concatenate(arrays)

    if is_sparse(parts[0].X):
        from scipy.sparse import vstack

        X = vstack([part.X for part in parts], format="csr")
    else:
        X = np.concatenate([part.X for part in parts])
    return Rows(
        X,
        joined([part.y for part in parts]),
        joined([part.weight for part in parts]),
        joined([part.ids for part in parts]),
    )


@dataclass(frozen=True)
class RowCounts:
    """How many rows there are to train on.

    Attributes
    ----------
    n_rows, n_weighted : int
        All rows, and those of positive weight.
    least_weight, largest_weight : float
        The extremes of the positive weights.
    of_classes : ndarray of int or None
        The rows of each class, of any weight; None for a regression.
    """

    n_rows: int
    n_weighted: int
    least_weight: float
    largest_weight: float
    of_classes: NDArray[np.intp] | None

    @classmethod
    def of(cls, rows: Rows, classes: NDArray[Any] | None) -> RowCounts:
        """Count rows."""
        n_rows, of_classes = len(rows.y), None
        if classes is not None:
            of_classes = np.bincount(rows.y.astype(np.intp), minlength=len(classes))
        weight = rows.weight
        if weight is None:
            return cls(n_rows, n_rows, 1.0, 1.0, of_classes)
        return cls(
            n_rows,
            int(np.count_nonzero(weight)),
            float(weight.min(where=weight > 0, initial=np.inf)),
            float(weight.max(initial=0.0)),
            of_classes,
        )

    def __add__(self, other: RowCounts) -> RowCounts:
        of_classes = None
        if self.of_classes is not None and other.of_classes is not None:
            of_classes = self.of_classes + other.of_classes
        return RowCounts(
            self.n_rows + other.n_rows,
            self.n_weighted + other.n_weighted,
            min(self.least_weight, other.least_weight),
            max(self.largest_weight, other.largest_weight),
            of_classes,
        )


def check_enough_to_train(
    left: RowCounts, validation: Rows | None, validation_fraction: float
) -> None:
    """Raise if there is no row of positive weight to train on or to validate on.

    Every class needs at least one row, of any weight. A class whose rows all have weight zero is
    known to the model and gets a small probability. A bootstrap by weights can produce this case.
    """
    remedy = "Decrease validation_fraction, pass more rows, or pass X_val and y_val."
    if not left.n_rows:
        raise ValueError(
            f"X has {len(validation.y) if validation else 0} sample(s), of which "
            f"validation_fraction={validation_fraction} leaves no rows to train on. {remedy}"
        )
    if not left.n_weighted:
        raise ValueError(
            "No training row has a positive weight (sample_weight times class_weight). Pass a "
            "positive weight for at least one row; with early_stopping, for a row that is not held "
            "out."
        )
    if validation is not None and validation.weight is not None and not validation.weight.any():
        raise ValueError(
            "No row held out for validation has a positive weight (sample_weight times "
            "class_weight). Increase validation_fraction, or pass X_val and y_val."
        )
    if left.of_classes is not None and not left.of_classes.all():
        raise ValueError(
            f"All rows of one class of y are held out for validation, which leaves none to train "
            f"on. {remedy}"
        )


def warn_about_unequal_weights(
    trained_on: RowCounts, min_samples_leaf: int, min_hessian: float
) -> None:
    """Warn that a model without splits may be due to very unequal weights, if they are.

    If a few rows have almost all of the weight, the scores that suit them leave hardly any hessian
    in the other rows.
    """
    enough_rows = trained_on.n_weighted >= 2 * min_samples_leaf
    # Divided, because a product may overflow.
    if enough_rows and trained_on.least_weight < trained_on.largest_weight / UNEQUAL:
        warnings.warn(
            "The model has no splits and predicts the same for all rows. sample_weight gives a few "
            f"rows almost all of the weight, which leaves less than min_hessian={min_hessian:g} "
            "for the others. Decrease the largest weights or min_hessian.",
            UserWarning,
            stacklevel=5,
        )
