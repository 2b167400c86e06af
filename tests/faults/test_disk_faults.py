"""A call that changes the disk fails: refused changes are not made, and others are kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from .scale import amount, spread
from .serving import Ask, server
from .shims import compiled
from .store_changes import CHANGES
from .tally import Tally

# What a call does before it fails; the last one is a short write, which does not fail.
NOTHING, HALF, ALL, SHORT = range(4)
DONE = ["nothing of it done", "half of it done", "all of it done", "but half of it done"]
OPERATIONS = [*CHANGES, "add, then compact", "refit, then compact", "create", "open", "save"]
# A model is written by many similar writes.
MOST_WRITES = amount(suite=2, torture=1000)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """A function that sends a request to the process in which the disk fails."""
    library = compiled("failing_disk.cpp", tmp_path_factory.mktemp("shim"))
    with server("tests.faults.disk_server", {"LD_PRELOAD": str(library)}) as ask:
        yield ask


@pytest.mark.parametrize("operation", OPERATIONS)
def test_calls_that_fail(ask: Ask, operation: str) -> None:
    tally = Tally("a call to the disk fails")
    calls = ask(operation=operation)
    faults = list(_faults(calls))
    for fault, found in zip(faults, ask(operation=operation, faults=faults), strict=True):
        number, for_good, error, done = fault
        after = ", as all after it" if for_good else ""
        trial = f"call {number} of {len(calls)}, {calls[number - 1]}, {errno.errorcode[error]}"
        tally.add(*found, f"{trial}{after}, {DONE[done]}")
    tally.check()


def _faults(calls: list[str]) -> Iterator[tuple[int, bool, int, int]]:
    """Yield the call, whether later calls fail too, the error and what is done, for each fault."""
    writes = [number for number, name in enumerate(calls, 1) if "write" in name]
    tried = {writes[i - 1] for i in spread(len(writes), MOST_WRITES)}
    for number, name in enumerate(calls, 1):
        if "write" in name and number in tried:
            for done, error in [(NOTHING, errno.ENOSPC), (HALF, errno.EIO), (ALL, errno.EIO)]:
                yield from ((number, for_good, error, done) for for_good in (False, True))
            yield number, False, errno.ENOSPC, SHORT
            yield number, True, errno.ENOSPC, SHORT
        elif "write" not in name:
            for done, error in [(NOTHING, errno.EIO), (ALL, errno.EIO)]:
                yield from ((number, for_good, error, done) for for_good in (False, True))
