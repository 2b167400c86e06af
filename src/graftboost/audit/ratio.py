"""Ratios of sums, with bootstrap intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

RESAMPLES = 2000


@dataclass(frozen=True)
class Ratio:
    """A ratio of sums, with a 95% interval.

    Attributes
    ----------
    value : float or None
        The ratio; None if the denominator is 0.
    low, high : float or None
        The interval; None if it is unbounded, because the denominator may be 0.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio_of_sums(changes: ArrayLike, whole: ArrayLike) -> Ratio:
    """Return the ratio of two sums, with a bootstrap interval.

    This is the ratio of sums and not a mean of ratios, because the denominator of a single pair may
    be close to 0. The interval is computed from pairs drawn with replacement, with a fixed seed.

    Parameters
    ----------
    changes, whole : array-like of float
        Pairs of values.

    Returns
    -------
    Ratio
        The ratio and its interval. A single pair has no interval.

    Examples
    --------
    >>> ratio_of_sums([0.5, 0.0], [1.0, 0.0]).value
    0.5
    """
    both = np.column_stack([np.asarray(changes, np.float64), np.asarray(whole, np.float64)])
    part, total = both.sum(axis=0)
    if total == 0:
        return Ratio(None)
    value = float(part / total)
    if len(both) < 2:
        return Ratio(value)
    rng = np.random.default_rng(0)
    sums = np.array(
        [both[rng.integers(len(both), size=len(both))].sum(axis=0) for _ in range(RESAMPLES)]
    )
    # If the sign of the denominator varies among the draws, the interval is unbounded.
    if (sums[:, 1] * total <= 0).mean() > 0.025:
        return Ratio(value)
    kept = sums[sums[:, 1] != 0]
    low, high = np.quantile(kept[:, 0] / kept[:, 1], [0.025, 0.975])
    return Ratio(value, float(low), float(high))
