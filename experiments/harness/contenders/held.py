"""The rows of contenders whose libraries do not keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datasets import Target


class HeldRows:
    """Rows by position, in the pieces in which they were added, and which of them remain.

    The pieces are shared between copies and are never modified.
    """

    def __init__(self, X: NDArray[np.float32], y: Target) -> None:
        self._pieces: list[tuple[NDArray[np.float32], Target]] = [(X, y)]
        self._there = np.ones(len(y), dtype=np.bool_)

    def copy(self) -> HeldRows:
        """A copy that shares the rows."""
        other = object.__new__(HeldRows)
        other._pieces, other._there = list(self._pieces), self._there.copy()
        return other

    def remove(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Remove rows; returns their positions."""
        places = np.atleast_1d(np.asarray(rows, dtype=np.int64))
        if not self._there[places].all():
            gone = places[~self._there[places]][0]
            raise ValueError(f"row {gone} was removed before; a row can be removed only once")
        self._there[places] = False
        return places

    def add(self, X: NDArray[np.float32], y: Target) -> NDArray[np.int64]:
        """Add rows; returns their positions."""
        first = len(self._there)
        self._pieces.append((X, y))
        self._there = np.concatenate([self._there, np.ones(len(y), dtype=np.bool_)])
        return np.arange(first, first + len(y))

    def rows(
        self, among: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """The remaining rows, or those of them that a mask over all positions selects."""
        X, y = self._all()
        chosen = self._there if among is None else self._there & among
        return (X, y) if chosen.all() else (X[chosen], y[chosen])

    def count(self, among: NDArray[np.bool_]) -> int:
        """Number of remaining rows that a mask over all positions selects."""
        return int((self._there & among).sum())

    def _all(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        if len(self._pieces) > 1:
            X, y = (np.concatenate(parts) for parts in zip(*self._pieces, strict=True))
            self._pieces = [(X, y)]
        return self._pieces[0]
