"""Runs with `failing_allocations.cpp` preloaded: operations in which an allocation fails.

Trials run in forks of this process.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from graftboost import _engine

from .isolation import isolated, isolated_each
from .models import SPECIMENS, Specimen, file_of
from .operations import OPERATIONS, differences, fingerprint, go_on
from .serving import serve

NEVER = 1 << 60
MOST_FRAMES = 12
BATCH = 50  # trials in one process


@cache
def shim() -> ctypes.CDLL:
    """Return the library that is preloaded, ready for use."""
    library = ctypes.CDLL(None)
    library.faults_prepare.argtypes = [ctypes.c_size_t] * 4
    library.faults_arm.argtypes = [ctypes.c_long, ctypes.c_int]
    library.faults_seen.restype = library.faults_failed.restype = ctypes.c_long
    library.faults_prepare(*_mapped(Path(str(_engine.__file__)).name), *_mapped("libstdc++"))
    return library


def _mapped(name: str) -> tuple[int, int]:
    """Return where a library lies in memory."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    spans = [line[0].split("-") for line in lines if len(line) > 5 and name in line[5]]
    return min(int(a, 16) for a, _ in spans), max(int(b, 16) for _, b in spans)


def _stack() -> list[str]:
    offsets = (ctypes.c_size_t * MOST_FRAMES)()
    return [f"{offset:#x}" for offset in offsets[: shim().faults_stack(offsets, MOST_FRAMES)]]


def _surely(function: Callable[[], Any]) -> Any:
    ending = isolated(function)
    if ending.death:
        raise RuntimeError(f"with nothing failing: {ending.death}")
    return ending.value


@cache
def _untouched(specimen: str) -> Any:
    return _surely(lambda: go_on(SPECIMENS[specimen]()))


class Trials:
    """An operation on a model, with one allocation or another failing."""

    def __init__(self, specimen: str, operation: str) -> None:
        self.make = SPECIMENS[specimen]
        self.operation = OPERATIONS[operation]
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "model").symlink_to(file_of(specimen))
        # Threads are started once in a process, which must sometimes fail too.
        self.batch = BATCH // 10 if "threads" in specimen else BATCH
        self.untouched = _untouched(specimen)
        self.result, self.done, self.n_allocations = _surely(self._undisturbed)

    def _undisturbed(self) -> Any:
        specimen = self.make()
        shim().faults_arm(NEVER, 0)
        result = self.operation(specimen, self.folder)
        shim().faults_disarm()
        seen = shim().faults_seen()
        return [fingerprint(result, specimen), go_on(specimen), seen]

    def run(self, trials: list[tuple[int, bool]]) -> Iterator[dict[str, Any]]:
        """Let one allocation fail in each trial; yields the outcomes."""
        endings = isolated_each(lambda trial: self._disturbed(*trial), trials, batch=self.batch)
        for (number, for_good), ending in zip(trials, endings, strict=True):
            held, outcome, stack = ending.value or (False, ending.death, _stack())
            yield {
                "number": number,
                "for_good": for_good,
                "held": held,
                "outcome": outcome,
                "stack": [] if held else stack,
            }

    def _disturbed(self, number: int, for_good: bool) -> tuple[bool, str, list[str]]:
        for left in self.folder.iterdir():
            if left.name != "model":
                left.unlink()
        specimen = self.make()
        shim().faults_arm(number, for_good)
        try:
            result, error = self.operation(specimen, self.folder), None
        except BaseException as raised:
            result, error = None, raised
        shim().faults_disarm()
        stack = _stack()
        if not shim().faults_failed():
            return error is None, "not reached", []
        if error is None:
            held, outcome = self._completed(specimen, result)
        elif isinstance(error, MemoryError):
            held, outcome = self._refused(specimen)
        else:
            held, outcome = False, f"raised {type(error).__name__}: {error}"
        return held, outcome, stack

    def _completed(self, specimen: Specimen, result: Any) -> tuple[bool, str]:
        wrong = differences(fingerprint(result, specimen), self.result)
        wrong += differences(go_on(specimen), self.done)
        return not wrong, f"completed, but differs: {wrong}" if wrong else "completed"

    def _refused(self, specimen: Specimen) -> tuple[bool, str]:
        if len(list(self.folder.iterdir())) > 1:
            return False, "MemoryError, but a file is left behind"
        try:
            specimen.model.check_state()
            wrong = differences(go_on(specimen), self.untouched)
        except Exception as later:
            return False, f"MemoryError, and later {type(later).__name__}: {later}"
        return not wrong, f"MemoryError, but changed: {wrong}" if wrong else "refused, unchanged"


@cache
def _trials(specimen: str, operation: str) -> Trials:
    return Trials(specimen, operation)


def _answer(request: dict[str, Any]) -> Any:
    trials = _trials(request["specimen"], request["operation"])
    return trials.n_allocations if "trials" not in request else list(trials.run(request["trials"]))


if __name__ == "__main__":
    shim()
    serve(_answer)
