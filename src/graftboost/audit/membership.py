"""An attack that guesses from predictions which rows a model was trained on."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from graftboost.audit.copies import trained_again
from graftboost.audit.result import Audit, Cell, Chart, percent

if TYPE_CHECKING:
    from graftboost.estimators import GraftBoostClassifier

STAGES = ("before", "removed", "trained without", "added back")
FEWEST_ROWS = 20  # from which chance can be told apart
GROUPS = ("others trained on", "rows in question", "never seen")


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
    """Attack a model before rows are removed, after, and after they are added again.

    Half of the rows are trained on, and a share of them are the rows in question. The attacker is
    trained on the class probabilities that the model gives to half of its rows and to half of those
    that it never saw, and then judges the others. Rows that were forgotten should be judged like
    those never seen, as they are by a model that was trained without them; a model that was left
    alone judges as before.

    Parameters
    ----------
    estimator : GraftBoostClassifier
        Settings of the model under attack. One that is not overfitted gives nothing away.
    X, y : array-like
        Rows and their classes; they are split up anew for each repeat.
    share : float, default=0.001
        Share of all rows that are the rows in question, at least one.
    attacker : GraftBoostClassifier, default=None
        The attack model; by default a small one.
    n_repeats : int, default=1
        How often, each time with other rows in question. All judgements are pooled.
    random_state : int, RandomState or None, default=0
        How rows are split up.

    Returns
    -------
    Audit
        Its ``figures`` have, for each stage, the share of each group of rows that the attack takes
        for rows trained on; and how many "rows" were in question and how many of the "repeats" had
        "refits" for a removal.
    """
    X, y = np.asarray(X), np.asarray(y)
    if not 0 < share < 0.5:
        raise ValueError(
            f"share is {share}, but the rows in question are a part of the half that is trained "
            "on. Pass more than 0 and less than 0.5."
        )
    if n_repeats < 1:
        raise ValueError(
            f"n_repeats is {n_repeats}, but there must be one at least. Pass 1 or more."
        )
    random = check_random_state(random_state)
    judged: dict[str, dict[str, list[NDArray[np.bool_]]]] = {
        stage: {group: [] for group in GROUPS} for stage in STAGES
    }
    n_asked = max(1, round(share * len(y)))
    refits = 0
    for _ in range(n_repeats):
        order = random.permutation(len(y))
        half = len(y) // 2
        asked, others, unseen = order[:n_asked], order[n_asked:half], order[half:]
        refits += _repeat(estimator, attacker, X, y, asked, others, unseen, judged)
    pooled = {
        stage: {group: np.concatenate(found) for group, found in groups.items()}
        for stage, groups in judged.items()
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
    judged: dict[str, dict[str, list[NDArray[np.bool_]]]],
) -> bool:
    """Add one repeat's judgements; return whether the removal came to a refit."""
    trained_on = np.concatenate([others, asked])
    model = clone(estimator).fit(X[trained_on], y[trained_on], row_ids=trained_on)
    known, rest = np.array_split(others, 2)
    foreign, stranger = np.array_split(unseen, 2)
    spy = _new_attacker(attacker).fit(
        model.predict_proba(np.concatenate([X[known], X[foreign]])),
        np.repeat([True, False], [len(known), len(foreign)]),
    )

    def look(stage: str, model: GraftBoostClassifier) -> None:
        for group, rows in zip(GROUPS, (rest, asked, stranger), strict=True):
            judged[stage][group].append(spy.predict(model.predict_proba(X[rows])))

    look("before", model)
    updated = copy.deepcopy(model)
    removed = updated.remove(asked)
    look("removed", updated)
    look("trained without", trained_again(updated))
    updated.add(X[asked], y[asked], row_ids=asked)
    look("added back", updated)
    return bool(removed.strategy == "refit")


def _new_attacker(attacker: GraftBoostClassifier | None) -> GraftBoostClassifier:
    if attacker is not None:
        found: GraftBoostClassifier = clone(attacker)
        return found
    from graftboost.estimators import GraftBoostClassifier as Attacker

    return Attacker(n_estimators=50, max_leaf_nodes=16, updatable=False)


def _result(judged: dict[str, dict[str, NDArray[np.bool_]]], refits: int, n_repeats: int) -> Audit:
    figures = {
        stage: {group: float(found.mean()) for group, found in groups.items()}
        for stage, groups in judged.items()
    }
    asked = {stage: groups[GROUPS[1]] for stage, groups in judged.items()}
    n_asked = len(asked["before"])
    rows: list[tuple[Cell, ...]] = [
        (stage, *(percent(figures[stage][group]) for group in GROUPS)) for stage in STAGES
    ]
    return Audit(
        "membership_attack",
        f"Rows that an attack takes for rows trained on; {n_asked:,} in question",
        ("model", *GROUPS),
        tuple(rows),
        _in_words(asked, figures["before"]) + _about_refits(refits, n_repeats),
        {**figures, "rows": n_asked, "refits": refits, "repeats": n_repeats},
        Chart(
            "bars",
            list(STAGES),
            {group: [100 * figures[stage][group] for stage in STAGES] for group in GROUPS},
            y_label="per cent taken for trained on",
        ),
    )


def _about_refits(refits: int, n_repeats: int) -> str:
    if not refits:
        return ""
    return (
        f" Of {n_repeats} removals {refits} came to a refit, which forgets by definition; with "
        "fewer rows they are done in place."
    )


def _in_words(asked: dict[str, NDArray[np.bool_]], before: dict[str, float]) -> str:
    told = before["others trained on"] - before["never seen"]
    if told < 0.05:
        return (
            "The attack tells rows trained on from others hardly better than chance does, so it "
            "says nothing about the removal. An overfitted model would give more away."
        )
    shares = {stage: percent(float(found.mean())) for stage, found in asked.items()}
    text = (
        f"Of the rows in question {shares['before']} were taken for rows trained on, "
        f"{shares['removed']} after their removal, {shares['trained without']} by a model trained "
        f"without them, and {shares['added back']} once added back."
    )
    if len(asked["before"]) < FEWEST_ROWS:
        return f"{text} From so few rows nothing can be told; ask for more repeats."
    # The same rows are judged by both, so only those count that are judged differently.
    more = int(np.sum(asked["removed"] & ~asked["trained without"]))
    fewer = int(np.sum(~asked["removed"] & asked["trained without"]))
    if abs(more - fewer) <= 2 * np.sqrt(more + fewer):
        return f"{text} Removing them and training without them differ by no more than chance."
    which = "more" if more > fewer else "less"
    return f"{text} So removed rows are recognised {which} often than rows never trained on."
