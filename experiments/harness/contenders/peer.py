"""Base of contenders whose library does not keep the rows."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datasets import Target
from experiments.harness.contenders.contender import Contender, Predicted, classes_up_to
from experiments.harness.contenders.held import HeldRows
from experiments.harness.contenders.training import Trained


class Peer(Contender):
    """A model of another library, together with the rows that it represents."""

    held: HeldRows
    trained: Trained
    n_classes: int
    parameters: ClassVar[dict[str, Any]] = {}  # of the estimator, besides the settings

    def fit(self, X: NDArray[np.float32], y: Target) -> Self:
        self.held = HeldRows(X, y)
        self.n_classes = classes_up_to(y, self.task)
        self.retrain()
        return self

    def fork(self, spare: int | None = None) -> Self:
        forked = copy.copy(self)  # models are never modified: an update makes a new one
        forked.held = self.held.copy()
        return forked

    def remove(self, rows: ArrayLike) -> None:
        self.held.remove(rows)
        self._follow()

    def add(self, X: NDArray[np.float32], y: Target) -> None:
        self.held.add(X, y)
        self.n_classes = max(self.n_classes, classes_up_to(y, self.task))
        self._follow()

    def retrain(self) -> None:
        X, y = self.held.rows()
        with self._timed():
            self.trained = Trained(self.library, self.task, self.settings, X, y, **self.parameters)

    def predict(self, X: NDArray[np.float32]) -> Predicted:
        with self.library.thread_limit(self.settings.threads):
            return self.trained.predict(X, self.n_classes)

    @abstractmethod
    def _follow(self) -> None:
        """Update the model to the rows held."""
