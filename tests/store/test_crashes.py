"""A writer is killed at any moment; the store is in a consistent state when it is opened next.

``GRAFTBOOST_KILLS=300 make test ARGS="-k crashes"`` kills 300 writers.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftboost.persistence import atomic_file
from graftboost.store import Store, digest
from tests.forking import fork, wait_for

from .stores import change, make_model

N_KILLS = int(os.environ.get("GRAFTBOOST_KILLS", "50"))
COMPACT_EVERY = 4
MOST_CHANGES = 40
OPERATIONS = ("write", "flush", "rename", "flush_directory", "remove")


class Expected:
    """The state of the model after each change, computed with an estimator."""

    def __init__(self) -> None:
        self._model = make_model()
        self._known = [self._look()]

    def __getitem__(self, number: int) -> tuple[str, set[int]]:
        while len(self._known) <= number:
            change(self._model, len(self._known) - 1)
            self._known.append(self._look())
        return self._known[number]

    def _look(self) -> tuple[str, set[int]]:
        return digest(self._model._engine_model), set(self._model.row_ids_.tolist())


@pytest.fixture(scope="module")
def expected() -> Expected:
    return Expected()


@contextmanager
def writer(path: Path, prepare: Callable[[], None] = lambda: None) -> Iterator[tuple[int, int]]:
    """Start a process that changes a store and reports the number of each change that returned."""
    reading, writing = os.pipe()

    def write() -> None:
        os.close(reading)
        prepare()
        _change_forever(path, writing)

    child = fork(write)
    os.close(writing)
    try:
        yield child, reading
    finally:
        os.close(reading)


def _change_forever(path: Path, writing: int) -> None:
    store = Store.open(path, compact_every=COMPACT_EVERY)
    number = store.history()[-1].number
    while number < MOST_CHANGES:
        change(store, number)
        number += 1
        os.write(writing, bytes([number]))
    os.kill(os.getpid(), signal.SIGKILL)


def _last_reported(reading: int) -> int:
    """Return the last change that the writer reported before it was killed."""
    last = -1
    while data := os.read(reading, 4096):
        last = data[-1]
    return last


def _check(path: Path, last: int, expected: Expected) -> int:
    """Open the store; returns the number of its last change."""
    for read_only in (True, False):  # first a reader, which must not depend on a writer tidying up
        with Store.open(path, read_only=read_only, compact_every=COMPACT_EVERY) as store:
            number = store.history()[-1].number
            assert number in (last, last + 1)
            wanted, ids = expected[number]
            assert store.digest == wanted == digest(store._state.saved.engine_model)
            assert set(store.row_ids.tolist()) == ids
            store.verify()
    assert {file.suffix for file in path.iterdir()} <= {".graft", ".jsonl", ""}
    return number


def test_crashes_at_random_moments(tmp_path: Path, expected: Expected) -> None:
    rng = random.Random(0)
    path, number, round_ = tmp_path / "0", MOST_CHANGES, 0
    for _ in range(N_KILLS // 2):
        if number >= MOST_CHANGES:
            round_ += 1
            path, number = tmp_path / str(round_), 0
            Store.create(path, make_model()).close()
        with writer(path) as (child, reading):
            time.sleep(rng.uniform(0, 0.08))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            number = _check(path, max(number, _last_reported(reading)), expected)


@pytest.mark.parametrize("moment", ["before", "half", "after"])
def test_crashes_between_steps(tmp_path: Path, expected: Expected, moment: str) -> None:
    """The writer is killed at every operation on the disk in turn."""
    rng = random.Random(moment)
    reached = set()
    for kill in range(N_KILLS // 6):
        path = tmp_path / str(kill)
        Store.create(path, make_model()).close()
        number, place = 0, rng.randrange(2, 34)

        def prepare(place: int = place) -> None:
            _die_at(place, moment)

        with writer(path, prepare) as (child, reading):
            os.waitpid(child, 0)
            number = _check(path, max(0, _last_reported(reading)), expected)
            reached.add(number)
        with writer(path) as (child, reading):  # and the next writer continues
            time.sleep(0.02)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            _check(path, max(number, _last_reported(reading)), expected)
    assert len(reached) > 1


def _die_at(place: int, moment: str) -> None:
    count = 0

    def dying(name: str) -> Callable[..., Any]:
        real = getattr(atomic_file, name)

        def operation(*args: Any) -> Any:
            nonlocal count
            count += 1
            if count < place:
                return real(*args)
            if moment == "half" and name == "write":
                number, data, at = args
                real(number, data[: len(data) // 2], at)
            elif moment == "after":
                real(*args)
            return os.kill(os.getpid(), signal.SIGKILL)

        return operation

    for name in OPERATIONS:
        setattr(atomic_file, name, dying(name))


def test_crash_while_a_store_is_created(tmp_path: Path) -> None:
    def create(path: Path, place: int) -> None:
        _die_at(place, "before")
        Store.create(path, make_model())

    for place in range(1, 12):
        path = tmp_path / str(place)
        wait_for(fork(partial(create, path, place)))
        if list(path.glob("model-*")):
            with Store.open(path) as store:
                store.verify()
        else:
            with pytest.raises(FileNotFoundError, match="There is no store"):
                Store.open(path)


def test_readers_get_consistent_states(tmp_path: Path, expected: Expected) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model()).close()
    seen = []
    with writer(path) as (child, _):
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            with Store.open(path, read_only=True) as store:
                number = store.history()[-1].number
                assert store.digest == expected[number][0]
                seen.append(number)
    assert seen == sorted(seen)
    assert len(np.unique(seen)) > 2
