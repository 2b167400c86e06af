"""Overwrite temporary copies of rows after use.

Freed memory keeps its content until it is reused, so no stale copy may survive a later removal.
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
    """Return the largest id, and overwrite the numpy scalar that held it."""
    found = ids.max(keepdims=True)
    value = int(found.item())
    overwrite(found)
    return value


class Copies:
    """Arrays that have no other owner, overwritten at the end of a ``with`` block.

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
        """Register an array or CSR table, and return it."""
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
