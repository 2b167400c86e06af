"""How many threads a call may use."""

from __future__ import annotations

import os
from functools import cache
from numbers import Integral
from typing import Any

# More threads than this for each core only wait for one another.
THREADS_PER_CORE = 4


def thread_count(n_jobs: Any) -> int:
    """Return the number of threads that `n_jobs` asks for.

    Parameters
    ----------
    n_jobs : int or None
        ``None`` and -1 mean every core this process may use: its CPU affinity, the quota of its
        container, and ``OMP_NUM_THREADS`` where that is set. Joblib's worker processes set it, so
        models fitted side by side share the cores instead of fighting for them. -2 leaves one core
        free, and so on, down to a single thread. A positive number is the number of threads, up to
        four for each core of the machine; a larger one means that many.

    Returns
    -------
    int
        At least one.

    Examples
    --------
    >>> thread_count(3)
    3
    >>> thread_count(10**9) == thread_count(10**12)
    True
    >>> thread_count(None) == thread_count(-1)
    True
    """
    if n_jobs is None:
        return _cores()
    if not isinstance(n_jobs, Integral):
        raise TypeError(
            f"n_jobs is {n_jobs!r}, of type {type(n_jobs).__name__}, but a number of threads is an "
            "integer. Give a positive number, or -1 or None for all cores."
        )
    if n_jobs == 0:
        raise ValueError(
            "n_jobs is 0, but a call needs at least one thread. "
            "Give a positive number, or -1 or None for all cores."
        )
    asked = int(n_jobs)
    if asked > 0:
        return min(asked, THREADS_PER_CORE * _cores_at_start())
    return max(1, _cores() + 1 + asked)


def _cores() -> int:
    """Cores that this process may use now."""
    cores = _cores_at_start()
    if hasattr(os, "sched_getaffinity"):
        cores = min(cores, len(os.sched_getaffinity(0)))
    # OpenMP allows one number per level of nesting: "4,2". We have one level.
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) > 0 else cores


@cache
def _cores_at_start() -> int:
    # Reads the container's quota from files, which costs more than predicting one row.
    import joblib

    return int(joblib.cpu_count())
