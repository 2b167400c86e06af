"""Learners that follow a stream, in which each row is predicted before it is added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import OURS, Library
from benchmarks.results import Record
from benchmarks.settings import Settings
from benchmarks.updates.part import Plan
from benchmarks.updates.timing import Retrains, new_model, timed
from datasets import Table, Target, Task

# In a stream all rows leave in the end, so nothing has to be forgotten at once, and a model that
# regrows fewer nodes follows the drift better. This is a tolerance of the regret rule.
TOLERANT = 1000.0


class River(Library):
    """Its adaptive random forest learns row by row and has no window."""

    name = title = module = distribution = "river"

    def model(self, task: Task, settings: Settings) -> Any:
        from river import forest  # `import river` does not load it

        kind = forest.ARFClassifier if task == "classification" else forest.ARFRegressor
        return kind(seed=0)


RIVER = River()


class Learner(ABC):
    """A model that is fitted to the first window and then follows the stream.

    ``record`` holds the measurements of each step.
    """

    record: Record

    @abstractmethod
    def start(self, X: Table, y: Target, window: int) -> None:
        """Learn the first ``window`` rows of the stream."""

    @abstractmethod
    def predict(self, X: Table) -> Target:
        """Predicted classes or targets of new rows."""

    @abstractmethod
    def follow(self, first: int, last: int) -> None:
        """Add the rows from ``first`` to ``last`` and remove as many of the oldest."""


class Updated(Learner):
    """graftboost, updated in place; row ids are positions in the stream.

    With a tolerance, the regret rule selects the nodes to regrow.
    """

    def __init__(
        self, data: str, plan: Plan, task: Task = "classification", tolerance: float | None = None
    ) -> None:
        self.record = Record(data, OURS)
        self._model = new_model(plan, task)
        if tolerance is None:
            self.record.case["fidelity"] = self._model.fidelity
        else:
            self._model.set_params(update_rule="regret", tolerance=tolerance)
            self.record.case["tolerance"] = tolerance

    def start(self, X: Table, y: Target, window: int) -> None:
        self._X, self._y, self._window = X, y, window
        self._model.fit(X[:window], y[:window])

    def predict(self, X: Table) -> Target:
        return np.asarray(self._model.predict(X))

    def follow(self, first: int, last: int) -> None:
        oldest = np.arange(first - self._window, last - self._window)
        report = self._model.update(self._X[first:last], self._y[first:last], remove=oldest)
        self.record.add("refits", report.strategy == "refit")


class Untouched(Updated):
    """The control: graftboost after the first window, without updates."""

    def __init__(self, data: str, plan: Plan, task: Task = "classification") -> None:
        super().__init__(data, plan, task)
        self.record.case["untouched"] = True

    def follow(self, first: int, last: int) -> None:
        pass


class Retrained(Learner):
    """The yardstick, or another library, retrained on the window every few steps."""

    def __init__(
        self,
        data: str,
        plan: Plan,
        task: Task = "classification",
        *,
        library: Library | None = None,
        every: int = 1,
    ) -> None:
        self._retrains = Retrains(data, plan, task, library)
        self.record = self._retrains.record
        self._every, self._steps = every, 0

    def start(self, X: Table, y: Target, window: int) -> None:
        self._X, self._y, self._window = X, y, window
        self._train(window)

    def predict(self, X: Table) -> Target:
        return np.asarray(self._model.predict(X))

    def follow(self, first: int, last: int) -> None:
        self._steps += 1
        if self._steps % self._every == 0:
            self._train(last)

    def _train(self, last: int) -> None:
        rows = slice(last - self._window, last)
        self._model = self._retrains.train(self._X[rows], self._y[rows])


class RowByRow(Learner):
    """River's forest, which has no window."""

    def __init__(self, data: str, plan: Plan, task: Task = "classification") -> None:
        self.record = Record(data, RIVER.name)
        self._model = RIVER.model(task, plan.settings)

    def start(self, X: NDArray[np.float32], y: Target, window: int) -> None:
        # Its rows are dictionaries. Those to learn are made here, in the time of the first window,
        # which tables exclude; those to predict are made when they are needed.
        self._rows = [dict(enumerate(row)) for row in X.tolist()]
        self._y: list[Any] = y.tolist()
        self.follow(0, window)

    def predict(self, X: NDArray[np.float32]) -> Target:
        rows = [dict(enumerate(row)) for row in X.tolist()]
        return np.array([self._model.predict_one(row) for row in rows])

    def follow(self, first: int, last: int) -> None:
        for row, target in zip(self._rows[first:last], self._y[first:last], strict=True):
            self._model.learn_one(row, target)


def start(learner: Learner, X: Table, y: Target, window: int) -> None:
    """Fit a learner to the first window."""
    learner.record.add("learn_seconds", timed(learner.start, X, y, window)[0])


def step(learners: Sequence[Learner], X: Table, y: Target, first: int, last: int) -> None:
    """Have learners predict the rows from ``first`` to ``last`` and then learn them.

    Their records get the share of misclassified rows, or the mean squared error.
    """
    new = slice(first, last)
    for learner in learners:
        seconds, predicted = timed(learner.predict, X[new])
        wrong = predicted != y[new] if y.dtype.kind == "i" else (predicted - y[new]) ** 2
        learner.record.add("predict_seconds", seconds)
        learner.record.add("error", float(np.mean(wrong)))
        learner.record.add("learn_seconds", timed(learner.follow, first, last)[0])
