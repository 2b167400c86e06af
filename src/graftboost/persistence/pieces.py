"""Arrays to write, given in pieces that need not be contiguous in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pieces:
    """An array to write, given in pieces.

    Attributes
    ----------
    dtype : dtype
        The dtype of all pieces.
    distance : int
        Number of elements from the beginning of one piece to the beginning of the next, with zeros
        in between. 0 means that the pieces are contiguous.
    pieces : list of ndarray
        The pieces.
    """

    dtype: np.dtype[Any]
    distance: int
    pieces: list[NDArray[Any]]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Pieces:
        """Return an array as one piece."""
        flat = np.ascontiguousarray(array).reshape(-1)
        return cls(flat.dtype, len(flat), [flat])

    @property
    def size(self) -> int:
        """The number of elements, including zeros between the pieces."""
        return self.distance * len(self.pieces) or sum(len(piece) for piece in self.pieces)

    def runs(self) -> Iterator[memoryview | int]:
        """Yield the bytes of each piece, and the number of zeros that follow it."""
        for piece in self.pieces:
            if len(piece):
                yield piece.data.cast("B")
            if self.distance > len(piece):
                yield (self.distance - len(piece)) * self.dtype.itemsize


Arrays = Mapping[str, Pieces]
