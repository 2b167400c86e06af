"""Distinct values of a column, and the position of each row's value among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Integers within a range smaller than this are found with a table instead of sorting.
TABLE_SPAN = 1 << 16


def code_integers(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[Any]] | None:
    """Return the position of each value among the distinct values, and the sorted distinct values.

    Return None if the values are not integers (of any dtype) in a small range. Such values must be
    sorted, which takes ten times as long.

    Examples
    --------
    >>> codes, distinct = code_integers(np.array([30.0, 10.0, 30.0]))
    >>> codes.tolist(), distinct.tolist()
    ([1.0, 0.0, 1.0], [10.0, 30.0])
    >>> code_integers(np.array([0.5, 1.0])) is None
    True
    """
    if values.dtype.kind not in "biuf" or not values.size:
        return None
    low, high = values.min(), values.max()
    # The condition is false for NaN.
    if not float(high) - float(low) < TABLE_SPAN or abs(float(low)) > 2.0**53:
        return None
    offsets = values.astype(np.intp)
    if values.dtype.kind == "f" and (offsets.astype(values.dtype) != values).any():
        return None
    offsets -= int(low)
    seen = np.zeros(int(high) - int(low) + 1, dtype=bool)
    seen[offsets] = True
    distinct = (np.flatnonzero(seen) + int(low)).astype(values.dtype)
    return (np.cumsum(seen) - 1.0)[offsets], distinct


def code_strings(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[Any]] | None:
    """Do the same for strings in an object array, which numpy sorts slowly."""
    if values.dtype != object:
        return None
    strings = values.tolist()
    distinct = set(strings)
    if not all(isinstance(value, str) for value in distinct):
        return None
    index = {value: float(code) for code, value in enumerate(sorted(distinct))}
    codes = np.fromiter(map(index.__getitem__, strings), np.float64, len(strings))
    return codes, np.array(list(index), dtype=object)
