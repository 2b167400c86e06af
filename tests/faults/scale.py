"""How much is tried: a little by ``make test``, much by ``make torture``."""

from __future__ import annotations

import os

# Times what `make torture` tries by default; 0 is what the suite tries.
TORTURE = float(os.environ.get("GRAFTBOOST_TORTURE", "0"))


def amount(suite: int, torture: int) -> int:
    """Return how many to try of something."""
    return max(2, round(torture * TORTURE)) if TORTURE else suite


def spread(n: int, most: int) -> list[int]:
    """Return numbers from 1 to `n`, evenly spread and both ends among them, `most` at most.

    Examples
    --------
    >>> spread(100, 4)
    [1, 34, 67, 100]
    """
    if n <= most:
        return list(range(1, n + 1))
    return sorted({1 + round(i * (n - 1) / (most - 1)) for i in range(most)})
