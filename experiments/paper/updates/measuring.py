"""Seconds of updates, and the change that they cause in the loss of the changed rows."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import warm_up
from benchmarks.measure import log_losses
from benchmarks.settings import Settings
from benchmarks.updates.timing import rows_of
from datasets import AnyDataset, Dataset, paper
from experiments.harness.contenders import CONTENDERS, Contender
from experiments.harness.contenders.ours import Ours, Paper, Predecessor
from experiments.harness.draws import ONE_ROW, SIZES, WAYS, Way
from experiments.harness.experiment import Case, Scale, Values
from graftboost.audit.ratio import ratio_of_sums

COMPARED = ("0.1%", "1%")  # sizes at which forgetting and learning are measured

RULES: tuple[type[Ours], ...] = (
    Ours,
    Paper,
    Predecessor,
)  # trained identically and measured together
RETRAINED = ("lightgbm", "xgboost", "catboost", "sklearn")
# These pass over all rows whatever D' is, so one size is enough.
NEW_LEAVES = ("lightgbm-refit", "xgboost-refresh")
WHO = (Ours.name, *RETRAINED, *NEW_LEAVES, "sisa")


@dataclass(frozen=True)
class Plan:
    """How much is measured of one data set."""

    max_rows: int | None = None
    singles: int = 10  # draws of one row
    draws: int = 3  # draws of a share of the rows
    trainings: int = 3  # of each library that is retrained
    settings: Settings = field(default_factory=Settings)


SMALL = Settings(iterations=30)
QUICK = {
    "adult": Plan(2_000, singles=2, draws=1, trainings=1, settings=SMALL),
    "pendigits": Plan(600, singles=2, draws=1, trainings=1, settings=SMALL),
    "abalone": Plan(1_000, singles=2, draws=1, trainings=1, settings=SMALL),
}
LARGE = Plan(singles=2, draws=1, trainings=1)
FULL = {
    **dict.fromkeys(paper.SETS, Plan()),
    "letter": Plan(singles=5, draws=2, trainings=1),
    "susy": LARGE,
    "covtype": LARGE,
}


def cases(scale: Scale) -> Iterator[Case]:
    """One case for each data set and contender."""
    for name, plan in (QUICK if scale == "quick" else FULL).items():
        for who in WHO:
            yield Case({"data": name, "contender": who}, partial(measure, name, who, plan))


def measure(name: str, who: str, plan: Plan) -> Values:
    """Measure one contender, or all of ours, on one data set."""
    kind = CONTENDERS[who]
    if not kind.available():
        return {"skipped": [kind.library.title]}
    data = paper.load(name, max_rows=plan.max_rows)
    warm_up(kind.library, data.task, plan.settings)
    if who in RETRAINED:
        return {"rows": len(data.y_train), "seconds": list(_trainings(data, kind, plan))}
    sizes = COMPARED if who in NEW_LEAVES else tuple(SIZES)
    if plan == LARGE and who in NEW_LEAVES:
        sizes = COMPARED[:1]
    values: Values = {"rows": len(data.y_train)}
    for way in WAYS:
        values[way] = Updates(data, kind, way, plan).measure(sizes)
    return values


def _trainings(data: Dataset, kind: type[Contender], plan: Plan) -> Iterator[float]:
    for _ in range(plan.trainings):
        contender = kind(data.task, plan.settings)
        gc.collect()
        yield contender.fit(data.X_train, data.y_train).seconds


@dataclass
class Sample:
    """Measurements of one contender over the draws of one size."""

    rows: int
    seconds: list[float] = field(default_factory=list)
    refits: int = 0
    changes: list[NDArray[np.float64]] = field(default_factory=list)  # of the loss, row by row
    whole: list[NDArray[np.float64]] = field(default_factory=list)  # by a full training
    training_seconds: list[float] = field(default_factory=list)

    def values(self) -> Values:
        """Values to store; ``ratio`` is forgetting or learning, with its interval."""
        values: Values = {"rows": self.rows, "seconds": self.seconds, "refits": self.refits}
        if self.whole:
            ratio = ratio_of_sums(np.concatenate(self.changes), np.concatenate(self.whole))
            values["ratio"] = [ratio.value, ratio.low, ratio.high]
            values["training_seconds"] = self.training_seconds
        return values


class Updates:
    """Updates of one contender, or of all of ours, with rows of one data set in one direction.

    The rows of smaller draws are among those of the larger, so one model serves all sizes. A
    model to which rows are added is trained without a few per cent of the rows.
    """

    def __init__(
        self,
        data: AnyDataset,
        kind: type[Contender],
        way: Way,
        plan: Plan,
        rules: Sequence[type[Ours]] = RULES,
    ) -> None:
        n_rows = len(data.y_train)
        self.data, self.way, self.plan, self.rules = data, way, plan, rules
        most = rows_of(max(SIZES.values()), n_rows)
        # The last row is not drawn: it is removed from copies before they are measured.
        drawn = np.random.default_rng(0).permutation(n_rows - 1)[: plan.draws * most]
        self._draws = np.array_split(drawn, plan.draws)
        self._singles = drawn[: plan.singles]
        there = np.arange(n_rows) if way == "remove" else np.setdiff1d(np.arange(n_rows), drawn)
        self._spare = len(there) - 1
        model = kind(data.task, plan.settings)
        self._model = model.fit(data.X_train[there], data.y_train[there])

    def measure(self, sizes: Sequence[str]) -> Values:
        """Draw rows of each size; returns the values by contender and size."""
        values: Values = {}
        for size in sizes:
            for name, sample in self._measure(size).items():
                values.setdefault(name, {})[size] = sample.values()
        return values

    def _measure(self, size: str) -> dict[str, Sample]:
        if size == ONE_ROW:
            draws = [self._singles[i : i + 1] for i in range(len(self._singles))]
        else:
            n_rows = rows_of(SIZES[size], len(self.data.y_train))
            draws = [drawn[:n_rows] for drawn in self._draws]
        samples: dict[str, Sample] = {}
        for rows in draws:
            before = {}
            for updated in self._copies():
                sample = samples.setdefault(updated.name, Sample(len(rows)))
                before[updated.name] = self._losses(updated, rows)
                self._update(updated, rows)
                sample.seconds.append(updated.seconds)
                sample.refits += getattr(updated, "refits", 0)
                sample.changes.append(self._losses(updated, rows) - before[updated.name])
            if size in COMPARED:
                updated.retrain()  # one refit for all rules: the rows and bins are the same
                trained = self._losses(updated, rows)
                for name, sample in samples.items():
                    sample.whole.append(trained - before[name])
                    sample.training_seconds.append(updated.seconds)
        return samples

    def _copies(self) -> Iterator[Contender]:
        if isinstance(self._model, Ours):
            for kind in self.rules:
                yield self._model.under(kind, self._spare)
        else:
            yield self._model.fork(self._spare)

    def _update(self, contender: Contender, rows: NDArray[np.int64]) -> None:
        if self.way == "remove":
            contender.remove(rows)
        else:
            contender.add(self.data.X_train[rows], self.data.y_train[rows])

    def _losses(self, contender: Contender, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        predicted, y = contender.predict(self.data.X_train[rows]), self.data.y_train[rows]
        if self.data.task == "regression":
            return np.asarray((predicted - y) ** 2, dtype=np.float64)
        return log_losses(predicted, y)
