"""Forgetting and learning: the change in loss of changed rows, relative to a retrain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost.audit.copies import ids_in_one_only, refitted, refitted_without
from graftboost.audit.ratio import Ratio, ratio_of_sums
from graftboost.audit.result import Audit, Cell, Chart
from graftboost.estimators.inspection import HeldRows, held_rows, losses

if TYPE_CHECKING:
    from graftboost.estimators.base_estimator import GraftBoost


# No interval is given for fewer rows, because resampling them is not meaningful.
FEWEST_ROWS = 20
# If the interval begins above this, the missing part is not mentioned.
NEARLY_ALL = 0.8


def forgetting(
    before: GraftBoost,
    after: GraftBoost,
    row_ids: ArrayLike | slice | None = None,
    *,
    retrained: GraftBoost | None = None,
) -> Audit:
    """Measure to what extent a model has forgotten removed rows.

    Forgetting is the change in loss of the removed rows that the update caused, divided by the
    change that a retrain without them causes. 0 means that nothing was forgotten, as in the
    untouched model; 1 means the same as a retrain.

    Parameters
    ----------
    before : GraftBoostClassifier or GraftBoostRegressor
        The model with the rows.
    after : GraftBoostClassifier or GraftBoostRegressor
        The model after their removal.
    row_ids : int, array-like of int or bool, or slice, default=None
        The removed rows, as for `before.remove`. Default: the rows that `before` holds and `after`
        does not.
    retrained : GraftBoostClassifier or GraftBoostRegressor, default=None
        A model trained without the rows, with the same bins. Default: a refit of `before` without
        them.

    Returns
    -------
    Audit
        Its ``figures`` contain "forgetting", "low" and "high" (a bootstrap interval over the rows,
        if there are at least 20), the mean losses "loss_before", "loss_after" and "loss_retrained",
        and "auc_before" and "auc_after": how well the losses of the rows tell the untouched and the
        updated model from a retrained one (0.5 means not at all).

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
    ids = _audited_ids(before, after, row_ids)
    _check_any(ids, "before holds no row that after does not hold")
    rows = held_rows(before, ids)
    if retrained is None:
        retrained = refitted_without(before, ids)
    return _measure("forgetting", "removed", rows, before, after, retrained)


def learning(
    before: GraftBoost,
    after: GraftBoost,
    row_ids: ArrayLike | slice | None = None,
    *,
    retrained: GraftBoost | None = None,
) -> Audit:
    """Measure to what extent a model has learned added rows.

    Learning is the change in loss of the added rows that the update caused, divided by the change
    that a retrain with them causes. 0 means that nothing was learned; 1 means the same as a
    retrain.

    Parameters
    ----------
    before : GraftBoostClassifier or GraftBoostRegressor
        The model without the rows.
    after : GraftBoostClassifier or GraftBoostRegressor
        The model with the rows.
    row_ids : int, array-like of int or bool, or slice, default=None
        The added rows, as for `after.remove` (or, if `after` does not hold them, as for
        `retrained.remove`). Default: the rows that it holds and `before` does not.
    retrained : GraftBoostClassifier or GraftBoostRegressor, default=None
        A model trained with the rows, with the same bins. Default: a refit of `after`.

    Returns
    -------
    Audit
        Its ``figures`` contain "learning", "low" and "high" (a bootstrap interval over the rows, if
        there are at least 20), the mean losses "loss_before", "loss_after" and "loss_retrained",
        and "auc_before" and "auc_after": how well the losses of the rows tell the untouched and the
        updated model from a retrained one (0.5 means not at all).
    """
    holder = after if retrained is None or len(ids_in_one_only(after, before)) else retrained
    ids = _audited_ids(holder, before, row_ids)
    _check_any(ids, "after holds no row that before does not hold")
    rows = held_rows(holder, ids)
    if retrained is None:
        retrained = refitted(after)
    return _measure("learning", "added", rows, before, after, retrained)


def _audited_ids(
    holder: GraftBoost, other: GraftBoost, row_ids: ArrayLike | slice | None
) -> NDArray[np.int64]:
    """Return the ids of the given rows of `holder`. Default: those that `other` does not hold."""
    if row_ids is None:
        return ids_in_one_only(holder, other)
    return holder._ids_to_remove(row_ids, "row_ids")


def _check_any(ids: NDArray[np.int64], problem: str) -> None:
    if not len(ids):
        raise ValueError(
            f"There are no rows to audit: {problem}. Pass the model before the update and a copy "
            "after it, or pass row_ids."
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
    untouched_auc, updated_auc = auc(first, third), auc(second, third)
    table: tuple[tuple[Cell, ...], ...] = (
        ("untouched", float(first.mean()), "0", f"{untouched_auc:.2f}"),
        ("updated", float(second.mean()), str(ratio), f"{updated_auc:.2f}"),
        ("retrained", float(third.mean()), "1", "0.50"),
    )
    return Audit(
        name,
        f"{name.capitalize()} of {_rows(len(rows))} {done}",
        ("model", "loss of the rows", name, "AUC against retrained"),
        table,
        _summary(name, ratio, whole),
        {
            name: ratio.value,
            "low": ratio.low,
            "high": ratio.high,
            "rows": len(rows),
            "loss_before": float(first.mean()),
            "loss_after": float(second.mean()),
            "loss_retrained": float(third.mean()),
            "auc_before": untouched_auc,
            "auc_after": updated_auc,
        },
        Chart(
            "bars",
            ["untouched", "updated", "retrained"],
            {f"loss of the {done} rows": [float(x.mean()) for x in (first, second, third)]},
            y_label=f"mean loss of the {done} rows",
        ),
    )


def auc(losses: NDArray[np.float64], retrained: NDArray[np.float64]) -> float:
    """Return how well losses of rows under a model can be told from those under a retrained one.

    This is the probability that a loss under the retrained model is larger than one under the
    model, for two rows drawn at random: 0.5 means that they cannot be told apart.

    Examples
    --------
    >>> auc(np.array([0.1, 0.2]), np.array([0.2, 0.3]))
    0.875
    """
    ordered = np.sort(losses)
    below = np.searchsorted(ordered, retrained, side="left")
    up_to = np.searchsorted(ordered, retrained, side="right")
    return float((below + up_to).mean() / 2 / len(losses))


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def _mean_interval(changes: NDArray[np.float64]) -> tuple[float, float]:
    if len(changes) < 2:
        return float(changes[0]), float(changes[0])
    rng = np.random.default_rng(0)
    means = [rng.choice(changes, len(changes)).mean() for _ in range(500)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _summary(name: str, ratio: Ratio, whole: tuple[float, float]) -> str:
    verb, without = {"forgetting": ("forgotten", "without"), "learning": ("learned", "with")}[name]
    if ratio.value is None or whole[0] <= 0 <= whole[1]:
        return (
            f"A retrain {without} these rows changes their mean loss by {whole[0]:+.2g} to "
            f"{whole[1]:+.2g}, which is not distinguishable from 0. There is too little to measure."
        )
    if ratio.low is None or ratio.high is None:
        return (
            f"The update has {verb} {ratio.value:.0%} of what a retrain would have {verb}. There "
            "are too few rows for an interval."
        )
    measured = (
        f"The update has {verb} {ratio.value:.0%} of what a retrain would have {verb} "
        f"({ratio.low:.0%} to {ratio.high:.0%})"
    )
    if ratio.low >= NEARLY_ALL:
        return f"{measured}."
    if ratio.high >= 1:
        return f"{measured}. There are too few rows to measure this more precisely."
    return f"{measured}. A larger fidelity reduces the difference, and refit() removes it."
