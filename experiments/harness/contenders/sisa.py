"""SISA: an ensemble over shards of the rows, which forgets by retraining few shards."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.libraries import LIBRARIES
from datasets import Target
from experiments.harness.contenders.contender import Contender, Predicted, classes_up_to
from experiments.harness.contenders.held import HeldRows
from experiments.harness.contenders.training import Trained

SHARDS = 5


class Sisa(Contender):
    """LightGBM on each of five shards, whose predictions are averaged.

    A removal retrains the shards that held the rows. Added rows all go to the smallest shard, so
    that one training is enough. ``retrained`` lists the shards of the last update.
    """

    name = "sisa"
    title = "SISA, 5 LightGBM shards"
    library = LIBRARIES["lightgbm"]

    held: HeldRows
    n_classes: int
    retrained: list[int]
    _shards: list[Trained | None]  # None if a shard has no rows left
    _shard_of: NDArray[np.int8]  # by the position of a row

    def fit(self, X: NDArray[np.float32], y: Target) -> Self:
        self.held = HeldRows(X, y)
        self.n_classes = classes_up_to(y, self.task)
        order = np.random.default_rng(0).permutation(len(y))
        self._shard_of = (order % SHARDS).astype(np.int8)
        self._shards = [None] * SHARDS
        self.retrain()
        return self

    def fork(self, spare: int | None = None) -> Self:
        forked = copy.copy(self)
        forked.held, forked._shards = self.held.copy(), list(self._shards)
        return forked

    def remove(self, rows: ArrayLike) -> None:
        places = self.held.remove(rows)
        self._train(np.unique(self._shard_of[places]).tolist())

    def add(self, X: NDArray[np.float32], y: Target) -> None:
        smallest = int(np.argmin(self.sizes()))
        self.held.add(X, y)
        self.n_classes = max(self.n_classes, classes_up_to(y, self.task))
        added = np.full(len(y), smallest, dtype=np.int8)
        self._shard_of = np.concatenate([self._shard_of, added])
        self._train([smallest])

    def retrain(self) -> None:
        self._train(range(SHARDS))

    def predict(self, X: NDArray[np.float32]) -> Predicted:
        predicted = [t.predict(X, self.n_classes) for t in self._shards if t is not None]
        return np.mean(predicted, axis=0)

    def sizes(self) -> list[int]:
        """Number of rows in each shard."""
        return [self.held.count(self._shard_of == shard) for shard in range(SHARDS)]

    def _train(self, shards: Iterable[int]) -> None:
        self.retrained = list(shards)
        total = 0.0
        for shard in self.retrained:
            X, y = self.held.rows(self._shard_of == shard)
            with self._timed():
                self._shards[shard] = (
                    Trained(self.library, self.task, self.settings, X, y) if len(y) else None
                )
            total += self.seconds
        self.seconds = total
