"""A limit for measured figures, and how such figures are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A limit, and the values that were measured against it, by data set.

    The worst value counts, or with ``mean`` the average. The worst is the greatest, or with
    ``least``, if the limit is a lower one, the smallest.
    """

    what: str
    limit: float
    values: Mapping[str, float | None]
    write: Callable[[float], str]
    mean: bool = False
    least: bool = False

    @property
    def known(self) -> dict[str, float]:
        """Values of the data sets that were measured."""
        return {name: value for name, value in self.values.items() if value is not None}

    @property
    def worst(self) -> str:
        """Data set with the worst value; at least one must have been measured."""
        choose = min if self.least else max
        return choose(self.known, key=self.known.__getitem__)

    @property
    def measured(self) -> float | None:
        """The value that is compared with the limit."""
        known = self.known
        if not known:
            return None
        return math.fsum(known.values()) / len(known) if self.mean else known[self.worst]

    def wanted(self) -> str:
        """The limit in words."""
        return f"{'at least' if self.least else 'at most'} {self.write(self.limit)}"

    def verdict(self) -> str:
        """Yes or no, with the figure and its data set."""
        value = self.measured
        if value is None:
            return "not measured"
        reached = value >= self.limit if self.least else value <= self.limit
        where = f" ({self.worst})" if not self.mean and len(self.values) > 1 else ""
        missing = len(self.values) - len(self.known)
        part = f", on {len(self.known)} of {len(self.values)} data sets" if missing else ""
        return f"{'yes' if reached else 'no'}: {self.write(value)}{where}{part}"


def times(value: float) -> str:
    """Ratio, as in "0.80"."""
    return f"{value:.2f}"


def fold(value: float) -> str:
    """Speed-up, as in "62x"."""
    return f"{value:.0f}x" if value >= 20 else f"{value:.1f}x"


def percent(value: float) -> str:
    """Relative difference, as in "+1.0%"."""
    return f"{100 * value:+.1f}%"


def points(value: float) -> str:
    """Difference of two fractions, in percentage points."""
    return f"{100 * value:+.2f} points"


def gigabytes(value: float) -> str:
    """Bytes, as in "1.32 GB"."""
    return f"{value / 1e9:.2f} GB"
