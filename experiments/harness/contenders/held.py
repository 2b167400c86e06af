"""Rows that a contender holds, for those that keep none themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datasets import Target


class HeldRows:
    """Rows by their places, in pieces as they came, and which of them are still there.

    The pieces are shared between copies and never written to.
    """

    def __init__(self, X: NDArray[np.float32], y: Target) -> None:
        self._pieces: list[tuple[NDArray[np.float32], Target]] = [(X, y)]
        self._there = np.ones(len(y), dtype=np.bool_)

    def copy(self) -> HeldRows:
        """Another account of the same rows."""
        other = object.__new__(HeldRows)
        other._pieces, other._there = list(self._pieces), self._there.copy()
        return other

    def remove(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Let rows go; returns their places."""
        places = np.atleast_1d(np.asarray(rows, dtype=np.int64))
        if not self._there[places].all():
            gone = places[~self._there[places]][0]
            raise ValueError(f"rows holds {gone}, which was removed before. Remove a row once.")
        self._there[places] = False
        return places

    def add(self, X: NDArray[np.float32], y: Target) -> NDArray[np.int64]:
        """Take rows in; returns the places they got."""
        first = len(self._there)
        self._pieces.append((X, y))
        self._there = np.concatenate([self._there, np.ones(len(y), dtype=np.bool_)])
        return np.arange(first, first + len(y))

    def rows(
        self, among: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Rows that are there, or those of them that a mask over all places holds too."""
        X, y = self._all()
        chosen = self._there if among is None else self._there & among
        return (X, y) if chosen.all() else (X[chosen], y[chosen])

    def count(self, among: NDArray[np.bool_]) -> int:
        """How many of the rows of a mask over all places are there."""
        return int((self._there & among).sum())

    def _all(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        if len(self._pieces) > 1:
            X, y = (np.concatenate(parts) for parts in zip(*self._pieces, strict=True))
            self._pieces = [(X, y)]
        return self._pieces[0]
