"""Agreement between the predictions of an updated model and of a retrained one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from graftboost.audit.copies import ids_in_one_only, refitted, refitted_without
from graftboost.audit.result import Audit, Cell, Chart, percent

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier

MEASURES = ("C2W", "W2C", "W2W", "phi")


def similarity(
    before: GraftBoostClassifier,
    after: GraftBoostClassifier,
    X: Any,
    y: ArrayLike,
    *,
    retrained: GraftBoostClassifier | None = None,
    reseeded: tuple[GraftBoostClassifier, GraftBoostClassifier] | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Audit:
    """Compare the predictions of an updated classifier with those of a retrained one.

    Retraining itself changes predictions where two candidates have nearly equal gains. The updated
    model is therefore shown with controls: the untouched model, a retrain without as many other
    rows as the update changed, and optionally two retrains that differ only in their seeds.

    Parameters
    ----------
    before : GraftBoostClassifier
        The model before the update.
    after : GraftBoostClassifier
        The model after the update.
    X, y
        Rows to predict, which should not be training rows, and their classes.
    retrained : GraftBoostClassifier, default=None
        A model trained on the rows of `after`. Default: a refit of `after`.
    reseeded : pair of GraftBoostClassifier, default=None
        Two models fitted on the rows of `after` with different ``random_state``. They must be
        fitted on raw data, because the seed selects candidates from raw values.
    random_state : int, RandomState or None, default=0
        Selects the other rows that are left out.

    Returns
    -------
    Audit
        Its ``figures`` contain, for each of "updated", "untouched", "other rows" and "other seeds",
        the fractions of rows that the retrained model predicts correctly and the other wrongly
        ("C2W"), the reverse ("W2C"), that both predict wrongly but differently ("W2W"), and that
        both predict equally ("phi", 1 minus the other three).
    """
    if not hasattr(after, "classes_"):
        raise ValueError(
            f"after is a {type(after).__name__}, but similarity compares predicted classes. Pass "
            "classifiers; compare the predictions of regressors directly."
        )
    if retrained is None:
        retrained = refitted(after)
    truth, reference = np.asarray(y), retrained.predict(X)
    predicted = {"updated": after.predict(X), "untouched": before.predict(X)}
    n_changed = len(ids_in_one_only(before, after)) + len(ids_in_one_only(after, before))
    if n_changed and 2 * n_changed <= after.n_rows_:
        others = check_random_state(random_state).choice(after.row_ids_, n_changed, replace=False)
        predicted["other rows"] = refitted_without(after, others).predict(X)
    figures = {name: _compare(truth, reference, labels) for name, labels in predicted.items()}
    if reseeded is not None:
        first, second = (model.predict(X) for model in reseeded)
        figures["other seeds"] = _compare(truth, first, second)
    rows: list[tuple[Cell, ...]] = [
        (name, *(percent(measured[measure]) for measure in MEASURES))
        for name, measured in figures.items()
    ]
    closer = _discordant(reference, predicted["updated"], predicted["untouched"])
    return Audit(
        "similarity",
        f"Predictions of {len(truth):,} rows, compared with a retrained model",
        ("model", *MEASURES),
        tuple(rows),
        _summary({name: measured["phi"] for name, measured in figures.items()}, *closer),
        figures,
        Chart(
            "bars",
            list(figures),
            {"predicted differently": [100 * (1 - f["phi"]) for f in figures.values()]},
            y_label="predicted differently, per cent",
        ),
    )


def _compare(truth: NDArray[Any], reference: NDArray[Any], other: NDArray[Any]) -> dict[str, float]:
    was_right, is_right = reference == truth, other == truth
    differ = reference != other
    shares = {
        "C2W": float(np.mean(was_right & ~is_right)),
        "W2C": float(np.mean(~was_right & is_right)),
        "W2W": float(np.mean(~was_right & ~is_right & differ)),
    }
    return {**shares, "phi": 1 - sum(shares.values())}


def _discordant(
    reference: NDArray[Any], updated: NDArray[Any], untouched: NDArray[Any]
) -> tuple[int, int]:
    """Return for how many rows only the updated, and only the untouched model agrees."""
    first, second = updated == reference, untouched == reference
    return int(np.sum(first & ~second)), int(np.sum(second & ~first))


def _summary(phi: dict[str, float], gained: int, lost: int) -> str:
    if abs(gained - lost) <= 2 * np.sqrt(gained + lost):
        verdict = "no measurable difference from the untouched model"
    elif gained > lost:
        verdict = "more than the untouched model"
    else:
        verdict = "less than the untouched model"
    text = (
        f"The updated model agrees with the retrained one on {percent(phi['updated'])} of the "
        f"rows: {verdict} ({percent(phi['untouched'])})."
    )
    if "other rows" in phi:
        text += f" A retrain without as many other rows agrees on {percent(phi['other rows'])}."
    if "other seeds" in phi:
        text += f" Two retrains with different seeds agree on {percent(phi['other seeds'])}."
    return text
