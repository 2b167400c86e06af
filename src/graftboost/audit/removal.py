"""Everything that can be said about removing certain rows from a user's own model."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graftboost.audit.agreement import similarity
from graftboost.audit.copies import trained_again
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
    """Remove rows from a copy of a model, and say what was forgotten and what was not.

    The model itself is not changed. Beside the copy stand the model as it is, to which nothing is
    done, and a refit without the rows, which is what the copy should come to.

    Parameters
    ----------
    model : GraftBoostClassifier or GraftBoostRegressor
        The model that holds the rows.
    row_ids : int, array-like of int or bool, or slice
        The rows, as `remove` takes them.
    X, y : default=None
        Rows to compare predictions on, which the model was not trained on, and their classes.
        Without them predictions are not compared.

    Returns
    -------
    Audit
        Its ``summary`` says it all in plain words; ``parts`` are the audits it is made of.

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
        raise ValueError("row_ids names no row. Pass ids, a mask over row_ids_, or a slice of ids.")
    updated = copy.deepcopy(model)
    report = updated.remove(ids)
    start = time.perf_counter()
    retrained = trained_again(updated)
    seconds = time.perf_counter() - start
    parts = [forgetting(model, updated, ids, retrained=retrained)]
    left_out = []
    if X is not None and y is not None and hasattr(model, "classes_"):
        parts.append(similarity(model, updated, X, y, retrained=retrained))
    else:
        left_out.append("predictions were not compared: that takes X and y, and classes")
    parts.append(leaf_error(updated, before=model))
    if report.strategy == "in-place":
        parts += [split_shift(model, ids), robustness(model, ids)]
    else:
        left_out.append("splits were not followed: the removal trained all of them anew")
    left_out.append("attacks were not tried: they need models made for them")
    return Audit(
        "audit_removal",
        f"Removing {len(ids):,} of {model.n_rows_:,} rows",
        ("step", "seconds", "what was done"),
        _steps(report, seconds),
        _in_words(model, report, parts, left_out, ids),
        {part.name: dict(part.figures) for part in parts} | {"strategy": report.strategy},
        None,
        tuple(parts),
    )


def _steps(report: UpdateReport, seconds: float) -> tuple[tuple[Cell, ...], ...]:
    if report.strategy == "refit":
        what = "all trees trained anew from the rows left"
    else:
        what = f"{report.nodes_regrown:,} nodes regrown of {report.nodes_checked:,} checked"
    return (
        ("removed", report.seconds["total"], what),
        ("trained again, to compare", seconds, "all trees, from the rows left"),
    )


def _in_words(
    model: GraftBoost,
    report: UpdateReport,
    parts: list[Audit],
    left_out: list[str],
    ids: NDArray[np.int64],
) -> str:
    rows = "The row" if len(ids) == 1 else f"The {len(ids):,} rows"
    gone = (
        f"{rows} would be gone from the model's memory: cells, target, weight and recorded "
        "gradients are overwritten, and every sum is that of the rows left."
    )
    lines = [gone]
    if report.strategy == "refit":
        lines.append(
            "The removal came to a refit: the trees are exactly those of a model that never saw "
            "the rows. Nothing is left of them in the trees."
        )
    else:
        lines.append(parts[0].summary)
        lines.append(
            "What the rows did to splits that still pass stays until a node is retrained or "
            "refit() is called."
        )
    if model.bin_edges is None:
        lines.append(
            "Bin edges were fitted while the rows were there and stay as they are; only edges "
            "given by hand, or a new fit from the raw data, leave no trace there."
        )
    else:
        lines.append("Edges given as bin_edges depend on no row.")
    return "\n".join(f"- {line}" for line in lines) + f"\nNot looked at: {'; '.join(left_out)}."
