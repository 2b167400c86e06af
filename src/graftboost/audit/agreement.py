"""Whether an updated model predicts what a retrained one does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost.audit.copies import trained_again
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
    reseeded: GraftBoostClassifier | None = None,
) -> Audit:
    """Compare the predictions of an updated classifier with those of a retrained one.

    Training again moves predictions by itself wherever two candidates are nearly equal, so the
    updated model stands beside two others: the model before the update, to which nothing was done,
    and a retrain that differs only in its seed. No update can be expected to agree more than that.

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
    reseeded : GraftBoostClassifier, default=None
        A model trained on the same rows as `retrained` with another ``random_state``. Another seed
        draws other candidates from the raw values, which a model does not keep: so it cannot be
        made here.

    Returns
    -------
    Audit
        Its ``figures`` have for each of "updated", "left alone" and "another seed" the shares of
        rows that the retrained model has right and the other wrong ("C2W"), the other way round
        ("W2C"), that both have wrong but differently ("W2W"), and that are predicted alike
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
    others = {"updated": after, "left alone": before, "another seed": reseeded}
    figures = {
        name: _compare(truth, reference, model.predict(X))
        for name, model in others.items()
        if model is not None
    }
    rows: list[tuple[Cell, ...]] = [
        (name, *(percent(measured[measure]) for measure in MEASURES))
        for name, measured in figures.items()
    ]
    return Audit(
        "similarity",
        f"Predictions of {len(truth):,} rows, beside a retrained model's",
        ("model", *MEASURES),
        tuple(rows),
        _in_words({name: measured["phi"] for name, measured in figures.items()}, len(truth)),
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


def _in_words(phi: dict[str, float], n_rows: int) -> str:
    updated, alone = phi["updated"], phi["left alone"]
    error = float(np.sqrt(max(1 - updated, 1 - alone, 1 / n_rows) / n_rows))
    if updated > alone + 2 * error:
        verdict = "closer to it than the model that was left alone is"
    elif updated < alone - 2 * error:
        verdict = "further from it than the model that was left alone is"
    else:
        verdict = (
            "no closer to it and no further from it than the model that was left alone is: by this "
            "measure nobody can tell whether anything was done"
        )
    text = (
        f"The updated model predicts {percent(updated)} of the rows as the retrained one does, "
        f"which is {verdict} ({percent(alone)})."
    )
    if "another seed" in phi:
        text += f" Two retrains with different seeds agree on {percent(phi['another seed'])}."
    return text
