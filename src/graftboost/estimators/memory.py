"""The parameter `stats_memory`, and the memory of the machine."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

UNLIMITED = 2**63 - 1

# The memory limits of a container under Linux, for both versions of cgroups.
LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def stats_bytes(stats_memory: float | None) -> int:
    """Return the number of bytes for a value of the parameter `stats_memory`.

    Examples
    --------
    >>> stats_bytes(1e9)
    1000000000
    >>> 0 < stats_bytes(None)
    True
    """
    if stats_memory is None:
        return memory_size() // 2
    return int(min(stats_memory, UNLIMITED))


@functools.cache
def memory_size() -> int:
    """Return the bytes of memory that this process may use, or `UNLIMITED` if unknown.

    Every update asks for it, so the files are read once.
    """
    sizes = [UNLIMITED]
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not a POSIX system
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in LIMITS:
        try:
            sizes.append(int(limit.read_text()))
        except (OSError, ValueError):
            continue  # no such file, or "max"
    return min(size for size in sizes if size > 0)
