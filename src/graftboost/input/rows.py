"""Rows with all that belongs to them, as the engine takes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.input.holdout import held_out
from graftboost.input.sparse import AnyTable, same_form
from graftboost.input.wiping import Copies


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
