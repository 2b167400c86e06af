"""The number of trials: few in ``make test``, many in ``make torture``."""

from __future__ import annotations

import os

# Multiplies the trials of `make torture`; 0 means those of the suite.
TORTURE = float(os.environ.get("GRAFTBOOST_TORTURE", "0"))


def amount(suite: int, torture: int) -> int:
    """Return the number of trials."""
    return max(2, round(torture * TORTURE)) if TORTURE else suite


def spread(n: int, most: int) -> list[int]:
    """Return at most `most` evenly spaced numbers from 1 to `n`, including both ends.

    Examples
    --------
    >>> spread(100, 4)
    [1, 34, 67, 100]
    """
    if n <= most:
        return list(range(1, n + 1))
    return sorted({1 + round(i * (n - 1) / (most - 1)) for i in range(most)})
