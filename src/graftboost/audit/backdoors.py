"""A backdoor that is let in and taken out again, and whether the attack goes with its rows."""

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
    """Plant a backdoor by an update and take it out by another.

    A share of the training rows gets a trigger, its first features set to the greatest values that
    they have, and one and the same label. A model that learns it predicts that label wherever the
    trigger is.

    Parameters
    ----------
    estimator : GraftBoostClassifier
        Settings of the models; it is not fitted itself.
    X, y : array-like
        Rows to train on. X holds numbers.
    X_test, y_test : array-like
        Rows to test on. All of them get the trigger for the attack.
    share : float, default=0.05
        Share of the training rows that get the trigger; the others are the clean ones.
    n_features : int, default=5
        How many features the trigger sets, from the first on.
    target : label, default=None
        The label that the attack wants; the first class by default.
    random_state : int, RandomState or None, default=0
        Which rows get the trigger.

    Returns
    -------
    Audit
        Its ``figures`` have for each stage "clean" (accuracy on clean test rows) and "attack"
        (share of test rows with the trigger that get the wanted label); "left alone" is the model
        from which nothing was removed. "strategies" says whether adding and removing were done in
        place or came to a refit.
    """
    X, y = np.array(X, dtype=np.float64), np.asarray(y)
    X_test, y_test = np.array(X_test, dtype=np.float64), np.asarray(y_test)
    _check(share, n_features, X.shape[1])
    wanted = np.unique(y)[0] if target is None else target
    if wanted not in y:
        raise ValueError(f"target is {target!r}, which is no class of y. Pass one of its classes.")
    trigger = _trigger(X, X_test, n_features)
    poisoned = check_random_state(random_state).permutation(len(y)) < round(share * len(y))
    if not poisoned.any():
        raise ValueError(f"share={share} of {len(y)} rows is no row. Raise it, or pass more rows.")
    X_clean, y_clean = X[~poisoned], y[~poisoned]
    X_bad, y_bad = _with_trigger(X[poisoned], trigger), np.full(poisoned.sum(), wanted)
    X_attack = _with_trigger(X_test, trigger)

    def judge(model: GraftBoostClassifier) -> dict[str, float]:
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
    figures = {STAGES[0]: judge(clean), STAGES[1]: judge(both), STAGES[2]: judge(added)}
    figures["left alone"] = figures[STAGES[2]]
    reports.append(added.remove(ids[len(y_clean) :]))
    figures[STAGES[3]] = judge(added)
    return _result(figures, int(poisoned.sum()), [report.strategy for report in reports])


def _check(share: float, n_features: int, present: int) -> None:
    if not 0 < share < 1:
        raise ValueError(
            f"share is {share}, but some rows must get the trigger and some must not. Pass more "
            "than 0 and less than 1."
        )
    if not 1 <= n_features <= present:
        raise ValueError(
            f"n_features is {n_features}, but X has {present} features. Pass 1 to {present}."
        )


def _trigger(X: NDArray[Any], X_test: NDArray[Any], n_features: int) -> NDArray[np.float64]:
    """Return the greatest value of each of the first features."""
    highest = np.nanmax(np.concatenate([X[:, :n_features], X_test[:, :n_features]]), axis=0)
    found: NDArray[np.float64] = highest
    return found


def _with_trigger(X: NDArray[Any], trigger: NDArray[np.float64]) -> NDArray[Any]:
    changed = X.copy()
    changed[:, : len(trigger)] = trigger
    return changed


def _result(figures: dict[str, dict[str, float]], n_rows: int, strategies: list[str]) -> Audit:
    order = (*STAGES[:3], "left alone", STAGES[3])
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
        ("model", "clean accuracy", "attack succeeds", "update"),
        tuple(rows),
        _in_words(figures, strategies[1]),
        {**figures, "rows": n_rows, "strategies": strategies},
        Chart(
            "bars",
            list(STAGES),
            {
                "clean accuracy": [100 * figures[name]["clean"] for name in STAGES],
                "attack succeeds": [100 * figures[name]["attack"] for name in STAGES],
            },
            y_label="per cent",
        ),
    )


def _in_words(figures: dict[str, dict[str, float]], removed_by: str) -> str:
    clean, added, removed = (figures[STAGES[i]] for i in (0, 2, 3))
    text = (
        f"With the backdoor's rows added the attack succeeds on {percent(added['attack'])} of the "
        f"test rows, and would go on to if nothing were done. With the rows removed it succeeds on "
        f"{percent(removed['attack'])}; a model that never saw them gives the label to "
        f"{percent(clean['attack'])} of these rows."
    )
    if removed_by == "refit":
        text += (
            " The removal came to a refit, so that is so by definition; fewer rows are removed in "
            "place."
        )
    return text
