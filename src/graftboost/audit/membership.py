"""A membership attack: infer from predictions which rows a model was trained on."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from graftboost.audit.copies import refitted
from graftboost.audit.result import Audit, Cell, Chart, percent

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier

STAGES = ("before", "removed", "trained without", "added back")
FEWEST_ROWS = 20  # fewer rows do not allow a conclusion
GROUPS = ("other training rows", "removed rows", "unseen rows")


def membership_attack(
    estimator: GraftBoostClassifier,
    X: ArrayLike,
    y: ArrayLike,
    *,
    share: float = 0.001,
    attacker: GraftBoostClassifier | None = None,
    n_repeats: int = 1,
    random_state: int | np.random.RandomState | None = 0,
) -> Audit:
    """Attack a model before rows are removed, afterwards, and after they are added again.

    The model is trained on half of the rows, and a fraction of these is removed. The attacker is
    trained on the class probabilities that the model predicts for half of its training rows and
    half of the unseen rows, and then classifies the others. Forgotten rows should be flagged as
    training rows as rarely as unseen rows, as for a model trained without them. For the untouched
    model nothing changes.

    Parameters
    ----------
    estimator : GraftBoostClassifier
        The parameters of the attacked model. The attack succeeds only on overfitted models.
    X, y : array-like
        Rows and their classes; each repeat splits them differently.
    share : float, default=0.001
        Fraction of all rows that is removed, at least one row.
    attacker : GraftBoostClassifier, default=None
        The attack model. Default: a small one.
    n_repeats : int, default=1
        Number of repeats, each with other removed rows. All results are pooled.
    random_state : int, RandomState or None, default=0
        Determines how rows are split.

    Returns
    -------
    Audit
        Its ``figures`` contain, for each stage, the fraction of each group of rows that the attack
        flags as training rows, the number of removed "rows", the number of "repeats", and the
        number of removals that were "refits".
    """
    X, y = np.asarray(X), np.asarray(y)
    if not 0 < share < 0.5:
        raise ValueError(
            f"share is {share}, but must be between 0 and 0.5, because the model is trained on "
            "half of the rows. Pass a fraction such as 0.001."
        )
    if n_repeats < 1:
        raise ValueError(
            f"n_repeats is {n_repeats}, but must be at least 1. Pass a positive integer."
        )
    random = check_random_state(random_state)
    flagged: dict[str, dict[str, list[NDArray[np.bool_]]]] = {
        stage: {group: [] for group in GROUPS} for stage in STAGES
    }
    n_asked = max(1, round(share * len(y)))
    refits = 0
    for _ in range(n_repeats):
        order = random.permutation(len(y))
        half = len(y) // 2
        asked, others, unseen = order[:n_asked], order[n_asked:half], order[half:]
        refits += _repeat(estimator, attacker, X, y, asked, others, unseen, flagged)
    pooled = {
        stage: {group: np.concatenate(found) for group, found in groups.items()}
        for stage, groups in flagged.items()
    }
    return _result(pooled, refits, n_repeats)


def _repeat(
    estimator: GraftBoostClassifier,
    attacker: GraftBoostClassifier | None,
    X: NDArray[np.generic],
    y: NDArray[np.generic],
    asked: NDArray[np.int64],
    others: NDArray[np.int64],
    unseen: NDArray[np.int64],
    flagged: dict[str, dict[str, list[NDArray[np.bool_]]]],
) -> bool:
    """Add the results of one repeat; return whether the removal was a refit."""
    trained_on = np.concatenate([others, asked])
    model = clone(estimator).fit(X[trained_on], y[trained_on], row_ids=trained_on)
    known, rest = np.array_split(others, 2)
    foreign, stranger = np.array_split(unseen, 2)
    spy = _new_attacker(attacker).fit(
        model.predict_proba(np.concatenate([X[known], X[foreign]])),
        np.repeat([True, False], [len(known), len(foreign)]),
    )

    def attack(stage: str, model: GraftBoostClassifier) -> None:
        for group, rows in zip(GROUPS, (rest, asked, stranger), strict=True):
            flagged[stage][group].append(spy.predict(model.predict_proba(X[rows])))

    attack("before", model)
    updated = copy.deepcopy(model)
    removed = updated.remove(asked)
    attack("removed", updated)
    attack("trained without", refitted(updated))
    updated.add(X[asked], y[asked], row_ids=asked)
    attack("added back", updated)
    return bool(removed.strategy == "refit")


def _new_attacker(attacker: GraftBoostClassifier | None) -> GraftBoostClassifier:
    if attacker is not None:
        found: GraftBoostClassifier = clone(attacker)
        return found
    from graftboost.estimators import GraftBoostClassifier as Attacker

    return Attacker(n_estimators=50, max_leaf_nodes=16, updatable=False)


def _result(flagged: dict[str, dict[str, NDArray[np.bool_]]], refits: int, n_repeats: int) -> Audit:
    figures = {
        stage: {group: float(found.mean()) for group, found in groups.items()}
        for stage, groups in flagged.items()
    }
    asked = {stage: groups[GROUPS[1]] for stage, groups in flagged.items()}
    n_asked = len(asked["before"])
    rows: list[tuple[Cell, ...]] = [
        (stage, *(percent(figures[stage][group]) for group in GROUPS)) for stage in STAGES
    ]
    return Audit(
        "membership_attack",
        f"Membership attack: share flagged as training rows ({n_asked:,} removed)",
        ("model", *GROUPS),
        tuple(rows),
        _summary(asked, figures["before"]) + _about_refits(refits, n_repeats),
        {**figures, "rows": n_asked, "refits": refits, "repeats": n_repeats},
        Chart(
            "bars",
            list(STAGES),
            {group: [100 * figures[stage][group] for stage in STAGES] for group in GROUPS},
            y_label="per cent flagged as training rows",
        ),
    )


def _about_refits(refits: int, n_repeats: int) -> str:
    if not refits:
        return ""
    return (
        f" {refits} of {n_repeats} removals were refits, which forget by definition. Fewer rows "
        "are removed in place."
    )


def _summary(asked: dict[str, NDArray[np.bool_]], before: dict[str, float]) -> str:
    advantage = before[GROUPS[0]] - before[GROUPS[2]]
    if advantage < 0.05:
        return (
            "The attack is hardly better than chance, so it does not measure the removal. Use a "
            "model that overfits more."
        )
    shares = {stage: percent(float(found.mean())) for stage, found in asked.items()}
    text = (
        f"Of the removed rows, {shares['before']} were flagged as training rows before the "
        f"removal, {shares['removed']} after it, {shares['trained without']} by a model trained "
        f"without them, and {shares['added back']} after they were added again."
    )
    if len(asked["before"]) < FEWEST_ROWS:
        return f"{text} These are too few rows for a conclusion; increase n_repeats."
    # Both models predict the same rows, so only rows with different results matter.
    more = int(np.sum(asked["removed"] & ~asked["trained without"]))
    fewer = int(np.sum(~asked["removed"] & asked["trained without"]))
    if abs(more - fewer) <= 2 * np.sqrt(more + fewer):
        return f"{text} The difference between removal and retraining is not significant."
    which = "more" if more > fewer else "less"
    return f"{text} Removed rows are flagged {which} often than with a retrain."
