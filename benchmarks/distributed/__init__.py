"""Models in processes of a Ray cluster, compared with one process and other libraries."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.distributed.ours import measure_ours
from benchmarks.distributed.peers import measure_peers
from benchmarks.distributed.rows import DATA, QUICK, load
from benchmarks.distributed.tables import goals, text
from benchmarks.results import Record
from benchmarks.settings import Settings

__all__ = ["DATA", "KIND", "QUICK", "goals", "measure", "text"]

KIND = "distributed"


def measure(
    name: str, settings: Settings, repeats: int, say: Callable[[str], None]
) -> list[Record]:
    """Measure one data set."""
    rows = load(name)
    return [*measure_ours(rows, settings, repeats, say), *measure_peers(rows, settings, say)]
