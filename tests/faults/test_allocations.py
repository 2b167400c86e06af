"""An allocation of the engine fails: the call completes, or raises an error and changes nothing.

``make torture`` lets every allocation of every operation fail in turn. A failing test prints
addresses in the engine; ``addr2line -Cfpe <_engine...so> 0x1d6e5 ...`` names them if the engine
was built with symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .models import SPECIMENS, make_specimen
from .operations import OPERATIONS, applies
from .scale import TORTURE, amount, spread
from .serving import Ask, server
from .shims import compiled
from .tally import Tally

MOST_ALLOCATIONS = amount(suite=4, torture=8_000)  # of an operation; none has more
# In one of so many trials, all later allocations fail too.
FOR_GOOD_EVERY = 4 if TORTURE else 1
CASES = [
    pytest.param(specimen, operation, id=f"{specimen}-{operation}")
    for specimen in SPECIMENS
    for operation in OPERATIONS
    if applies(operation, specimen)
]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """A function that sends a request to the process in which allocations fail."""
    library = compiled("failing_allocations.cpp", tmp_path_factory.mktemp("shim"))
    # Fill memory that was freed or never written to with bytes other than zeros.
    environment = {"LD_PRELOAD": str(library), "MALLOC_PERTURB_": "165"}
    with server("tests.faults.allocation_server", environment) as ask:
        yield ask


@pytest.mark.parametrize(("specimen", "operation"), CASES)
def test_allocations_that_fail(ask: Ask, specimen: str, operation: str) -> None:
    tally = Tally("memory runs out")
    n_allocations = ask(specimen=specimen, operation=operation)
    numbers = spread(n_allocations, MOST_ALLOCATIONS)
    trials = [(number, False) for number in numbers]
    trials += [(number, True) for number in numbers[::FOR_GOOD_EVERY]]
    for found in ask(specimen=specimen, operation=operation, trials=trials):
        if found["outcome"] != "not reached":
            tally.add(found["held"], found["outcome"], _described(found))
    tally.check()


def test_updates_of_both_kinds_are_included(tmp_path: Path) -> None:
    """In place with nodes that are regrown, and by a refit."""
    kinds = set()
    for specimen in SPECIMENS:
        for operation in ("add", "remove several", "update"):
            report = OPERATIONS[operation](make_specimen(specimen), tmp_path)
            kinds.add((report.strategy, report.nodes_regrown > 0, "sparse" in specimen))
    assert {("in-place", True, False), ("in-place", True, True)} <= kinds
    assert {("refit", False, False), ("refit", False, True)} <= kinds


def test_deferred_rows_of_both_kinds_are_included(tmp_path: Path) -> None:
    """Some are regrown in place, and others remain deferred because the work is limited."""
    regrown, left = set(), set()
    for specimen in SPECIMENS:
        if applies("regrow", specimen):
            report = OPERATIONS["regrow"](make_specimen(specimen), tmp_path)
            regrown.add((report.strategy, report.nodes_regrown > 0))
            part = OPERATIONS["regrow a part"](make_specimen(specimen), tmp_path)
            left.add(part.rows_deferred > 0)
    assert ("in-place", True) in regrown
    assert left == {False, True}


def _described(found: dict[str, Any]) -> str:
    after = " and all after it" if found["for_good"] else ""
    return f"allocation {found['number']}{after} ({' '.join(found['stack'][:6])})"
