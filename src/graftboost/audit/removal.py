"""A complete audit of the removal of rows from a model."""

from __future__ import annotations

import copy
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost.audit.agreement import similarity
from graftboost.audit.copies import refitted
from graftboost.audit.leaves import leaf_error
from graftboost.audit.loss_change import forgetting
from graftboost.audit.result import Audit, Cell
from graftboost.audit.splits import robustness, split_shift

if TYPE_CHECKING:
    from graftboost.estimators.base_estimator import GraftBoost
    from graftboost.estimators.report import UpdateReport


def audit_removal(
    model: GraftBoost, row_ids: ArrayLike | slice, X: Any = None, y: ArrayLike | None = None
) -> Audit:
    """Remove rows from a copy of a model, and measure what was forgotten.

    The model itself is not changed. The copy is compared with the untouched model and with a refit
    without the rows.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        The model that holds the rows.
    row_ids : int, array-like of int or bool, or slice
        The rows, as for `remove`.
    X, y : default=None
        Rows on which predictions are compared, which should not be training rows, and their
        classes. Default: predictions are not compared.

    Returns
    -------
    Audit
        Its ``summary`` states the results in words; ``parts`` are the individual audits.

    Examples
    --------
    >>> from graftboost import GraftBoostClassifier, audit
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GraftBoostClassifier(n_estimators=20).fit(X[:500], y[:500])
    >>> found = audit.audit_removal(model, [17, 4], X[500:], y[500:])
    >>> [part.name for part in found.parts]
    ['forgetting', 'similarity', 'leaf_error', 'split_shift', 'robustness']
    >>> model.n_rows_
    500
    """
    if (X is None) != (y is None):
        given, missing = ("y", "X") if X is None else ("X", "y")
        raise ValueError(f"{given} is given without {missing}. Pass both, or neither.")
    model._check_updatable()
    ids = model._ids_to_remove(row_ids, "row_ids")
    if not len(ids):
        raise ValueError(
            "row_ids selects no row. Pass ids, a mask over row_ids_, or a slice of ids."
        )
    updated = copy.deepcopy(model)
    report = updated.remove(ids)
    start = time.perf_counter()
    retrained = refitted(updated)
    seconds = time.perf_counter() - start
    parts = [forgetting(model, updated, ids, retrained=retrained)]
    left_out = []
    if X is not None and y is not None and hasattr(model, "classes_"):
        parts.append(similarity(model, updated, X, y, retrained=retrained))
    else:
        left_out.append("predictions (require a classifier, X and y)")
    parts.append(leaf_error(updated, before=model))
    if report.strategy == "in-place":
        parts += [split_shift(model, ids), robustness(model, ids)]
    else:
        left_out.append("splits (the removal was a refit)")
    left_out.append("attacks (require models trained for them)")
    return Audit(
        "audit_removal",
        f"Removing {len(ids):,} of {model.n_rows_:,} rows",
        ("step", "seconds", "what was done"),
        _steps(report, seconds),
        _summary(model, report, parts, left_out, ids),
        {part.name: dict(part.figures) for part in parts}
        | {"strategy": report.strategy, "estimated_fidelity": _if_known(report.fidelity)},
        None,
        tuple(parts),
    )


def _if_known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _steps(report: UpdateReport, seconds: float) -> tuple[tuple[Cell, ...], ...]:
    if report.strategy == "refit":
        what = "all trees refitted"
    else:
        what = f"{report.nodes_regrown:,} of {report.nodes_checked:,} checked nodes regrown"
    return (
        ("removed", report.seconds["total"], what),
        ("refitted, to compare", seconds, "all trees refitted"),
    )


def _summary(
    model: GraftBoost,
    report: UpdateReport,
    parts: list[Audit],
    left_out: list[str],
    ids: NDArray[np.int64],
) -> str:
    rows = "The row" if len(ids) == 1 else f"The {len(ids):,} rows"
    gone = (
        f"{rows} would be erased from memory: features, target, weight and recorded gradients are "
        "overwritten, and all stored sums match the remaining rows."
    )
    lines = [gone]
    if report.strategy == "refit":
        lines.append(
            "The removal was a refit: the trees are exactly those of a model trained without the "
            "rows."
        )
    else:
        lines.append(parts[0].summary)
        if report.forgetting is not None:
            words = report.forgetting.in_words(len(ids))
            lines.append(f"Estimated without the retrain: {words}.")
        lines.append("Some splits these rows influenced remain; refit() removes them.")
    if model.bin_edges is None:
        lines.append(
            "Bin edges were computed with these rows and are unchanged; only supplied bin_edges or "
            "a new fit on the raw data remove this trace."
        )
    else:
        lines.append("Supplied bin_edges depend on no row.")
    return "\n".join(f"- {line}" for line in lines) + f"\nNot audited: {'; '.join(left_out)}."
