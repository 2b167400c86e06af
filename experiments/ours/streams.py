"""Streams whose rows arrive and expire: updates, retraining and a learner for streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.goal import fold
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK, Library
from benchmarks.markdown import four_digits, in_percent, in_seconds, table
from benchmarks.settings import Settings
from benchmarks.updates.learners import (
    RIVER,
    TOLERANT,
    Learner,
    Retrained,
    RowByRow,
    Untouched,
    Updated,
    start,
    step,
)
from benchmarks.updates.part import Plan
from datasets import Target, Task
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.results import Results
from graftboost.audit.plotting import legend, lines, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 10  # steps between periodic retrains
SHOWN = ("tolerant", "lightgbm", "lightgbm-periodic", "river", "untouched")  # in the picture
STRETCHES = 12  # points of the picture, each the error over several steps


@dataclass(frozen=True)
class Stream:
    """Rows in their order, the size of the window and of a step."""

    title: str
    task: Task
    window: int
    step: int
    why: str  # the window and the step in words
    every: int = 1  # one row in so many is used: river is slow
    max_rows: int | None = None
    settings: Settings = field(default_factory=Settings)

    def rows(self, name: str) -> tuple[NDArray[np.float32], Target]:
        """The rows of the stream."""
        X, y = datasets.load_in_order(name)
        return X[:: self.every][: self.max_rows], y[:: self.every][: self.max_rows]


FULL = {
    "electricity": Stream(
        "Electricity", "classification", 10_000, 250, "seven months, five days at a time"
    ),
    "covtype": Stream(
        "Covtype",
        "classification",
        5_000,
        250,
        "a sixth of the stream, 250 rows at a time",
        every=20,
    ),
    "bike_sharing": Stream("Bike sharing", "regression", 4_032, 168, "24 weeks, one at a time"),
    "metro_traffic": Stream(
        "Metro traffic", "regression", 8_736, 336, "a year, two weeks at a time"
    ),
}
SMALL = Settings(iterations=30)
QUICK = {
    "electricity": Stream(
        "Electricity", "classification", 1_500, 50, "", max_rows=2_000, settings=SMALL
    ),
    "covtype": Stream(
        "Covtype", "classification", 1_000, 50, "", every=200, max_rows=1_500, settings=SMALL
    ),
    "bike_sharing": Stream(
        "Bike sharing", "regression", 1_512, 72, "", max_rows=2_300, settings=SMALL
    ),
    "metro_traffic": Stream(
        "Metro traffic", "regression", 1_512, 72, "", max_rows=2_300, settings=SMALL
    ),
}

LIGHTGBM = LIBRARIES[YARDSTICK]


@dataclass(frozen=True)
class Who:
    """A learner, its title and the library it needs."""

    title: str
    new: Callable[[str, Plan, Task], Learner]
    library: Library | None = None


LEARNERS = {
    "tolerant": Who(
        f"graftboost, updated, tolerance {TOLERANT:g}",
        lambda name, plan, task: Updated(name, plan, task, tolerance=TOLERANT),
    ),
    "updated": Who("graftboost, updated", Updated),
    "retrained": Who(
        "graftboost, retrained at each step",
        lambda name, plan, task: Retrained(name, plan, task, library=LIBRARIES[OURS]),
    ),
    "lightgbm": Who("LightGBM, retrained at each step", Retrained, LIGHTGBM),
    "lightgbm-periodic": Who(
        f"LightGBM, retrained every {PERIOD}th step",
        lambda name, plan, task: Retrained(name, plan, task, every=PERIOD),
        LIGHTGBM,
    ),
    "river": Who("river, adaptive random forest", RowByRow, RIVER),
    "untouched": Who("graftboost, untouched", Untouched),
}


def cases(scale: Scale) -> Iterator[Case]:
    """One case for each stream and learner."""
    for name, stream in (QUICK if scale == "quick" else FULL).items():
        for who in LEARNERS:
            yield Case({"data": name, "learner": who}, partial(measure, name, who, stream))


def measure(name: str, who: str, stream: Stream) -> Values:
    """Run one learner on one stream."""
    library = LEARNERS[who].library
    if library is not None and not library.available():
        return {"skipped": [library.title]}
    plan = Plan(stream.settings, () if library is None else (library,), 1, lambda line: None)
    X, y = stream.rows(name)
    learner = LEARNERS[who].new(name, plan, stream.task)
    firsts = range(stream.window, len(y) - stream.step + 1, stream.step)
    start(learner, X, y, stream.window)
    for first in firsts:
        step([learner], X, y, first, first + stream.step)
    samples = learner.record.samples
    predicted = y[stream.window : firsts[-1] + stream.step]
    return {
        "task": stream.task,
        "rows": len(y),
        "every": stream.every,
        "window": stream.window,
        "step": stream.step,
        "spread": float(np.std(predicted)) if stream.task == "regression" else None,
        **{what: samples[what] for what in ("error", "learn_seconds", "predict_seconds")},
        "refits": int(sum(samples["refits"])) if "refits" in samples else None,
    }


def error_of(values: Values, stretch: Sequence[float] | None = None) -> float:
    """Error over all steps or some: share of wrong classes, or root mean squared error."""
    error = mean(values["error"] if stretch is None else stretch)
    return error if values["task"] == "classification" else math.sqrt(error)


def learning_seconds(values: Values) -> float:
    """Seconds of learning after the first window, which most learners are trained on."""
    return sum(values["learn_seconds"][1:])


def _found(results: Results, name: str) -> dict[str, Values]:
    """Values of a stream by learner."""
    found = {who: results.find(data=name, learner=who) for who in LEARNERS}
    return {who: v for who, v in found.items() if v is not None and "skipped" not in v}


def tables(results: Results) -> str:
    """Error and seconds of each learner on each stream."""
    rows = []
    for name in results.all_of("data"):
        for who, values in _found(results, name).items():
            refits = values["refits"]
            spread, seconds = values["spread"], learning_seconds(values)
            rows.append(
                [
                    FULL[name].title,
                    LEARNERS[who].title,
                    f"**{_error(values)}**",
                    "-" if spread is None else f"{1 - (error_of(values) / spread) ** 2:.3f}",
                    "-" if who == "untouched" else in_seconds(seconds),
                    "-" if who == "untouched" else in_seconds(seconds / len(values["error"])),
                    in_seconds(sum(values["predict_seconds"])),
                    "-" if refits is None else f"{refits} of {len(values['error'])}",
                ]
            )
    head = ["stream", "learner", "error", "R2", "learning", "per step", "predicting", "refits"]
    return f"{_caption(results)}\n\n{table(head, rows)}"


def _caption(results: Results) -> str:
    streams = []
    for name in results.all_of("data"):
        values = next(iter(_found(results, name).values()), None)
        if values is not None:
            why = f" ({FULL[name].why})" if results.scale == "full" else ""
            thinned = f" (one in {values['every']})" if values["every"] > 1 else ""
            streams.append(
                f"{FULL[name].title}, {values['rows']:,} rows{thinned}: a window of "
                f"{values['window']:,}, {len(values['error'])} steps of {values['step']}{why}"
            )
    return (
        "At each step, the new rows are predicted and then added, and the same number of the "
        "oldest rows is removed. river has no window. The error is the share of misclassified "
        "rows, or the root mean squared error together with R2. Seconds exclude the first window. "
        f"{'; '.join(streams)}."
    )


def draw(results: Results) -> Figure:
    """The error over time, stream by stream."""
    names = results.all_of("data")
    figure, axes = panels(len(names), columns=2, size=(5.2, 3.0))
    for axis, name in zip(axes, names, strict=True):
        series, places = {}, []
        found = _found(results, name)
        for who in (who for who in SHOWN if who in found):
            values = found[who]
            error = np.array(values["error"])
            parts = np.array_split(np.arange(len(error)), min(STRETCHES, len(error)))
            scale = 100 if values["task"] == "classification" else 1
            series[LEARNERS[who].title] = [scale * error_of(values, error[p]) for p in parts]
            places = [values["window"] + values["step"] * (p.mean() + 0.5) for p in parts]
        lines(axis, places, series, controls=[LEARNERS["untouched"].title])
        classes = FULL[name].task == "classification"
        axis.set_title(FULL[name].title)
        axis.set_xlabel("position in the stream, rows")
        axis.set_ylabel("error, %" if classes else "root mean squared error")
    legend(figure, columns=3)
    return figure


def answer(results: Results) -> str:
    """Error and cost of updates, compared with LightGBM's retrains and the untouched model."""
    parts, faster = [], []
    for name in results.all_of("data"):
        found = _found(results, name)
        if {"tolerant", "lightgbm", "untouched"} <= set(found):
            errors = [_error(found[who]) for who in ("tolerant", "lightgbm", "untouched")]
            parts.append(f"{FULL[name].title} {' / '.join(errors)}")
            seconds = [learning_seconds(found[who]) for who in ("lightgbm", "tolerant")]
            faster.append(seconds[0] / seconds[1])
    if not parts:
        return ""
    return (
        f"Updates with tolerance {TOLERANT:g} are {min(faster):.1f} to {max(faster):.1f} times "
        "faster than retraining LightGBM at each step. The errors of the updated model, of "
        f"LightGBM and of the untouched model are: {'; '.join(parts)}."
    )


def remark(results: Results) -> str:
    """Each stream, and why updates can be worse than retraining."""
    streams = [text for name in results.all_of("data") for text in _on_stream(results, name)]
    discussion = (
        "The default rule is meant for rows that must be forgotten at once. In a stream, all rows "
        "leave in the end, and the regret rule with a tolerance of "
        f"{TOLERANT:g} regrows fewer nodes. "
        "Retraining is better than any update where the bins are outdated: updates keep the bins "
        "of the first window, so all values beyond its range fall into the outermost bin, for "
        "example those of a feature that counts days. Covtype is subsampled because river takes "
        "milliseconds per row."
    )
    return "\n".join(f"- {text}" for text in streams) + f"\n\n{discussion}"


def _on_stream(results: Results, name: str) -> Iterator[str]:
    found = _found(results, name)
    if not {"tolerant", "untouched"} <= set(found):
        return
    parts = []
    for who in ("retrained", "lightgbm", "river"):
        if who in found:
            times = learning_seconds(found[who]) / learning_seconds(found["tolerant"])
            parts.append(f"{LEARNERS[who].title}: {_error(found[who])} ({fold(times)})")
    others = f" The others, with their seconds relative to it: {'; '.join(parts)}." if parts else ""
    yield (
        f"{FULL[name].title}: graftboost with tolerance {TOLERANT:g} has an error of "
        f"{_error(found['tolerant'])}, the untouched model {_error(found['untouched'])}.{others}"
    )


def _error(values: Values) -> str:
    error = error_of(values)
    return in_percent(error) if values["task"] == "classification" else four_digits(error)


EXPERIMENT = Experiment(
    name="streams",
    title="Streams",
    question=(
        "Rows arrive continuously and expire after a while. How well does a model that is updated "
        "at each step follow the drift? It is compared with LightGBM, retrained at each step or "
        "periodically, with an adaptive random forest, and with the untouched model of the first "
        "window."
    ),
    paper=None,
    caption=(
        "Error over time. Each point is the error over a twelfth of the stream. The dashed line is "
        "the untouched model of the first window."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)
