"""Which rows are held out for validation, drawn by a hash of the row's id."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# The purpose of the hash, so that different uses of a seed give independent numbers.
HELD_OUT = 0x76616C6964  # "valid"


def held_out(ids: NDArray[np.int64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Return which rows are held out for validation.

    Whether a row is held out depends only on the seed and its id, not on the order of rows or on
    other rows. If no row would be selected, the row with the smallest hash is.

    Examples
    --------
    >>> ids = np.arange(1000)
    >>> int(held_out(ids, 0.1, seed=0).sum())
    89
    >>> bool((held_out(ids, 0.1, seed=0)[500:] == held_out(ids[500:], 0.1, seed=0)).all())
    True
    """
    hashes = hashes_to_hold_out(ids, seed)
    drawn: NDArray[np.bool_] = hashes < threshold_to_hold_out(fraction)
    return drawn if drawn.any() else hashes == hashes.min()


def hashes_to_hold_out(ids: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Return the hashes that decide which rows are held out."""
    return _hash(seed, HELD_OUT, ids)


def threshold_to_hold_out(fraction: float) -> np.uint64:
    """Return the number below which the hash of a row that is held out lies."""
    return np.uint64(fraction * 2.0**64)


def _hash(seed: int, purpose: int, ids: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hash (seed, purpose, id) like the engine."""
    start = _mix(_mix(np.array([seed], dtype=np.uint64)) + np.uint64(purpose))
    return _mix(start + ids.view(np.uint64))


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply splitmix64; array arithmetic wraps around modulo 2^64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
