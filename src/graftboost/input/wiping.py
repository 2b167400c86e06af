"""Copies of rows that are made on their way to the engine, overwritten once they have served.

Memory that is given back keeps its content until somebody else uses it. A row that is removed later
must not be found there, and by then nobody knows where to look.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray


def overwrite(table: Any) -> None:
    """Fill an array, or the cells of a CSR table, with zeros."""
    arrays = [table.data, table.indices] if hasattr(table, "indptr") else [table]
    for array in arrays:
        array.fill(0)


def largest(ids: NDArray[Any]) -> int:
    """Return the largest id, without leaving it behind in a number of numpy's."""
    found = ids.max(keepdims=True)
    value = int(found.item())
    overwrite(found)
    return value


class Copies:
    """Arrays that nobody else holds; they are overwritten at the end of a ``with`` block.

    Examples
    --------
    >>> import numpy as np
    >>> given = np.array([1.0, 2.0, 3.0])
    >>> with Copies() as copies:
    ...     chosen = copies.add(given[[0, 2]])
    ...     chosen.tolist()
    [1.0, 3.0]
    >>> chosen.tolist(), given.tolist()
    ([0.0, 0.0], [1.0, 2.0, 3.0])
    """

    def __init__(self) -> None:
        self._tables: list[Any] = []

    def add(self, table: Any) -> Any:
        """Take note of an array or CSR table, and return it."""
        self._tables.append(table)
        return table

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._tables:
            overwrite(self._tables.pop())
