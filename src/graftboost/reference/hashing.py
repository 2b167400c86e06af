"""Randomness as a hash of (seed, purpose, index), never a shared stream."""

from __future__ import annotations


def _mix(x: int) -> int:
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def fraction(seed: int, a: int, b: int) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    mask = 2**64 - 1
    hashed = _mix((_mix((_mix(seed & mask) + a) & mask) + b) & mask)
    return (hashed >> 11) * 2.0**-53
