"""Backdoors: whether an attack disappears when its rows are removed."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from graftboost.audit.result import Audit, Cell, Chart, percent

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier

STAGES = ("trained clean", "trained with backdoor", "backdoor added", "backdoor removed")


def backdoor(
    estimator: GraftBoostClassifier,
    X: ArrayLike,
    y: ArrayLike,
    X_test: ArrayLike,
    y_test: ArrayLike,
    *,
    share: float = 0.05,
    n_features: int = 5,
    target: Any = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Audit:
    """Add a backdoor with one update and remove it with another.

    A fraction of the training rows gets a trigger and a target label. The trigger sets the first
    features to their largest values. A model that has learned the backdoor predicts the target
    label for all rows with the trigger.

    Parameters
    ----------
    estimator : GraftBoostClassifier
        The parameters of the models; the estimator itself is not fitted.
    X, y : array-like
        Training rows. X must be numeric.
    X_test, y_test : array-like
        Test rows. For the attack, all of them get the trigger.
    share : float, default=0.05
        Fraction of the training rows that get the trigger; the others are clean.
    n_features : int, default=5
        Number of features that the trigger sets, beginning with the first.
    target : label, default=None
        The target label of the attack. Default: the first class.
    random_state : int, RandomState or None, default=0
        Selects the rows that get the trigger.

    Returns
    -------
    Audit
        Its ``figures`` contain, for each stage, "clean" (accuracy on clean test rows) and "attack"
        (fraction of test rows with the trigger for which the target label is predicted).
        "untouched" is the model from which nothing was removed. "strategies" contains the
        strategies of adding and removing, each "in-place" or "refit".
    """
    X, y = np.array(X, dtype=np.float64), np.asarray(y)
    X_test, y_test = np.array(X_test, dtype=np.float64), np.asarray(y_test)
    _check(share, n_features, X.shape[1])
    wanted = np.unique(y)[0] if target is None else target
    if wanted not in y:
        raise ValueError(f"target is {target!r}, which is not a class of y. Pass a class of y.")
    trigger = _trigger(X, X_test, n_features)
    poisoned = check_random_state(random_state).permutation(len(y)) < round(share * len(y))
    if not poisoned.any():
        raise ValueError(
            f"share is {share}, which selects none of {len(y)} rows. Increase it, or pass more "
            "rows."
        )
    X_clean, y_clean = X[~poisoned], y[~poisoned]
    X_bad, y_bad = _with_trigger(X[poisoned], trigger), np.full(poisoned.sum(), wanted)
    X_attack = _with_trigger(X_test, trigger)

    def evaluate(model: GraftBoostClassifier) -> dict[str, float]:
        return {
            "clean": float(np.mean(model.predict(X_test) == y_test)),
            "attack": float(np.mean(model.predict(X_attack) == wanted)),
        }

    ids = np.arange(len(y))
    clean = clone(estimator).fit(X_clean, y_clean, row_ids=ids[: len(y_clean)])
    both = clone(estimator).fit(
        np.concatenate([X_clean, X_bad]), np.concatenate([y_clean, y_bad]), row_ids=ids
    )
    added = copy.deepcopy(clean)
    reports = [added.add(X_bad, y_bad, row_ids=ids[len(y_clean) :])]
    figures = {STAGES[0]: evaluate(clean), STAGES[1]: evaluate(both), STAGES[2]: evaluate(added)}
    figures["untouched"] = figures[STAGES[2]]
    reports.append(added.remove(ids[len(y_clean) :]))
    figures[STAGES[3]] = evaluate(added)
    return _result(figures, int(poisoned.sum()), [report.strategy for report in reports])


def _check(share: float, n_features: int, present: int) -> None:
    if not 0 < share < 1:
        raise ValueError(
            f"share is {share}, but must be between 0 and 1, because some rows get the trigger and "
            "some do not. Pass a fraction such as 0.05."
        )
    if not 1 <= n_features <= present:
        raise ValueError(
            f"n_features is {n_features}, but X has {present} features. Pass 1 to {present}."
        )


def _trigger(X: NDArray[Any], X_test: NDArray[Any], n_features: int) -> NDArray[np.float64]:
    """Return the largest value of each of the first features."""
    highest = np.nanmax(np.concatenate([X[:, :n_features], X_test[:, :n_features]]), axis=0)
    found: NDArray[np.float64] = highest
    return found


def _with_trigger(X: NDArray[Any], trigger: NDArray[np.float64]) -> NDArray[Any]:
    changed = X.copy()
    changed[:, : len(trigger)] = trigger
    return changed


def _result(figures: dict[str, dict[str, float]], n_rows: int, strategies: list[str]) -> Audit:
    order = (*STAGES[:3], "untouched", STAGES[3])
    how = {STAGES[2]: strategies[0], STAGES[3]: strategies[1]}
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            percent(figures[name]["clean"]),
            percent(figures[name]["attack"]),
            how.get(name),
        )
        for name in order
    ]
    return Audit(
        "backdoor",
        f"A backdoor of {n_rows:,} rows",
        ("model", "clean accuracy", "attack success", "update"),
        tuple(rows),
        _summary(figures, strategies[1]),
        {**figures, "rows": n_rows, "strategies": strategies},
        Chart(
            "bars",
            list(STAGES),
            {
                "clean accuracy": [100 * figures[name]["clean"] for name in STAGES],
                "attack success": [100 * figures[name]["attack"] for name in STAGES],
            },
            y_label="per cent",
        ),
    )


def _summary(figures: dict[str, dict[str, float]], removed_by: str) -> str:
    clean, added, removed = (figures[STAGES[i]] for i in (0, 2, 3))
    text = (
        f"After the rows of the backdoor are added, the attack succeeds on "
        f"{percent(added['attack'])} of the test rows. After they are removed, it succeeds on "
        f"{percent(removed['attack'])}. A model trained without them predicts the target label for "
        f"{percent(clean['attack'])} of these rows."
    )
    if removed_by == "refit":
        text += (
            " The removal was a refit, so this result holds by definition. Fewer rows are removed "
            "in place."
        )
    return text
