"""The interface of all contenders."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.libraries import Library
from benchmarks.settings import Settings
from datasets import Target, Task

Predicted = NDArray[np.floating[Any]]


class Contender(ABC):
    """A model that is trained, and from which rows are removed or to which rows are added.

    Rows are identified by position: those of `fit` are 0 to n - 1, those added later continue from
    n, and removals do not shift them. Targets of a classification are classes 0 to K - 1, and
    predicted probabilities have a column for each class up to the largest one seen so far.

    ``seconds`` is the time of the last `fit`, `remove`, `add` or `retrain`, without the
    bookkeeping that only the comparison needs.
    """

    name: ClassVar[str]  # on the command line and in results
    title: ClassVar[str]  # in tables
    library: ClassVar[Library]  # that it uses
    in_place: ClassVar[bool] = True  # False if an update is a retrain

    def __init__(self, task: Task, settings: Settings) -> None:
        self.task, self.settings = task, settings
        self.seconds = 0.0

    @classmethod
    def available(cls) -> bool:
        """Whether its library is installed."""
        return cls.library.available()

    @abstractmethod
    def fit(self, X: NDArray[np.float32], y: Target) -> Self:
        """Train on these rows."""

    def fork(self, spare: int | None = None) -> Self:
        """A copy to be updated.

        The first update of some contenders builds state that later updates use. With ``spare``,
        such a contender has already removed that row, which later updates must not use.
        """
        return copy.deepcopy(self)

    @abstractmethod
    def remove(self, rows: ArrayLike) -> None:
        """Remove the rows at these positions."""

    @abstractmethod
    def add(self, X: NDArray[np.float32], y: Target) -> None:
        """Add rows."""

    @abstractmethod
    def retrain(self) -> None:
        """Retrain on the rows that it holds."""

    @abstractmethod
    def predict(self, X: NDArray[np.float32]) -> Predicted:
        """Class probabilities, or the predicted target."""

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        with self.library.thread_limit(self.settings.threads):
            yield
        self.seconds = time.perf_counter() - start


def classes_up_to(y: Target, task: Task) -> int:
    """Largest class among these, plus one; 0 for a regression.

    Examples
    --------
    >>> classes_up_to(np.array([0, 4, 1]), "classification")
    5
    """
    return int(y.max()) + 1 if task == "classification" and len(y) else 0


def in_columns(predicted: Predicted, classes: NDArray[Any], n_classes: int) -> Predicted:
    """Probabilities of some classes, in a table with a column for each class from 0.

    Examples
    --------
    >>> in_columns(np.array([[0.7, 0.3]]), np.array([0, 2]), 3)
    array([[0.7, 0. , 0.3]])
    """
    if len(classes) == n_classes:
        return predicted
    table = np.zeros((len(predicted), n_classes), dtype=predicted.dtype)
    table[:, classes.astype(np.int64)] = predicted
    return table
