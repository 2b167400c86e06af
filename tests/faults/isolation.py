"""Call functions in processes of their own, so that the caller survives crashes and hangs."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.forking import fork, wait_for

SECONDS = 30.0  # until something counts as hung
MOST_TEXT = 200  # characters of an error
# Additional memory that a process may allocate, so that a runaway process cannot use up all of it.
# This also limits threads, each of which has a stack of megabytes.
MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class Ending:
    """How a call ended.

    Attributes
    ----------
    value : object
        What it returned, as a JSON value; None if it did not return.
    death : str
        Why it did not return; empty if it returned.
    """

    value: Any = None
    death: str = ""


def isolated(function: Callable[[], Any], seconds: float = SECONDS) -> Ending:
    """Call a function in a forked process."""
    [ending] = isolated_each(lambda _: function(), [None], seconds=seconds)
    return ending


def isolated_each(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    seconds: float = SECONDS,
    batch: int = 1,
) -> Iterator[Ending]:
    """Call a function for each of some items, `batch` of them in one forked process at most.

    When a call ends its process, the next process continues with the next item.
    """
    done = 0
    while done < len(items):
        for ending in _forked(function, items[done : done + batch], seconds):
            done += 1
            yield ending


def _forked(
    function: Callable[[Any], Any], items: Sequence[Any], seconds: float
) -> Iterator[Ending]:
    """Yield the endings of calls in one process, including the one that ends it."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as errors:

        def call() -> None:
            os.close(reading)
            _be_child(function, items, seconds, writing, errors.fileno())

        child = fork(call)
        os.close(writing)
        n_returned = 0
        with os.fdopen(reading) as lines:
            for line in lines:
                if line.endswith("\n"):
                    n_returned += 1
                    yield Ending(**json.loads(line))
        status = wait_for(child)
        if n_returned < len(items):
            yield Ending(death=_why(status, errors))


def _why(status: int, errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    said = [line for line in lines if "SUMMARY" in line or "runtime error" in line] or lines[-1:]
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGALRM:
        why = "hung"
    elif number:
        why = f"died of {signal.Signals(number).name}"
    else:
        why = f"exited with status {os.waitstatus_to_exitcode(status)}"
    return " ".join([why, *(f"({line.strip()})" for line in said[:1])])


def _be_child(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    seconds: float,
    writing: int,
    errors: int,
) -> None:
    """Make the calls and end the process."""
    try:
        faulthandler.disable()  # pytest's handler writes to the terminal
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit_memory()
        # Python's own handler would run only when the engine returns.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for item in items:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            _write(writing, json.dumps(_called(function, item)).encode() + b"\n")
    finally:
        os._exit(0)


def _limit_memory() -> None:
    if "asan" in os.environ.get("LD_PRELOAD", ""):  # AddressSanitizer maps terabytes
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, hard))


def _called(function: Callable[[Any], Any], item: Any) -> dict[str, Any]:
    try:
        return {"value": function(item)}
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = ""
        with contextlib.suppress(BaseException):
            said = f": {error}".splitlines()[0][:MOST_TEXT]
        return {"death": f"{type(error).__name__}{said} ({place.name}:{place.lineno})"}


def _write(writing: int, data: bytes) -> None:
    while data:
        data = data[os.write(writing, data) :]
