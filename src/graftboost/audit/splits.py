"""The effect of changed rows on splits: their new ranks, and whether these were predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost.audit.copies import booked_only
from graftboost.audit.result import Audit, Cell, Chart, percent
from graftboost.estimators.inspection import split_ranks

if TYPE_CHECKING:
    from graftboost.estimators.base_estimator import GraftBoost

# Lower bounds of the groups of ranks; rank 0 is the best candidate.
RANKS = (0, 1, 2, 5, 10, 50)
VOID = "too few rows in a child"


def split_shift(
    model: GraftBoost,
    row_ids: ArrayLike | slice | None = None,
    *,
    X: Any = None,
    y: ArrayLike | None = None,
) -> Audit:
    """Measure the ranks of a model's splits among their candidates after rows change.

    The rows are booked in a copy, and no node is regrown. The rank of a split is the number of
    candidates with a larger gain: 0 if it is still the best. A split may also become invalid,
    because a child has too few rows.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        The model.
    row_ids : int, array-like of int or bool, or slice, default=None
        Rows to remove, as for `remove`.
    X, y : array-like, default=None
        Rows to add.

    Returns
    -------
    Audit
        Its ``figures`` contain "share_best" (splits that are still the best), "shares" by rank,
        "mean_rank", and for each iteration "mean_by_iteration" and "error_by_iteration", its
        standard error. Means exclude splits with too few rows in a child.
    """
    ids, what, _ = _change(model, row_ids, X, y)
    splits = split_ranks(booked_only(model, ids, X, y))
    void = splits.gain == -np.inf
    ranks = splits.n_better
    iterations = splits.tree // model._engine_model.trees_per_iteration
    means, spread = _by_iteration(
        iterations[~void], ranks[~void].astype(np.float64), model._engine_model.n_iterations
    )
    shares = {**_shares(ranks, ~void), VOID: _mean(void)}
    rows: list[tuple[Cell, ...]] = [(name, percent(share)) for name, share in shares.items()]
    best = _mean((ranks == 0) & ~void)
    return Audit(
        "split_shift",
        f"Rank of each split after the change ({len(ranks):,} splits, {what})",
        ("rank", "splits"),
        tuple(rows),
        f"{percent(best)} of the splits are still the best of their nodes. The others have "
        f"{_mean(ranks[(ranks > 0) & ~void]):.1f} better candidates on average, or too few rows in "
        f"a child ({percent(_mean(void))} of all splits).",
        {
            "share_best": best,
            "mean_rank": _mean(ranks[~void]),
            "shares": shares,
            "mean_by_iteration": means,
            "error_by_iteration": spread,
        },
        Chart(
            "lines",
            list(range(1, len(means) + 1)),
            {"mean rank": means},
            x_label="iteration",
            y_label="better candidates",
            bands={
                "mean rank": (
                    [m - s for m, s in zip(means, spread, strict=True)],
                    [m + s for m, s in zip(means, spread, strict=True)],
                )
            },
        ),
    )


def _change(
    model: GraftBoost, row_ids: ArrayLike | slice | None, X: Any, y: ArrayLike | None
) -> tuple[NDArray[np.int64] | None, str, float]:
    """Return the removed ids, a description of the change, and the fraction of rows changed."""
    ids = None if row_ids is None else model._ids_to_remove(row_ids, "row_ids")
    n_out, n_in = 0 if ids is None else len(ids), 0 if y is None else np.size(np.asarray(y))
    if not n_out + n_in:
        raise ValueError(
            "There is no change to audit: row_ids selects no row, and X and y are not given. "
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
            f"The change ({' and '.join(words)}) is at least as large as the model, which holds "
            f"{model.n_rows_:,} rows. Change fewer rows."
        )
    return ids, " and ".join(words), share


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _shares(ranks: NDArray[np.int64], counted: NDArray[np.bool_]) -> dict[str, float]:
    shares = {}
    for first, after in zip(RANKS, (*RANKS[1:], None), strict=True):
        inside = counted & (ranks >= first)
        if after is None:
            name = f"{first} or more"
        else:
            inside &= ranks < after
            name = "0 (the best)" if first == 0 else f"{first}"
            name += f" to {after - 1}" if after > first + 1 else ""
        shares[name] = _mean(inside)
    return shares


def _by_iteration(
    iterations: NDArray[np.int64], values: NDArray[np.float64], n_iterations: int
) -> tuple[list[float], list[float]]:
    """Return means and their standard errors; 0 for iterations without values."""
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
    """Compare the paper's two conditions for robust splits with the effect of an update.

    *Distance Robust*: the distance in rows to the nearest other candidate of the feature is larger
    than lambda * gain / (score of the left child / its rows + score of the right child / its rows),
    where lambda is the fraction of rows that change. *Robustness Split*: the gain is more than
    1 / (1 - lambda) times the gain of any other candidate. The paper restricts this to the same
    feature in one place and not in another, so both variants are included. All conditions predict
    that the split stays the best.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        The model. Splits that are not the best of their nodes before the change are ignored.
    row_ids : int, array-like of int or bool, or slice, default=None
        Rows to remove, as for `remove`.
    X, y : array-like, default=None
        Rows to add.

    Returns
    -------
    Audit
        Its ``figures`` contain, for each condition, the fraction of splits that are robust
        ("robust"), the fraction of these that stay the best ("kept_if_robust"), and the fraction of
        the others that do ("kept_if_not"). "by_another_feature" is the fraction of overtaken splits
        that are overtaken by a candidate of another feature.
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
        f"Predicted robustness of {int(best.sum()):,} splits ({what})",
        ("condition", "robust", "stay the best if robust", "stay the best if not"),
        tuple(rows),
        _summary(figures, _share(by_another[overtaken])),
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
                "robust": [_height(f["kept_if_robust"]) for f in figures.values()],
                "not robust": [_height(f["kept_if_not"]) for f in figures.values()],
            },
            y_label="per cent that stay the best",
        ),
    )


def _height(share: float | None) -> float:
    return float("nan") if share is None else 100 * share


def _share(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None


def _summary(figures: dict[str, dict[str, float | None]], by_another: float | None) -> str:
    words = []
    for name, found in figures.items():
        stayed, others = found["kept_if_robust"], found["kept_if_not"]
        if stayed is None:
            continue
        if others is None:
            words.append(
                f"All splits are robust according to {name}; {percent(stayed)} stay the best."
            )
        else:
            words.append(
                f"Of the splits that are robust according to {name}, {percent(stayed)} stay the "
                f"best; of the others, {percent(others)}."
            )
    if by_another is not None:
        words.append(
            f"Of the overtaken splits, {percent(by_another)} are overtaken by a candidate of "
            "another feature, which the first two conditions do not consider."
        )
    return " ".join(words)
