"""graftboost under its own update rule and those of the paper and of its predecessor."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from benchmarks.libraries import OURS, Library
from benchmarks.settings import Settings
from benchmarks.updates.learners import TOLERANT
from benchmarks.updates.timing import copy_of
from datasets import Table, Target, Task
from experiments.harness.contenders.contender import Contender, Predicted, classes_up_to, in_columns
from experiments.harness.paper_library import PAPER_LIBRARY


class Ours(Contender):
    """graftboost with the paper's bins and its own update rule, updated in place.

    ``model`` is the estimator; ``refits`` counts the updates that were refits.
    """

    name = OURS
    title = "graftboost"
    library: Library = PAPER_LIBRARY
    parameters: ClassVar[dict[str, Any]] = {}

    def __init__(self, task: Task, settings: Settings) -> None:
        super().__init__(task, settings)
        self.model = self.library.model(task, settings).set_params(**self.parameters)
        self.refits = self.n_classes = 0

    def fit(self, X: Table, y: Target) -> Self:
        self.n_classes = classes_up_to(y, self.task)
        with self._timed():
            self.model.fit(X, y)
        return self

    def fork(self, spare: int | None = None) -> Self:
        forked = copy.copy(self)
        forked.model = copy.deepcopy(self.model) if spare is None else copy_of(self.model, spare)
        return forked

    def under(self, kind: type[Ours], spare: int) -> Ours:
        """A copy to be updated under another rule.

        The rules train identical models, so one fit serves all of them.
        """
        forked = kind(self.task, self.settings)
        forked.model = copy_of(self.model, spare, **kind.parameters)
        forked.n_classes = self.n_classes
        return forked

    def remove(self, rows: ArrayLike) -> None:
        with self._timed():
            report = self._remove(rows)
        self.refits += report.strategy == "refit"

    def add(self, X: Table, y: Target) -> None:
        self.n_classes = max(self.n_classes, classes_up_to(y, self.task))
        with self._timed():
            report = self._add(X, y)
        self.refits += report.strategy == "refit"

    def retrain(self) -> None:
        with self._timed():
            self.model.refit()

    def predict(self, X: Table) -> Predicted:
        predicted = self.library.predict(self.model, X, self.task, self.settings)
        if self.task == "regression":
            return predicted
        return in_columns(predicted, self.model.classes_, self.n_classes)

    def _remove(self, rows: ArrayLike) -> Any:
        return self.model.remove(rows)

    def _add(self, X: Table, y: Target) -> Any:
        return self.model.add(X, y)


class Paper(Ours):
    """The paper's rule: a split is kept while it is among the best tenth of its candidates."""

    name = "paper"
    title = "graftboost, paper's rule"
    parameters: ClassVar[dict[str, Any]] = {"update_rule": "rank", "tolerance": 0.1}


class Predecessor(Ours):
    """The rule of the paper's predecessor: a split is kept only while it is the best.

    The predecessor computes fresh gradients in every iteration of an update. Here they are
    computed once, after the update, and splits are checked with recorded gradients. An update may
    also be a refit, which limits its seconds.
    """

    name = "predecessor"
    title = "graftboost, rank 0, refreshed"
    parameters: ClassVar[dict[str, Any]] = {"update_rule": "rank", "tolerance": 0.0}

    def _remove(self, rows: ArrayLike) -> Any:
        report = super()._remove(rows)
        self.model.refresh()
        return report

    def _add(self, X: Table, y: Target) -> Any:
        report = super()._add(X, y)
        self.model.refresh()
        return report


class Tolerant(Ours):
    """For streams: by the regret rule, nodes are regrown only if their regret is large."""

    name = "tolerant"
    title = f"graftboost, tolerance {TOLERANT:g}"
    parameters: ClassVar[dict[str, Any]] = {"update_rule": "regret", "tolerance": TOLERANT}


class Untouched(Ours):
    """The control, which ignores all updates."""

    name = "untouched"
    title = "graftboost, untouched"

    def fork(self, spare: int | None = None) -> Self:
        return copy.copy(self)

    def remove(self, rows: ArrayLike) -> None:
        self.seconds = 0.0

    def add(self, X: Table, y: Target) -> None:
        self.n_classes = max(self.n_classes, classes_up_to(y, self.task))
        self.seconds = 0.0
