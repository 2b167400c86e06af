"""A window that slides over rows in their order, each predicted before it is learned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.goal import Goal, fold, points
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK, Library
from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.results import Record, Run
from benchmarks.settings import Settings
from benchmarks.updates.part import Part, Plan
from benchmarks.updates.timing import Retrains, new_model, quietness, timed
from datasets import Target, Task

DATA = "electricity"
WINDOW, QUICK_WINDOW = 10_000, 1_000
STEP = 250
QUICK_STEPS = 3
STRETCHES = 5  # in which the table shows the error over time

# In a stream all rows leave in the end, so nothing has to be forgotten at once, and a model that
# changes its structure less follows the drift better.
TOLERANT = 1000.0


class River(Library):
    """Its adaptive random forest learns row by row and decides itself what to forget."""

    name = title = module = distribution = "river"

    def model(self, task: Task, settings: Settings) -> Any:
        from river import forest  # beside `river` itself, which does not load it

        return forest.ARFClassifier(seed=0)


RIVER = River()


class _Learner(ABC):
    """Something that learns the first window and then follows the stream."""

    record: Record

    @abstractmethod
    def start(self, X: NDArray[np.float32], y: Target, window: int) -> None:
        """Learn the first ``window`` rows of the stream."""

    @abstractmethod
    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        """Classes of rows that were not learned yet."""

    @abstractmethod
    def follow(self, first: int, last: int) -> None:
        """Learn the rows from ``first`` to ``last`` and let as many of the oldest go."""


class _Updated(_Learner):
    """Ours, updated in place: the ids of the rows are their places in the stream."""

    def __init__(self, plan: Plan, tolerance: float | None = None) -> None:
        self.record = Record(DATA, OURS)
        self._model = new_model(plan)
        if tolerance is not None:
            self._model.set_params(tolerance=tolerance)
        self.record.case["tolerance"] = self._model.tolerance

    def start(self, X: NDArray[np.float32], y: Target, window: int) -> None:
        self._X, self._y, self._window = X, y, window
        self._model.fit(X[:window], y[:window])

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.asarray(self._model.predict(X))

    def follow(self, first: int, last: int) -> None:
        oldest = np.arange(first - self._window, last - self._window)
        report = self._model.update(self._X[first:last], self._y[first:last], remove=oldest)
        self.record.add("refits", report.strategy == "refit")


class _Untouched(_Updated):
    """Ours, left as it was after the first window: what doing nothing comes to."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.record.case["untouched"] = True

    def follow(self, first: int, last: int) -> None:
        pass


class _Retrained(_Learner):
    """The yardstick, trained again from the whole window at each step."""

    def __init__(self, plan: Plan) -> None:
        self._retrains = Retrains(DATA, plan)
        self.record = self._retrains.record

    def start(self, X: NDArray[np.float32], y: Target, window: int) -> None:
        self._X, self._y, self._window = X, y, window
        self.follow(0, window)

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.asarray(self._model.predict(X))

    def follow(self, first: int, last: int) -> None:
        rows = slice(last - self._window, last)
        self._model = self._retrains.train(self._X[rows], self._y[rows])


class _RowByRow(_Learner):
    """A forest of river's, which has no window."""

    def __init__(self, plan: Plan) -> None:
        self.record = Record(DATA, RIVER.name)
        self._model = RIVER.model("classification", plan.settings)

    def start(self, X: NDArray[np.float32], y: Target, window: int) -> None:
        # Its rows are dictionaries. Making them is not the forest's work, and not in its seconds.
        self._rows = [dict(enumerate(row)) for row in X.tolist()]
        self._y: list[int] = y.tolist()
        self.follow(0, window)

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        rows = [dict(enumerate(row)) for row in X.tolist()]
        return np.array([self._model.predict_one(row) for row in rows])

    def follow(self, first: int, last: int) -> None:
        for row, label in zip(self._rows[first:last], self._y[first:last], strict=True):
            self._model.learn_one(row, label)


def measure(name: str, plan: Plan) -> list[Record]:
    """Let the learners follow the stream side by side, step by step."""
    X, y = datasets.load_in_order(name)
    window = QUICK_WINDOW if plan.quick else WINDOW
    firsts = range(window, len(y) - STEP + 1, STEP)
    if plan.quick:
        firsts = firsts[:QUICK_STEPS]
    learners = _learners(plan)
    for learner in learners:
        learner.record.case.update(window=window, step=STEP, steps=len(firsts))
        learner.record.add("learn_seconds", timed(learner.start, X, y, window)[0])
        plan.say(f"{name}  {learner.record.library}  learned the first {window:,} rows")
    for first in firsts:
        new = slice(first, first + STEP)
        for learner in learners:
            record = learner.record
            seconds, predicted = timed(learner.predict, X[new])
            record.add("predict_seconds", seconds)
            record.add("error", float(np.mean(predicted != y[new])))
            record.add("learn_seconds", timed(learner.follow, new.start, new.stop)[0])
    for learner in learners:
        plan.say(
            f"{name}  {learner.record.library}  error {_error(learner.record) or 0:.2%}"
            f"  {sum(_steps(learner.record)):.2f} s"
        )
    return [learner.record for learner in learners]


def _learners(plan: Plan) -> list[_Learner]:
    learners: list[_Learner] = [_Updated(plan, TOLERANT), _Updated(plan), _Untouched(plan)]
    if plan.yardstick is not None:
        learners.append(_Retrained(plan))
    if RIVER in plan.peers:
        learners.append(_RowByRow(plan))
    return learners


def _error(record: Record | None) -> float | None:
    values = None if record is None else record.samples.get("error")
    return sum(values) / len(values) if values else None


def _steps(record: Record | None) -> list[float]:
    """Seconds of learning at each step; the first window is a plain fit for ours too."""
    return [] if record is None else record.samples.get("learn_seconds", [])[1:]


def _faster(ours: Record | None, theirs: Record | None) -> float | None:
    """Their median step, at all steps, over our total.

    On a busy machine single steps of theirs can take a hundred times as long: those must not
    speak for us. Ours all count.
    """
    a, b = _steps(ours), _steps(theirs)
    return len(a) * median(b) / sum(a) if a and b else None


TITLES = {YARDSTICK: "LightGBM, retrained", RIVER.name: "river"}


def _title(record: Record) -> str:
    if record.library != OURS:
        return TITLES[record.library]
    if record.case.get("untouched"):
        return "graftboost, not touched"
    return f"graftboost, updated, tolerance {record.case['tolerance']:g}"


def tables(run: Run) -> str:
    """Error over time and in all, and the seconds."""
    records = [record for record in run.records if not record.failure]
    rows = []
    for record in records:
        stretches = np.array_split(np.array(record.samples["error"]), STRETCHES)
        error, steps = _error(record), _steps(record)
        refits = record.samples.get("refits")
        rows.append(
            [
                _title(record),
                *(in_percent(float(part.mean())) if len(part) else "-" for part in stretches),
                "-" if error is None else f"**{in_percent(error)}**",
                "-" if record.case.get("untouched") else in_seconds(sum(steps)),
                "-" if record.case.get("untouched") else in_seconds(median(steps)),
                in_seconds(sum(record.samples["predict_seconds"])),
                "-" if refits is None else f"{sum(refits):.0f} of {len(refits)}",
            ]
        )
    ordinals = [f"part {part + 1}" for part in range(STRETCHES)]
    head = ["learner", *ordinals, "error", "learning", "median step", "predicting", "refits"]
    text = f"{table(head, rows)}\n\n{quietness(run)}"
    if records:
        case = records[0].case
        text = (
            f"{DATA} in its order: {case['steps']} steps, at each of which {case['step']} rows are "
            f"predicted, then learned, and the {case['step']} oldest of a window of "
            f"{float(case['window']):,.0f} are let go. river's adaptive random forest has no "
            f"window and learns row by row. The error in {STRETCHES} parts of the stream and on "
            "the whole, and all seconds after the first window. Refits: at how many steps ours "
            "found that training all again was cheaper.\n\n" + text
        )
    return text


def goals(run: Run | None) -> list[Goal]:
    """Beside a retrain at each step, and beside a forest made for streams."""
    ours = theirs = river = None
    if run is not None:
        ours = run.find(DATA, OURS, tolerance=TOLERANT)
        theirs, river = run.find(DATA, YARDSTICK), run.find(DATA, RIVER.name)
    above, above_river = ({DATA: _above(ours, other)} for other in (theirs, river))
    faster = {DATA: _faster(ours, theirs)}
    return [
        Goal("stream (tolerance 1000): error above LightGBM's retrains", 0.005, above, points),
        Goal(
            "stream (tolerance 1000): times faster than LightGBM's retrains",
            4.0,
            faster,
            fold,
            least=True,
        ),
        Goal(
            "stream (tolerance 1000): error above river's adaptive forest", 0.0, above_river, points
        ),
    ]


def _above(ours: Record | None, other: Record | None) -> float | None:
    a, b = _error(ours), _error(other)
    return a - b if a is not None and b is not None else None


PART = Part("stream", (DATA,), (DATA,), measure, tables, goals, peers=(LIBRARIES[YARDSTICK], RIVER))
