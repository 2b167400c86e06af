"""Streams whose rows come and expire: updates beside retraining and a learner made for streams."""

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
from experiments.experiment import Case, Experiment, Scale, Values
from experiments.results import Results
from graftboost.audit.plotting import legend, lines, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 10  # steps from one periodic retraining to the next
STRETCHES = 12  # in which the picture shows the error over time


@dataclass(frozen=True)
class Stream:
    """Rows in their order, and how many of them are held and come at once."""

    title: str
    task: Task
    window: int
    step: int
    why: str  # what the window and the step are, in words
    every: int = 1  # of so many rows one is taken: the learner that goes row by row is slow
    max_rows: int | None = None
    settings: Settings = field(default_factory=Settings)

    def rows(self, name: str) -> tuple[NDArray[np.float32], Target]:
        """Its rows."""
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
    """A learner, what it is called, and what it needs."""

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
        "graftboost, fitted anew at each step",
        lambda name, plan, task: Retrained(name, plan, task, library=LIBRARIES[OURS]),
    ),
    "lightgbm": Who("LightGBM, retrained at each step", Retrained, LIGHTGBM),
    "lightgbm-periodic": Who(
        f"LightGBM, retrained every {PERIOD}th step",
        lambda name, plan, task: Retrained(name, plan, task, every=PERIOD),
        LIGHTGBM,
    ),
    "river": Who("river, adaptive random forest", RowByRow, RIVER),
    "untouched": Who("graftboost, not touched", Untouched),
}


def cases(scale: Scale) -> Iterator[Case]:
    """One case for each stream and learner."""
    for name, stream in (QUICK if scale == "quick" else FULL).items():
        for who in LEARNERS:
            yield Case({"data": name, "learner": who}, partial(measure, name, who, stream))


def measure(name: str, who: str, stream: Stream) -> Values:
    """Let one learner follow one stream."""
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
    """Error of all steps or of some: share of wrong classes, or root of the mean square."""
    error = mean(values["error"] if stretch is None else stretch)
    return error if values["task"] == "classification" else math.sqrt(error)


def learning_seconds(values: Values) -> float:
    """Seconds of learning after the first window, which is a plain training for most."""
    return sum(values["learn_seconds"][1:])


def _found(results: Results, name: str) -> dict[str, Values]:
    """What was measured on a stream, by learner."""
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
    head = ["stream", "learner", "error", "R2", "learning", "a step", "predicting", "refits"]
    return f"{_caption(results)}\n\n{table(head, rows)}"


def _caption(results: Results) -> str:
    streams = []
    for name in results.all_of("data"):
        values = next(iter(_found(results, name).values()), None)
        if values is not None:
            why = f" ({FULL[name].why})" if results.scale == "full" else ""
            thinned = f", one of {values['every']}" if values["every"] > 1 else ""
            streams.append(
                f"{FULL[name].title}, {values['rows']:,} rows{thinned}: a window of "
                f"{values['window']:,}, {len(values['error'])} steps of {values['step']}{why}"
            )
    return (
        "At each step the new rows are predicted, then learned, and as many of the oldest are let "
        "go. river has no window. The error is the share of rows taken for another class, or the "
        "root of the mean squared error, with R2 beside it; seconds are those after the first "
        f"window. {'; '.join(streams)}."
    )


def draw(results: Results) -> Figure:
    """The error over time, stream by stream."""
    names = results.all_of("data")
    figure, axes = panels(len(names), columns=2, size=(5.2, 3.0))
    for axis, name in zip(axes, names, strict=True):
        series, places = {}, []
        for who, values in _found(results, name).items():
            error = np.array(values["error"])
            parts = np.array_split(np.arange(len(error)), min(STRETCHES, len(error)))
            scale = 100 if values["task"] == "classification" else 1
            series[LEARNERS[who].title] = [scale * error_of(values, error[p]) for p in parts]
            places = [values["window"] + values["step"] * (p.mean() + 0.5) for p in parts]
        lines(axis, places, series, controls=[LEARNERS["untouched"].title])
        classes = FULL[name].task == "classification"
        axis.set_title(FULL[name].title)
        axis.set_xlabel("row of the stream")
        axis.set_ylabel("error, %" if classes else "root mean squared error")
    legend(figure, columns=3)
    return figure


def remark(results: Results) -> str:
    """Sentences from the figures."""
    sentences = [text for name in results.all_of("data") for text in _on_stream(results, name)]
    sentences.append(
        "The default tolerance is made for rows that must be forgotten at once; in a stream all "
        f"rows leave in the end, and {TOLERANT:g} is what docs/updates.md advises. Where "
        "graftboost fitted anew does better than any update, look at the bins: they stay those of "
        "the first window, so values beyond its range, such as those of a feature that counts the "
        "days, fall into the outermost bin and cannot be told apart. The rows of Covtype are "
        "thinned because river takes milliseconds for each."
    )
    return " ".join(sentences)


def _on_stream(results: Results, name: str) -> Iterator[str]:
    found = _found(results, name)
    if not {"tolerant", "untouched"} <= set(found):
        return
    parts = []
    for who in ("retrained", "lightgbm", "river"):
        if who in found:
            times = learning_seconds(found[who]) / learning_seconds(found["tolerant"])
            parts.append(f"{LEARNERS[who].title} {_error(found[who])} in {fold(times)} the seconds")
    yield (
        f"{FULL[name].title}: graftboost with tolerance {TOLERANT:g} has "
        f"{'; '.join([_error(found['tolerant']), *parts])}; if nothing is done it is "
        f"{_error(found['untouched'])}."
    )


def _error(values: Values) -> str:
    error = error_of(values)
    return in_percent(error) if values["task"] == "classification" else four_digits(error)


EXPERIMENT = Experiment(
    name="streams",
    title="Streams",
    question=(
        "Rows arrive all day and expire after a while. How far does a model that is updated at "
        "each step follow the drift, beside LightGBM trained again at each step or now and then, "
        "beside a forest made for streams, and beside the model of the first window?"
    ),
    paper=None,
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)
