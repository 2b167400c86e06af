"""Writers that compete for a store are killed at random moments, again and again."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from graftboost.store import Store, StoreLockedError
from tests.forking import fork, wait_for

from .scale import TORTURE, amount
from .store_changes import change_at_random, create, left_behind, requests
from .tally import BrokenPromiseError, Tally, promised

N_STORES = amount(suite=2, torture=60)
N_ROUNDS = 20 if TORTURE else 6  # in each store
N_WRITERS = 2
MOST_SECONDS = 0.15  # until a writer is killed


def _write_forever(path: Path, writing: int, seed: int) -> None:
    """Change the store, and report every change that has returned."""
    rng = random.Random(seed)
    while True:
        try:
            store = Store.open(path, compact_every=rng.choice([2, 3, 7]))
        except StoreLockedError:
            time.sleep(0.002)
            continue
        with store:
            for _ in range(rng.randrange(1, 10)):
                request = f"{os.getpid()}-{rng.getrandbits(60)}"
                change_at_random(store, rng, request)
                os.write(writing, request.encode() + b"\n")


def _start_writer(path: Path, writing: int, reading: int, seed: int) -> int:
    def write() -> None:
        os.close(reading)
        _write_forever(path, writing, seed)

    return fork(write)


def _killed_writers(path: Path, rng: random.Random) -> tuple[list[str], list[int]]:
    """Let writers write and kill them; returns the reported requests, and statuses."""
    reading, writing = os.pipe()
    writers = [_start_writer(path, writing, reading, rng.getrandbits(40)) for _ in range(N_WRITERS)]
    os.close(writing)
    time.sleep(rng.uniform(0, MOST_SECONDS))
    for writer in rng.sample(writers, N_WRITERS):
        os.kill(writer, signal.SIGKILL)
        if rng.random() < 0.5:  # the other one takes over
            time.sleep(rng.uniform(0, 0.03))
    statuses = [wait_for(writer) for writer in writers]
    with os.fdopen(reading) as lines:
        return [line.strip() for line in lines], statuses


def _check(path: Path, reported: list[str], *, read_only: bool) -> None:
    with Store.open(path, read_only=read_only) as store:
        found = requests(store)
        promised(not set(reported) - set(found), "a change that had returned is lost")
        promised(len(found) == len(set(found)), "a change was made twice")
        store.verify()
    promised(read_only or not left_behind(path), "files are left behind")


@pytest.mark.parametrize("seed", range(N_STORES))
def test_killed_writers(tmp_path: Path, seed: int) -> None:
    tally = Tally("writers are killed")
    rng = random.Random(seed)
    path = tmp_path / "store"
    create(path).close()
    reported: list[str] = []
    for round_ in range(N_ROUNDS):
        more, statuses = _killed_writers(path, rng)
        reported += more
        try:
            promised(set(statuses) == {signal.SIGKILL}, "a writer has ended by itself")
            _check(path, reported, read_only=rng.random() < 0.5)
        except BrokenPromiseError as broken:
            tally.add(False, str(broken), f"seed {seed}, round {round_}")
        else:
            for _ in statuses:
                tally.add(True, "killed")
    tally.check()
    assert reported
