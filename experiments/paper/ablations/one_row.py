"""Add one row to models of different sizes, and compare with training them."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.goal import fold
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.results import Record
from benchmarks.settings import Settings
from benchmarks.updates.part import Plan
from benchmarks.updates.timing import Retrains, timed
from datasets import Dataset, paper
from experiments.harness.draws import RULES
from experiments.harness.experiment import Case, Scale, Values
from experiments.harness.paper_library import PAPER_LIBRARY
from experiments.harness.results import Results
from graftboost.audit.plotting import legend, lines, logarithmic, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Size:
    """One size of a model."""

    value: int
    settings: Settings  # also of the model that is retrained for comparison
    parameters: Mapping[str, Any]  # of our model only


# Data sets and how many of their rows are used; None for all.
DATA: dict[Scale, dict[str, int | None]] = {
    "quick": {"adult": 5000, "pendigits": 1500},
    "full": {
        "adult": None,
        "credit_info": None,
        "optdigits": None,
        "pendigits": None,
        "letter": None,
        "covtype": 100_000,
    },
}
ADDED: dict[Scale, int] = {"quick": 5, "full": 20}  # rows, one by one


def cases_of(label: str, sizes: Sequence[Size], scale: Scale, repeats: int) -> Iterator[Case]:
    """Each data set, each size; the best of the repeated trainings counts."""
    for name, max_rows in DATA[scale].items():
        for size in sizes:
            measure = partial(_measure, name, max_rows, size, ADDED[scale], repeats)
            yield Case({"data": name, label: size.value}, measure)


def _measure(name: str, max_rows: int | None, size: Size, n_added: int, repeats: int) -> Values:
    data = paper.load(name, max_rows=max_rows)
    record = Record(name, OURS)
    plan = _plan(size.settings)
    retrains = Retrains(name, plan)
    held_back = np.random.default_rng(0).choice(len(data.y_train), n_added + 1, replace=False)
    held = np.delete(np.arange(len(data.y_train)), held_back)
    for _ in range(repeats):  # in turns, so that a slow moment affects both
        model = PAPER_LIBRARY.model("classification", size.settings)
        model.set_params(**size.parameters)
        gc.collect()
        fit = partial(model.fit, data.X_train[held], data.y_train[held], row_ids=held)
        seconds, _ = timed(fit)
        record.add("fit_seconds", seconds)
        retrains.train(data.X_train, data.y_train)
    record.add("error", float(np.mean(model.predict(data.X_test) != data.y_test)))
    for rule, parameters in RULES.items():
        updated = copy.deepcopy(model).set_params(**parameters)
        _add_one_by_one(updated, data, held_back, rule, record)
    updated.refit()
    record.add("error_retrained", float(np.mean(updated.predict(data.X_test) != data.y_test)))
    return {
        "samples": record.samples,
        "yardstick_seconds": retrains.record.samples.get("fit_seconds", []),
        "trees": int(model.apply(data.X_test[:1]).shape[1]),
        "skipped": [] if plan.peers else [LIBRARIES[YARDSTICK].title],
    }


def _plan(settings: Settings) -> Plan:
    library = LIBRARIES[YARDSTICK]
    peers = (library,) if library.available() else ()
    return Plan(settings, peers, 1, lambda line: None)


def _add_one_by_one(
    model: Any, data: Dataset, rows: np.ndarray[Any, np.dtype[np.int64]], rule: str, record: Record
) -> None:
    for i, row in enumerate(rows):
        X, y = data.X_train[row : row + 1], data.y_train[row : row + 1]
        seconds, report = timed(partial(model.add, X, y, row_ids=[row]))
        if i > 0:  # the first update may build state that later updates use
            record.add(f"add_seconds {rule}", seconds)
            record.add(f"refits {rule}", report.strategy == "refit")
    updated = float(np.mean(model.predict(data.X_test) != data.y_test))
    record.add(f"error_updated {rule}", updated)


class Measured:
    """Measurements of one data set at one size."""

    def __init__(self, name: str, values: Values) -> None:
        self._record = Record(name, OURS, values["samples"])
        self.trees = values["trees"]
        self.yardstick = min(values["yardstick_seconds"], default=None)

    def add_seconds(self, rule: str = OURS) -> float:
        return self._record.median(f"add_seconds {rule}") or math.nan

    def fit_seconds(self) -> float:
        return self._record.best("fit_seconds") or math.nan

    def faster(self, rule: str = OURS) -> float:
        """Speed-up over LightGBM's training."""
        return (self.yardstick or math.nan) / self.add_seconds(rule)

    def faster_than_fit(self) -> float:
        return self.fit_seconds() / self.add_seconds()

    def error(self, of: str = "error") -> float:
        return self._record.samples[of][0]


def measured(results: Results, name: str, label: str) -> dict[int, Measured]:
    """Measurements of a data set by size."""
    return {
        int(done.labels[label]): Measured(name, done.values) for done in results.where(data=name)
    }


def tables_of(results: Results, label: str, lightgbm: str) -> str:
    """Test error, and seconds of one row and of training; `lightgbm` describes LightGBM's size."""
    return (
        "Rows are added one by one. Seconds of an update are medians, those of training the best. "
        f"{lightgbm} The untouched model lacks the added rows; the refitted model is `refit()` "
        f"after they were added.\n\n{_table(results, label)}"
    )


def _table(results: Results, label: str) -> str:
    """One row for each data set and size."""
    rows = []
    for name in results.all_of("data"):
        for value, found in measured(results, name, label).items():
            faster = found.faster()
            rows.append(
                [
                    name,
                    f"{value:,}",
                    f"{found.trees:,}",
                    in_percent(found.error()),
                    in_percent(found.error(f"error_updated {OURS}")),
                    in_percent(found.error("error_retrained")),
                    in_seconds(found.add_seconds()),
                    in_seconds(found.add_seconds("paper")),
                    in_seconds(found.fit_seconds()),
                    "-" if found.yardstick is None else in_seconds(found.yardstick),
                    "-" if math.isnan(faster) else f"**{fold(faster)}**",
                    fold(found.faster_than_fit()),
                ]
            )
    return table(
        [
            "data set",
            label,
            "trees",
            "test error, untouched",
            "all rows added",
            "refitted",
            "adding one row",
            "adding one row, paper's rule",
            "our training",
            "LightGBM's training",
            "speed-up over LightGBM's",
            "over ours",
        ],
        rows,
    )


def draw_sizes(results: Results, label: str) -> Figure:
    """Test error, seconds of one row, and the speed-up over training."""
    names = results.all_of("data")
    by_name = {name: measured(results, name, label) for name in names}
    x = sorted({value for found in by_name.values() for value in found})
    figure, axes = panels(4, columns=2, size=(4.6, 2.8))
    shown = (
        ("test error, per cent", lambda m: 100 * m.error(), False),
        ("adding one row, seconds", Measured.add_seconds, True),
        ("speed-up over\nLightGBM's training", Measured.faster, True),
        ("speed-up over\nour own training", Measured.faster_than_fit, True),
    )
    for axis, (title, value, log) in zip(axes, shown, strict=True):
        series = {
            name: [value(found[v]) if v in found else math.nan for v in x]
            for name, found in by_name.items()
        }
        lines(axis, [str(v) for v in x], series)
        if log:
            logarithmic(axis)
        axis.set_ylabel(title)
        axis.set_xlabel(label)
    legend(figure, columns=6)
    return figure


def changes(results: Results, label: str) -> dict[str, tuple[float, float, float, float]]:
    """Error and speed-up at the least and at the greatest size, by data set with several sizes."""
    ends = {}
    for name in results.all_of("data"):
        found = measured(results, name, label)
        if len(found) > 1:
            low, high = found[min(found)], found[max(found)]
            ends[name] = (low.error(), high.error(), low.faster_than_fit(), high.faster_than_fit())
    return ends
