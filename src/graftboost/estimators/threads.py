"""The parameter `n_jobs`."""

from __future__ import annotations

import os
from functools import cache
from numbers import Integral
from typing import Any

# More threads per core than this only wait for each other.
THREADS_PER_CORE = 4


def thread_count(n_jobs: Any) -> int:
    """Return the number of threads for a value of `n_jobs`.

    Parameters
    ----------
    n_jobs : int or None
        ``None`` and -1 mean all cores that this process may use, according to its CPU affinity, the
        quota of its container, and ``OMP_NUM_THREADS``. Joblib sets that variable in its worker
        processes, so that models fitted in parallel share the cores. -2 leaves one core free, and
        so on, down to one thread. A positive number is the number of threads, limited to four per
        core of the machine.

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
            f"n_jobs is {n_jobs!r}, of type {type(n_jobs).__name__}, but must be an integer or "
            "None. Pass a positive number, or -1 or None for all cores."
        )
    if n_jobs == 0:
        raise ValueError(
            "n_jobs is 0, but at least one thread is needed. "
            "Pass a positive number, or -1 or None for all cores."
        )
    asked = int(n_jobs)
    if asked > 0:
        return min(asked, THREADS_PER_CORE * _cores_at_start())
    return max(1, _cores() + 1 + asked)


def _cores() -> int:
    """Return the number of cores that this process may use now."""
    cores = _cores_at_start()
    if hasattr(os, "sched_getaffinity"):
        cores = min(cores, len(os.sched_getaffinity(0)))
    # OpenMP allows one number per nesting level, such as "4,2". There is only one level here.
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) > 0 else cores


@cache
def _cores_at_start() -> int:
    # Cached, because reading the container's quota takes longer than predicting one row.
    import joblib

    return int(joblib.cpu_count())
