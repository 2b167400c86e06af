"""Whether rows were forgotten, or learned: what an update did to their loss, beside a retrain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost.audit.copies import ids_in_one_only, trained_again, trained_without
from graftboost.audit.ratio import Ratio, ratio_of_sums
from graftboost.audit.result import Audit, Cell, Chart
from graftboost.estimators.inspection import HeldRows, held_rows, losses

if TYPE_CHECKING:
    from graftboost.estimators.base_estimator import GraftBoost


# From fewer rows no interval is given: resampling them says too little.
FEWEST_ROWS = 20
# From this share on, what is missing is not worth a word.
NEARLY_ALL = 0.8


def forgetting(
    before: GraftBoost,
    after: GraftBoost,
    row_ids: ArrayLike | slice | None = None,
    *,
    retrained: GraftBoost | None = None,
) -> Audit:
    """Measure how far a model has forgotten rows that were removed from it.

    Forgetting is what the update changed in the loss of the removed rows, of what training again
    without them changes: 0 is nothing forgotten, which is what a model left alone has by
    definition, and 1 is as if never seen.

    Parameters
    ----------
    before : GraftBoostClassifier or GraftBoostRegressor
        The model when it held the rows.
    after : GraftBoostClassifier or GraftBoostRegressor
        The model after their removal.
    row_ids : int, array-like of int or bool, or slice, default=None
        The removed rows, as `remove` takes them from `before`. Without, those that `before` holds
        and `after` does not.
    retrained : GraftBoostClassifier or GraftBoostRegressor, default=None
        A model trained without the rows, with the same bins. Without, a refit of what `before`
        holds but them.

    Returns
    -------
    Audit
        Its ``figures`` have "forgetting", "low" and "high" (a bootstrap interval over the rows, if
        they are 20 or more), and the mean losses "loss_before", "loss_after" and "loss_retrained".

    Examples
    --------
    >>> import copy
    >>> from graftboost import GraftBoostClassifier, audit
    >>> from sklearn.datasets import load_breast_cancer
    >>> model = GraftBoostClassifier(n_estimators=20).fit(*load_breast_cancer(return_X_y=True))
    >>> updated = copy.deepcopy(model)
    >>> report = updated.remove(slice(0, 20))
    >>> audit.forgetting(model, updated).figures["loss_retrained"] > 0
    True
    """
    ids = (
        ids_in_one_only(before, after)
        if row_ids is None
        else before._ids_to_remove(row_ids, "row_ids")
    )
    _check_any(ids, "before holds no row that after does not hold")
    rows = held_rows(before, ids)
    if retrained is None:
        retrained = trained_without(before, ids)
    return _measure("forgetting", "removed", rows, before, after, retrained)


def learning(
    before: GraftBoost,
    after: GraftBoost,
    row_ids: ArrayLike | slice | None = None,
    *,
    retrained: GraftBoost | None = None,
) -> Audit:
    """Measure how far a model has learned rows that were added to it.

    Learning is what the update changed in the loss of the added rows, of what training again with
    them changes: 0 is nothing learned, 1 is as if they had been there from the start.

    Parameters
    ----------
    before : GraftBoostClassifier or GraftBoostRegressor
        The model when it did not hold the rows.
    after : GraftBoostClassifier or GraftBoostRegressor
        The model after their addition.
    row_ids : int, array-like of int or bool, or slice, default=None
        The added rows, as `remove` would take them from `after` (or, if it does not hold them, from
        `retrained`). Without, those that it holds and `before` does not.
    retrained : GraftBoostClassifier or GraftBoostRegressor, default=None
        A model trained with the rows, with the same bins. Without, a refit of what `after` holds.

    Returns
    -------
    Audit
        Its ``figures`` have "learning", "low" and "high" (a bootstrap interval over the rows, if
        they are 20 or more), and the mean losses "loss_before", "loss_after" and "loss_retrained".
    """
    holder = after if retrained is None or len(ids_in_one_only(after, before)) else retrained
    ids = (
        ids_in_one_only(holder, before)
        if row_ids is None
        else holder._ids_to_remove(row_ids, "row_ids")
    )
    _check_any(ids, "after holds no row that before does not hold")
    rows = held_rows(holder, ids)
    if retrained is None:
        retrained = trained_again(after)
    return _measure("learning", "added", rows, before, after, retrained)


def _check_any(ids: NDArray[np.int64], problem: str) -> None:
    if not len(ids):
        raise ValueError(
            f"There are no rows to look at: {problem}. Pass the model before the update and a copy "
            "of it after, or name the rows with row_ids."
        )


def _measure(
    name: str,
    done: str,
    rows: HeldRows,
    before: GraftBoost,
    after: GraftBoost,
    retrained: GraftBoost,
) -> Audit:
    first, second, third = (losses(model, rows) for model in (before, after, retrained))
    ratio = ratio_of_sums(second - first, third - first)
    if len(rows) < FEWEST_ROWS:
        ratio = Ratio(ratio.value)
    whole = _mean_interval(third - first)
    table: tuple[tuple[Cell, ...], ...] = (
        ("left alone", float(first.mean()), "0"),
        ("updated", float(second.mean()), str(ratio)),
        ("trained again", float(third.mean()), "1"),
    )
    return Audit(
        name,
        f"{name.capitalize()} of {_rows(len(rows))} {done}",
        ("model", "loss of the rows", name),
        table,
        _in_words(name, ratio, whole),
        {
            name: ratio.value,
            "low": ratio.low,
            "high": ratio.high,
            "rows": len(rows),
            "loss_before": float(first.mean()),
            "loss_after": float(second.mean()),
            "loss_retrained": float(third.mean()),
        },
        Chart(
            "bars",
            ["left alone", "updated", "trained again"],
            {f"loss of the {done} rows": [float(x.mean()) for x in (first, second, third)]},
            y_label=f"mean loss of the {done} rows",
        ),
    )


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def _mean_interval(changes: NDArray[np.float64]) -> tuple[float, float]:
    if len(changes) < 2:
        return float(changes[0]), float(changes[0])
    rng = np.random.default_rng(0)
    means = [rng.choice(changes, len(changes)).mean() for _ in range(500)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _in_words(name: str, ratio: Ratio, whole: tuple[float, float]) -> str:
    verb, without = {"forgetting": ("forgotten", "without"), "learning": ("learned", "with")}[name]
    if ratio.value is None or whole[0] <= 0 <= whole[1]:
        return (
            f"Whether a model trained {without} these rows judges them otherwise cannot be told "
            f"from them: their mean loss changes by {whole[0]:+.2g} to {whole[1]:+.2g}. So the "
            "ratio says little."
        )
    if ratio.low is None or ratio.high is None:
        return (
            f"The update has {verb} {ratio.value:.0%} of what training again would have; from so "
            "few rows no interval can be given."
        )
    measured = (
        f"The update has {verb} {ratio.value:.0%} of what training again would have "
        f"({ratio.low:.0%} to {ratio.high:.0%})"
    )
    if ratio.low >= NEARLY_ALL:
        return f"{measured}: as good as all, or more." if ratio.value > 1 else f"{measured}."
    if ratio.high >= 1:
        return (
            f"{measured}. That may be all of it, or as little as {max(ratio.low, 0):.0%}: from "
            "these rows it cannot be told."
        )
    return (
        f"{measured}; the rest is not. A lower tolerance leaves less of a difference, refit() none."
    )
