"""The process reaches its memory limit, at any allocation."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftboost import GraftBoostClassifier

from .isolation import isolated
from .models import Rows, Specimen
from .operations import differences, fingerprint, go_on
from .scale import amount
from .tally import Tally

N_ROWS, N_COLUMNS = 30_000, 8
N_LIMITS = amount(suite=5, torture=60)
MOST_BYTES = 24e6  # more than any of the operations needs

OPERATIONS: dict[str, Callable[[Any, Rows], Any]] = {
    "add": lambda model, rows: model.add(rows.X, rows.y),
    "add weighted": lambda model, rows: model.add(rows.X, rows.y, rows.weight),
    "remove": lambda model, rows: model.remove(np.arange(40)),
    "remove half": lambda model, rows: model.remove(np.arange(N_ROWS // 2)),
    "refit": lambda model, rows: model.refit() and None,
    "refresh": lambda model, rows: model.refresh() and None,
    "check state": lambda model, rows: model.check_state(),
}


def _rows(seed: int, n_rows: int) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS))
    return Rows(X, (X[:, 0] + rng.normal(size=n_rows) > 0).astype(int), rng.uniform(1, 2, n_rows))


@pytest.fixture(scope="module")
def specimen() -> Specimen:
    fitted, added = _rows(0, N_ROWS), _rows(1, 500)
    model = GraftBoostClassifier(n_estimators=6, n_jobs=1).fit(fitted.X, fitted.y)
    return Specimen(model, Rows(fitted.X[:500], None, None), added, weighted=False)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_memory_runs_out(specimen: Specimen, operation: str, n_threads: int) -> None:
    specimen.model.n_jobs = n_threads
    tally = Tally("memory runs out, by a limit of the process")
    do = OPERATIONS[operation]
    untouched = isolated(lambda: go_on(specimen)).value
    made = isolated(lambda: [do(specimen.model, specimen.added), go_on(specimen)][1:]).value[0]
    for n_bytes in np.geomspace(1e4, MOST_BYTES, N_LIMITS):
        ending = isolated(lambda: _limited(specimen, do, int(n_bytes), untouched, made))  # noqa: B023
        held, outcome = ending.value or (False, ending.death)
        tally.add(held, outcome, f"{int(n_bytes):,} bytes more")
    tally.check()


def _limited(
    specimen: Specimen,
    do: Callable[[Any, Rows], Any],
    n_bytes: int,
    untouched: dict[str, str],
    made: dict[str, str],
) -> tuple[bool, str]:
    limits = resource.getrlimit(resource.RLIMIT_AS)
    _use_up_free_memory(limits[1])
    resource.setrlimit(resource.RLIMIT_AS, (_n_bytes_used() + n_bytes, limits[1]))
    try:
        do(specimen.model, specimen.added)
        raised = False
    except MemoryError:
        raised = True
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    specimen.model.check_state()
    wrong = differences(go_on(specimen), untouched if raised else made)
    outcome = "refused, unchanged" if raised else "completed"
    return not wrong, f"{outcome}, but differs: {wrong}" if wrong else outcome


def _n_bytes_used() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _use_up_free_memory(hard_limit: int) -> None:
    """Allocate the memory that the process has but does not use."""
    malloc = ctypes.CDLL(None).malloc
    malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    resource.setrlimit(resource.RLIMIT_AS, (_n_bytes_used(), hard_limit))
    for size in (1 << 16, 1 << 14):
        while malloc(size):
            pass


def test_fingerprints_distinguish_models(specimen: Specimen) -> None:
    before = fingerprint(specimen.model, specimen)
    other = GraftBoostClassifier(n_estimators=6, n_jobs=1, learning_rate=0.2)
    other.fit(*(values[:400] for values in (specimen.added.X, specimen.added.y)))
    assert {"scores", "trees", "row ids"} <= set(differences(fingerprint(other, specimen), before))
