"""What every contender can do."""

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
    """A model that learns rows and then has some taken out or put in.

    Rows are known by their places: those of `fit` are 0 to n - 1, those added later go on from n,
    and a removal shifts none. Targets of a classification are classes 0 to K - 1, and predicted
    probabilities have a column for each up to the largest class ever seen.

    ``seconds`` is what the last `fit`, `remove`, `add` or `retrain` took, without the bookkeeping
    that only a comparison needs.
    """

    name: ClassVar[str]  # in lists of contenders, and in results
    title: ClassVar[str]  # as in a table
    library: ClassVar[Library]  # what it runs on
    in_place: ClassVar[bool] = True  # False where an update is a whole new training

    def __init__(self, task: Task, settings: Settings) -> None:
        self.task, self.settings = task, settings
        self.seconds = 0.0

    @classmethod
    def available(cls) -> bool:
        """Whether what it runs on is installed."""
        return cls.library.available()

    @abstractmethod
    def fit(self, X: NDArray[np.float32], y: Target) -> Self:
        """Train on these rows."""

    def fork(self, spare: int | None = None) -> Self:
        """A copy to be updated.

        Some build on a first update what later ones find there. With ``spare`` that is behind the
        copy: a contender that needs it has lost that row, which later updates leave alone.
        """
        return copy.deepcopy(self)

    @abstractmethod
    def remove(self, rows: ArrayLike) -> None:
        """Take out the rows in these places."""

    @abstractmethod
    def add(self, X: NDArray[np.float32], y: Target) -> None:
        """Put rows in."""

    @abstractmethod
    def retrain(self) -> None:
        """Train again from scratch, with its own means, on the rows that it then holds."""

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
