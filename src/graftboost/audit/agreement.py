"""Whether an updated model predicts what a retrained one does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from graftboost.audit.copies import ids_in_one_only, trained_again, trained_without
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

    Training again moves predictions by itself wherever two candidates are nearly equal. So the
    updated model stands beside others: the model before the update, to which nothing was done; a
    retrain that leaves out as many other rows as the update changed; and, if they are given, two
    retrains that differ only in their seeds, compared with each other.

    Parameters
    ----------
    before : GraftBoostClassifier
        The model before the update.
    after : GraftBoostClassifier
        The model after it.
    X, y
        Rows to predict, which should not be among those trained on, and their classes.
    retrained : GraftBoostClassifier, default=None
        A model trained on what `after` holds. Without, a refit of it, with the same bins.
    reseeded : pair of GraftBoostClassifier, default=None
        Two models fitted on what `after` holds with different ``random_state``. A seed draws the
        candidates from the raw values, which a model does not keep: so they cannot be made here.
    random_state : int, RandomState or None, default=0
        Which other rows are left out.

    Returns
    -------
    Audit
        Its ``figures`` have for each of "updated", "left alone", "other rows" and "other seeds" the
        shares of rows that the retrained model has right and the other wrong ("C2W"), the other way
        round ("W2C"), that both have wrong but differently ("W2W"), and that are predicted alike
        ("phi", 1 less the three).
    """
    if not hasattr(after, "classes_"):
        raise ValueError(
            f"after is a {type(after).__name__}. Similarity counts classes: pass classifiers, or "
            "compare the predictions of regressors by their difference."
        )
    if retrained is None:
        retrained = trained_again(after)
    truth, reference = np.asarray(y), retrained.predict(X)
    predicted = {"updated": after.predict(X), "left alone": before.predict(X)}
    n_changed = len(ids_in_one_only(before, after)) + len(ids_in_one_only(after, before))
    if n_changed and 2 * n_changed <= after.n_rows_:
        others = check_random_state(random_state).choice(after.row_ids_, n_changed, replace=False)
        predicted["other rows"] = trained_without(after, others).predict(X)
    figures = {name: _compare(truth, reference, labels) for name, labels in predicted.items()}
    if reseeded is not None:
        first, second = (model.predict(X) for model in reseeded)
        figures["other seeds"] = _compare(truth, first, second)
    rows: list[tuple[Cell, ...]] = [
        (name, *(percent(measured[measure]) for measure in MEASURES))
        for name, measured in figures.items()
    ]
    closer = _discordant(reference, predicted["updated"], predicted["left alone"])
    return Audit(
        "similarity",
        f"Predictions of {len(truth):,} rows, beside a retrained model's",
        ("model", *MEASURES),
        tuple(rows),
        _in_words({name: measured["phi"] for name, measured in figures.items()}, *closer),
        figures,
        Chart(
            "bars",
            list(figures),
            {"predicted otherwise": [100 * (1 - f["phi"]) for f in figures.values()]},
            y_label="predicted otherwise, per cent",
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
    reference: NDArray[Any], updated: NDArray[Any], alone: NDArray[Any]
) -> tuple[int, int]:
    """Return how many rows only the updated model, and only the one left alone, has alike."""
    first, second = updated == reference, alone == reference
    return int(np.sum(first & ~second)), int(np.sum(second & ~first))


def _in_words(phi: dict[str, float], gained: int, lost: int) -> str:
    if abs(gained - lost) <= 2 * np.sqrt(gained + lost):
        verdict = (
            "no closer to it and no further from it than the model that was left alone is: by this "
            "measure nobody can tell whether anything was done"
        )
    elif gained > lost:
        verdict = "closer to it than the model that was left alone is"
    else:
        verdict = "further from it than the model that was left alone is"
    text = (
        f"The updated model predicts {percent(phi['updated'])} of the rows as the retrained one "
        f"does, which is {verdict} ({percent(phi['left alone'])})."
    )
    if "other rows" in phi:
        text += (
            f" With as many other rows left out, a retrain predicts {percent(phi['other rows'])} "
            "like it."
        )
    if "other seeds" in phi:
        text += f" Two retrains with different seeds agree on {percent(phi['other seeds'])}."
    return text
