"""Randomness as a hash of (seed, purpose, index), never a shared stream."""

from __future__ import annotations

DITHER = 0x646974686572  # the purpose of its hashes, which no tree has as its number


def _mix(x: int) -> int:
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def fraction(seed: int, a: int, b: int) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    return (_hash(seed, a, b) >> 11) * 2.0**-53


def _hash(seed: int, a: int, b: int) -> int:
    mask = 2**64 - 1
    return _mix((_mix((_mix(seed & mask) + a) & mask) + b) & mask)


def dither(seed: int, tree: int, row_id: int) -> float:
    """What is added to a row's gradient in a tree before it is rounded, from -1/2 up to 1/2.

    Rounding after a random shift is right on average, so that the errors of many rows cancel.
    """
    mask = 2**32 - 1
    of_tree = _hash(seed, DITHER, tree) >> 32
    of_row = (row_id & mask) ^ (((row_id >> 32) & mask) * 0x9E3779B1 & mask)
    x = of_row ^ of_tree
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & mask
    x = ((x ^ (x >> 15)) * 0x846CA68B) & mask
    return (x - 2**32 if x >= 2**31 else x) * 2.0**-32
