"""Named fits and sequences of updates, which together use every path of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

from numpy.random import Generator

from benchmarks.builds.tables import Scored, complete, dense, mixed, one_hot, text

LOSSES = {"logistic": 2, "squared": None, "softmax": 4}  # number of classes, None: regression


def _fidelity(target: float = 0.75, **parameters: float) -> dict[str, Any]:
    """Parameters of an estimator with the fidelity rule."""
    return {"update_rule": "fidelity", "fidelity": target, **parameters}


def _regret(tolerance: float) -> dict[str, Any]:
    """Parameters of an estimator with the regret rule."""
    return {"update_rule": "regret", "tolerance": tolerance}


def _rank(tolerance: float) -> dict[str, Any]:
    """Parameters of an estimator with the rank rule."""
    return {"update_rule": "rank", "tolerance": tolerance}


RULES = {
    **{f"fidelity-{target:g}": _fidelity(target) for target in (0.5, 0.75, 1.0)},
    "fidelity-floor-0": _fidelity(memory_floor=0.0),
    **{f"regret-{tolerance:g}": _regret(tolerance) for tolerance in (0.0, 0.3, 1.2, 30.0, inf)},
    **{f"rank-{tolerance:g}": _rank(tolerance) for tolerance in (0.1, 1.0)},
}

USUAL = ("remove 1", "remove 20", "add 30", "update 20", "remove a twelfth", "add 1")
REFRESHED = ("remove 5", "refresh", "remove 5", "add 10", "refresh", "refresh", "update 10")
BUDGETED = ("remove 1", "remove 10", "add 10", "refresh", "update 10", "remove 1")
LONG = (*["update 20"] * 12, "refit", "update 20", "refresh", "update 20")


@dataclass(frozen=True)
class Case:
    """A fit of the first rows of a table, and the steps that follow.

    A step is "refresh", "refit", "add new classes", or "remove", "add" or "update" and a number of
    rows; an update removes as many rows as it adds. "remove a twelfth" removes that share.
    """

    make: Callable[[int, Generator], Scored]
    steps: tuple[str, ...]
    n_classes: int | None
    n_rows: int
    n_fitted: int
    weighted: bool
    parameters: Mapping[str, Any]


def _case(
    make: Callable[[int, Generator], Scored],
    steps: tuple[str, ...] = USUAL,
    n_classes: int | None = 2,
    n_rows: int = 1500,
    n_fitted: int = 1200,
    weighted: bool = False,
    **parameters: Any,
) -> Case:
    small = {"n_estimators": 12, "max_leaf_nodes": 12, "n_jobs": 1}
    return Case(make, steps, n_classes, n_rows, n_fitted, weighted, {**small, **parameters})


_text = partial(_case, text, min_samples_leaf=5)

# Measured with every loss.
OF_EACH_LOSS = {
    "weights": _case(dense, weighted=True),
    "subsample": _case(dense, subsample=0.6),
    "one-hot": _case(one_hot),
    "categories": _case(complete, categorical_features=[1]),
    "budget": _case(dense, stats_memory=20_000),
    "no-budget": _case(dense, stats_memory=0, **_regret(0.3)),
    "refresh": _case(dense, REFRESHED),
    "early-stopping": _case(
        dense, early_stopping=True, n_iter_no_change=2, n_estimators=40, max_leaf_nodes=8
    ),
    "l2": _case(dense, l2_regularization=1.5),
    "threads": _case(dense, n_rows=9000, n_fitted=8000, n_jobs=2),
    "mixed": _case(mixed, min_samples_leaf=6),
    "text": _text(),
    "text-weights-subsample": _text(weighted=True, subsample=0.7),
    "text-budget": _text(BUDGETED, stats_memory=60_000),
    "text-threads": _text(n_rows=6000, n_fitted=5000, n_jobs=2),
}

OTHERS = {
    "many-leaves": _case(
        dense, n_rows=4000, n_fitted=3500, n_estimators=4, max_leaf_nodes=400, min_samples_leaf=2
    ),
    "many-bins": _case(
        dense,
        n_classes=None,
        n_rows=4000,
        n_fitted=3500,
        max_bins=2000,
        split_sample=0.6,
        max_leaf_nodes=31,
    ),
    "bins-of-equal-width": _case(dense, binning="width"),
    "bins-of-sampled-rows": _case(
        partial(dense, columns=4),
        ("remove 5", "add 5"),
        n_classes=None,
        n_rows=300_000,
        n_fitted=299_000,
        n_estimators=3,
        n_jobs=2,
    ),
    "new-classes": _case(dense, ("remove 5", "add new classes", "remove 5", "add 10"), 3),
    "new-classes-of-two": _case(dense, ("add new classes", "remove 5")),
    "long": _case(dense, LONG, n_rows=3000, n_fitted=1500, **_regret(0.3)),
    "long-softmax": _case(dense, LONG, 6, n_rows=3000, n_fitted=1500, **_regret(0.01)),
    "long-text": _text(LONG, n_rows=3000, n_fitted=1500, **_regret(0.3)),
    "long-fidelity": _case(dense, LONG, n_rows=3000, n_fitted=1500, **_fidelity(0.5)),
    "long-softmax-fidelity": _case(dense, LONG, 6, n_rows=3000, n_fitted=1500, **_fidelity(0.5)),
    "long-text-fidelity": _text(LONG, n_rows=3000, n_fitted=1500, **_fidelity(0.5)),
}


def _cases() -> Iterator[tuple[str, Case]]:
    for rule, parameters in RULES.items():
        for loss, n_classes in LOSSES.items():
            yield f"{loss}-{rule}", _case(dense, n_classes=n_classes, **parameters)
        yield f"text-{rule}", _text(**parameters)
    for kind, case in OF_EACH_LOSS.items():
        for loss, n_classes in LOSSES.items():
            yield f"{kind}-{loss}", replace(case, n_classes=n_classes)
    yield from OTHERS.items()


CASES = dict(_cases())
