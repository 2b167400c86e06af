"""What rows that come or go do to splits: how far they fall, and whether that was foreseen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost.audit.copies import booked_only
from graftboost.audit.result import Audit, Cell, Chart, percent
from graftboost.estimators.inspection import split_ranks

if TYPE_CHECKING:
    from graftboost.estimators.base_estimator import GraftBoost

# Places that a split falls to: 0 is still the best. Open at the end.
PLACES = (0, 1, 2, 5, 10, 50)
VOID = "too few rows on a side"


def split_shift(
    model: GraftBoost,
    row_ids: ArrayLike | slice | None = None,
    *,
    X: Any = None,
    y: ArrayLike | None = None,
) -> Audit:
    """Measure how far the splits of a model fall among their candidates when rows come or go.

    The rows are booked in all sums of a copy, and no node is retrained. A split that was the
    best of its node may then have better ones before it, as many as its place says, or leave a side
    too few rows to be allowed at all.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        The model as it is.
    row_ids : int, array-like of int or bool, or slice, default=None
        Rows to remove, as `remove` takes them.
    X, y : array-like, default=None
        Rows to add.

    Returns
    -------
    Audit
        Its ``figures`` have "share_best" (splits that stay the best), "shares" by place,
        "mean_place", and for each iteration "mean_by_iteration" and "error_by_iteration", the
        standard error of it. Means leave out splits with too few rows on a side.
    """
    ids, what, _ = _change(model, row_ids, X, y)
    places = split_ranks(booked_only(model, ids, X, y))
    void = places.gain == -np.inf
    fallen = places.n_better
    iterations = places.tree // model._forest.trees_per_iteration
    means, spread = _by_iteration(
        iterations[~void], fallen[~void].astype(np.float64), model._forest.n_iterations
    )
    shares = {**_shares(fallen, ~void), VOID: _mean(void)}
    rows: list[tuple[Cell, ...]] = [(name, percent(share)) for name, share in shares.items()]
    best = _mean((fallen == 0) & ~void)
    return Audit(
        "split_shift",
        f"Places that {len(fallen):,} splits fall to with {what}",
        ("place", "splits"),
        tuple(rows),
        f"{percent(best)} of the splits stay the best of their nodes; the others have "
        f"{_mean(fallen[(fallen > 0) & ~void]):.1f} better candidates before them on average, or "
        f"leave too few rows on a side ({percent(_mean(void))} of all).",
        {
            "share_best": best,
            "mean_place": _mean(fallen[~void]),
            "shares": shares,
            "mean_by_iteration": means,
            "error_by_iteration": spread,
        },
        Chart(
            "lines",
            list(range(1, len(means) + 1)),
            {"mean place": means},
            x_label="iteration",
            y_label="better candidates",
            bands={
                "mean place": (
                    [m - s for m, s in zip(means, spread, strict=True)],
                    [m + s for m, s in zip(means, spread, strict=True)],
                )
            },
        ),
    )


def _change(
    model: GraftBoost, row_ids: ArrayLike | slice | None, X: Any, y: ArrayLike | None
) -> tuple[NDArray[np.int64] | None, str, float]:
    """Return the ids that go, what changes in words, and the share of the rows that it is."""
    ids = None if row_ids is None else model._ids_to_remove(row_ids, "row_ids")
    n_out, n_in = 0 if ids is None else len(ids), 0 if y is None else np.size(np.asarray(y))
    if not n_out + n_in:
        raise ValueError(
            "There is no change to look at: row_ids names no row, and no X and y are given. "
            "Pass ids of rows to remove, or rows to add."
        )
    words = [
        f"{n:,} row{'s' if n > 1 else ''} {done}"
        for n, done in ((n_out, "removed"), (n_in, "added"))
        if n
    ]
    share = (n_out + n_in) / model.n_rows_
    if share >= 1:
        raise ValueError(
            f"{' and '.join(words)} is as much as the model holds ({model.n_rows_:,} rows) or "
            "more: next to nothing of it would be left to look at. Change fewer rows."
        )
    return ids, " and ".join(words), share


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _shares(fallen: NDArray[np.int64], counted: NDArray[np.bool_]) -> dict[str, float]:
    shares = {}
    for first, after in zip(PLACES, (*PLACES[1:], None), strict=True):
        inside = counted & (fallen >= first)
        if after is None:
            name = f"{first} or more"
        else:
            inside &= fallen < after
            name = "0 (the best)" if first == 0 else f"{first}"
            name += f" to {after - 1}" if after > first + 1 else ""
        shares[name] = _mean(inside)
    return shares


def _by_iteration(
    iterations: NDArray[np.int64], values: NDArray[np.float64], n_iterations: int
) -> tuple[list[float], list[float]]:
    """Return means and their standard errors; 0 where there is nothing to take them of."""
    means, errors = [], []
    for m in range(n_iterations):
        own = values[iterations == m]
        means.append(_mean(own))
        errors.append(float(own.std(ddof=1) / np.sqrt(len(own))) if len(own) > 1 else 0.0)
    return means, errors


def robustness(
    model: GraftBoost,
    row_ids: ArrayLike | slice | None = None,
    *,
    X: Any = None,
    y: ArrayLike | None = None,
) -> Audit:
    """Hold the paper's two conditions for a robust split against what an update does.

    *Distance Robust*: the nearest other candidate of the feature is further away, in rows, than
    lambda * gain / (score of the left side / its rows + score of the right side / its rows), with
    lambda the share of rows that change. *Robustness Split*: the gain is more than 1 / (1 - lambda)
    times that of any other candidate; the paper says once "of the same feature" and once not, so
    both are looked at. All foresee that the split stays the best.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        The model as it is; splits that are not the best of their nodes to begin with are left out.
    row_ids : int, array-like of int or bool, or slice, default=None
        Rows to remove, as `remove` takes them.
    X, y : array-like, default=None
        Rows to add.

    Returns
    -------
    Audit
        Its ``figures`` have, for each condition, how many splits it calls robust ("robust"), how
        many of these stay the best ("kept_if_robust") and how many of the others do
        ("kept_if_not"); and "by_another_feature", the share of those overtaken that are overtaken
        by a candidate of another feature.
    """
    ids, what, share = _change(model, row_ids, X, y)
    then, now = split_ranks(model), split_ranks(booked_only(model, ids, X, y))
    best = then.n_better == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = share * then.gain
        distance /= then.left_score / then.left_rows + then.right_score / then.right_rows
    of_any = np.maximum(then.next_gain, then.other_gain)
    conditions = {
        "Distance Robust": (then.next_rows > distance) | (then.next_gain == -np.inf),
        "Robustness Split": then.gain > then.next_gain / (1 - share),
        "Robustness Split, any feature": then.gain > of_any / (1 - share),
    }
    kept = (now.n_better == 0) & (now.gain > -np.inf)
    overtaken = best & ~kept
    by_another = now.other_gain > np.maximum(now.gain, now.next_gain)
    figures = {
        name: {
            "robust": float(np.mean(robust[best])) if best.any() else 0.0,
            "kept_if_robust": _share(kept[best & robust]),
            "kept_if_not": _share(kept[best & ~robust]),
        }
        for name, robust in conditions.items()
    }
    rows: list[tuple[Cell, ...]] = [
        (name, *("-" if value is None else percent(value) for value in found.values()))
        for name, found in figures.items()
    ]
    return Audit(
        "robustness",
        f"What was foreseen of {int(best.sum()):,} splits with {what}",
        ("condition", "foreseen to stay", "of these did stay", "of the others did stay"),
        tuple(rows),
        _in_words(figures, _share(by_another[overtaken])),
        {
            **figures,
            "splits": int(best.sum()),
            "kept": _share(kept[best]),
            "by_another_feature": _share(by_another[overtaken]),
        },
        Chart(
            "bars",
            [name.replace(", ", ",\n") for name in figures],
            {
                "foreseen to stay": [_height(f["kept_if_robust"]) for f in figures.values()],
                "others": [_height(f["kept_if_not"]) for f in figures.values()],
            },
            y_label="per cent that did stay",
        ),
    )


def _height(share: float | None) -> float:
    return float("nan") if share is None else 100 * share


def _share(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None


def _in_words(figures: dict[str, dict[str, float | None]], by_another: float | None) -> str:
    words = []
    for name, found in figures.items():
        stayed, others = found["kept_if_robust"], found["kept_if_not"]
        if stayed is None:
            continue
        if others is None:
            words.append(f"{name} calls every split robust; {percent(stayed)} stayed the best.")
        else:
            words.append(
                f"Of the splits that {name} calls robust {percent(stayed)} stayed the best, of the "
                f"others {percent(others)}."
            )
    if by_another is not None:
        words.append(
            f"Of the splits that were overtaken {percent(by_another)} were by a candidate of "
            "another feature, which the first two conditions do not look at."
        )
    return " ".join(words)
