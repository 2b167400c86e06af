"""Updates with rows drawn at random: losses before, after, and after a refit."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.libraries import LIBRARIES, OURS
from benchmarks.settings import Settings
from experiments.harness.draws import WAYS, Way
from experiments.harness.experiment import Case, Scale, Values
from graftboost.audit.loss_change import auc

# How many rows change: a number, or a fraction of all rows.
SIZES = {"1 row": 1.0, "5 rows": 5.0, "0.1%": 0.001, "1%": 0.01}
SPARE = 0.1  # the fraction of the rows that are held back, to be added
GROUPS = 10

# The most rows that are used, and the number of draws of each size.
Plan = tuple[int | None, tuple[int, int, int, int]]
FAST: Plan = (None, (300, 120, 50, 16))
SLOW: Plan = (None, (60, 40, 24, 8))
DATA: dict[Scale, dict[str, Plan]] = {
    "quick": {"adult": (None, (4, 3, 2, 1)), "california_housing": (None, (4, 3, 2, 1))},
    "full": {
        **dict.fromkeys(("adult", "electricity", "credit_info", "higgs_sample"), FAST),
        **dict.fromkeys(("california_housing", "diamonds", "bike_sharing"), FAST),
        **dict.fromkeys(("pendigits", "optdigits", "letter", "reuters21578"), SLOW),
        "covtype": (60_000, SLOW[1]),
    },
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set, way and size."""
    for name, (max_rows, n_draws) in DATA[scale].items():
        for way in WAYS:
            for size, n in zip(SIZES, n_draws, strict=True):
                labels = {"data": name, "way": way, "size": size}
                yield Case(labels, partial(measure, name, max_rows, way, size, n))


@dataclass
class Prepared:
    """A model that holds most rows of a data set, and the rows that can be changed.

    For regression, losses are halved squared errors relative to the residual variance.
    """

    X: Any
    y: NDArray[Any]
    model: Any
    rows: NDArray[np.int64]  # that can be removed, or added
    way: Way
    unit: float = field(default=1.0)

    def losses(self, model: Any, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The loss of each of these rows."""
        y = self.y[rows]
        if not hasattr(model, "predict_proba"):
            return np.asarray((model.predict(self.X[rows]) - y) ** 2 / 2 / self.unit)
        probabilities = model.predict_proba(self.X[rows])
        of_class = probabilities[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        return -np.log(np.clip(of_class, 1e-12, 1.0))

    def update(self, model: Any, rows: NDArray[np.int64], **arguments: Any) -> Any:
        """Add or remove rows; returns the report."""
        if self.way == "remove":
            return model.remove(rows, **arguments)
        return model.add(self.X[rows], self.y[rows], row_ids=rows, **arguments)


def prepare(name: str, max_rows: int | None, way: Way) -> Prepared:
    """Fit a model with default parameters for updates."""
    data: Any = datasets.load_sparse(name) if name in datasets.SPARSE else datasets.load(name)
    order = np.random.default_rng(7).permutation(len(data.y_train))[:max_rows]
    X, y = data.X_train[order], data.y_train[order]
    n_spare = int(SPARE * len(y)) if way == "add" else 0
    rows = np.arange(len(y))
    held, spare = rows[n_spare:], rows[:n_spare]
    model: Any = LIBRARIES[OURS].model(data.task, Settings())
    model.fit(X[held], y[held], row_ids=held)
    found = Prepared(X, y, model, spare if way == "add" else held, way)
    if not hasattr(model, "predict_proba"):
        found.unit = float(np.mean((model.predict(X[held]) - y[held]) ** 2))
    return found


def measure(name: str, max_rows: int | None, way: Way, size: str, n_draws: int) -> Values:
    """Update a copy of the model with each draw, and refit it."""
    prepared = prepare(name, max_rows, way)
    amount = SIZES[size]
    n_rows = int(amount) if amount >= 1 else max(1, round(amount * len(prepared.y)))
    sign = 1 if way == "remove" else -1
    values: Values = {"rows": n_rows}
    sums: dict[str, list[float]] = {
        what: [] for what in ("by_update", "by_refit", "achieved", "left", "regrown", "refits")
    }
    losses: dict[str, list[NDArray[np.float64]]] = {
        what: [] for what in ("before", "after", "refitted", "remembered")
    }
    for seed in range(n_draws):
        drawn = np.random.default_rng(seed).choice(prepared.rows, n_rows, replace=False)
        before = prepared.losses(prepared.model, drawn)
        updated, refitted = copy.deepcopy(prepared.model), copy.deepcopy(prepared.model)
        report = prepared.update(updated, drawn)
        prepared.update(refitted, drawn, fidelity=0.0)
        by_booking = prepared.losses(refitted, drawn) - before
        refitted.refit()
        after, final = prepared.losses(updated, drawn), prepared.losses(refitted, drawn)
        change = sign * float((after - before).sum())
        sums["by_update"].append(change)
        sums["by_refit"].append(sign * float((final - before).sum()))
        refits = report.strategy == "refit"
        sums["refits"].append(float(refits))
        sums["achieved"].append(change if refits else report.forgetting.achieved)
        sums["left"].append(report.memory_left)
        visits = updated.n_rows_ * updated.apply(prepared.X[:1]).shape[1]
        sums["regrown"].append(1.0 if refits else report.rows_regrown / visits)
        losses["before"].append(before)
        losses["after"].append(after)
        losses["refitted"].append(final)
        if way == "remove":
            losses["remembered"].append(by_booking + prepared.model.memory(drawn).memory)
    values |= sums
    joined = {what: np.concatenate(found) for what, found in losses.items() if found}
    values["auc_untouched"] = auc(joined["before"], joined["refitted"])
    values["auc_updated"] = auc(joined["after"], joined["refitted"])
    if way == "remove":
        order = np.argsort(joined["remembered"])
        change_of_rows = joined["refitted"] - joined["before"]
        values["groups"] = [
            [float(joined["remembered"][group].mean()), float(change_of_rows[group].mean())]
            for group in np.array_split(order, GROUPS)
            if len(group)
        ]
    return values
