"""Bins: the code of each value."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from graftboost.reference.hashing import fraction

MISSING = 0


@dataclass(frozen=True)
class Feature:
    """The codes of one column: 0 for missing, then intervals or categories."""

    edges: tuple[float, ...] = ()
    n_categories: int = 0

    @property
    def n_codes(self) -> int:
        """The number of codes; the last code of a categorical feature is "unseen"."""
        return self.n_categories + 2 if self.n_categories else len(self.edges) + 2

    def code(self, value: float) -> int:
        """The code of a value; a value equal to an edge lies left of it."""
        if math.isnan(value):
            return MISSING
        if self.n_categories:
            return int(value) + 1 if 0 <= value < self.n_categories else self.n_categories + 1
        return 1 + bisect_left(self.edges, value)


# A column in which hardly any value differs from 0 has the bins below 0, 0 and above 0.
RARE = Feature((-math.ulp(0.0), 0.0))


def fit_feature(
    column: Sequence[float],
    index: int = 0,
    *,
    max_bins: int = 255,
    split_sample: float = 1.0,
    width: bool = False,
    seed: int = 0,
    rare_below: int = 0,
) -> Feature:
    """Divide a numeric column (small enough to be read completely) into bins.

    A column is rare, and only divided at 0, if fewer than `rare_below` values and fewer than one in
    eight differ from 0.
    """
    n_rows, n_other = len(column), sum(v != 0 for v in column)
    if n_other < rare_below and 8 * n_other < n_rows:
        return RARE
    ordered = sorted(v + 0.0 for v in column if not math.isnan(v))
    values = sorted(set(ordered))
    cut = _width_boundaries if width else _quantile_boundaries
    boundaries = cut(ordered, values, max_bins)
    limit = math.ceil(split_sample * max_bins)
    if len(boundaries) > limit:
        spacing = len(boundaries) / limit
        first = fraction(seed, index, 0) * spacing
        last = len(boundaries) - 1
        boundaries = [boundaries[min(int(first + k * spacing), last)] for k in range(limit)]
    return Feature(tuple(edge_between(values[b], values[b + 1]) for b in boundaries))


def _quantile_boundaries(ordered: list[float], values: list[float], max_bins: int) -> list[int]:
    """Boundary b lies between values[b] and values[b + 1].

    A value with at least as many rows as its share of the bins has a bin of its own, and the other
    rows share the other bins evenly. For every k, the boundary that is nearest to having k bins on
    its left is chosen, and the lower one of two.
    """
    if len(values) <= max_bins:
        return list(range(len(values) - 1))
    counts = [bisect_right(ordered, v) - bisect_left(ordered, v) for v in values]
    n_rows, n_bins, least_frequent = len(ordered), max_bins, math.inf
    for count in sorted(counts, reverse=True):
        if count * n_bins < n_rows:
            break
        n_rows, n_bins, least_frequent = n_rows - count, n_bins - 1, count
    # The bins on the left of each boundary, times n_rows.
    filled: list[int] = []
    for count in counts[:-1]:
        own = n_rows if count >= least_frequent else count * n_bins
        filled.append((filled[-1] if filled else 0) + own)
    chosen: list[int] = []
    for k in range(1, max_bins):
        b = _nearest(filled, k * n_rows)
        if not chosen or chosen[-1] < b:
            chosen.append(b)
    return chosen


def _nearest(ordered: list[int], wanted: int) -> int:
    """The index of the nearest number, and the lower one of two."""
    return min(range(len(ordered)), key=lambda i: abs(ordered[i] - wanted))


def _width_boundaries(ordered: list[float], values: list[float], max_bins: int) -> list[int]:
    """Algorithm 4 of the paper: double the width until there are few enough bins."""
    width = 1e-10
    while values:
        chosen: list[int] = []
        start = 0
        while (start := bisect_right(values, values[start] + width)) < len(values):
            chosen.append(start - 1)
        if len(chosen) < max_bins:
            return chosen
        width *= 2
    return []


def edge_between(low: float, high: float) -> float:
    """The shortest decimal in the middle half of (low, high); low if they are neighbours."""
    middle, quarter = low / 2 + high / 2, high / 4 - low / 4
    if not low < middle < high:
        return low
    for digits in range(17):
        edge = float(f"{middle:.{digits}e}")
        if low + quarter <= edge <= high - quarter:
            return edge
    return middle
