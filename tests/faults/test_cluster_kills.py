"""The processes of a distributed model are killed at random moments, again and again."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from sklearn.datasets import load_breast_cancer

from graftboost import GraftBoostClassifier
from graftboost.store.digest import digest

from .scale import amount
from .tally import Tally

pytest.importorskip("ray")

from graftboost.distributed import RayGraftBoostClassifier
from graftboost.distributed.errors import OutcomeUnknownError, ShardError
from graftboost.distributed.local_cluster import local_cluster

# One process starts Ray, so that the tests do not compete for memory.
pytestmark = pytest.mark.xdist_group("ray")

PROMISE = "processes of a cluster are killed"
N_KILLS = amount(suite=4, torture=220)
N_DRIVERS = amount(suite=1, torture=10)
MOST_SECONDS = 0.25  # until a process is killed
OPTIONS = {"n_estimators": 8, "max_leaf_nodes": 8}
N_FITTED = 400

Change = tuple[str, tuple[Any, ...], dict[str, Any]]

DRIVER = """
import logging, sys, ray
ray.init(address=sys.argv[1], namespace="x", logging_level=logging.ERROR, log_to_driver=False)
from graftboost.distributed import RayGraftBoostClassifier
model = RayGraftBoostClassifier.connect(sys.argv[2])
for row in range(int(sys.argv[3]), 100):
    model.remove([row])
    print(row, flush=True)
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with local_cluster(2, object_store_memory=100_000_000) as address:
        yield address


def data() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def processes(kind: str) -> list[psutil.Process]:
    """Return the processes of actors that this process has started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if f"ray::{kind}" in " ".join(process.cmdline()):
                found.append(process)
    return found


def kill_later(rng: random.Random) -> tuple[threading.Thread, list[str]]:
    """Kill a process after a while; the list says which."""
    killed: list[str] = []

    def kill() -> None:
        time.sleep(rng.uniform(0, MOST_SECONDS))
        shard, node_half = "a shard", "the node half"
        for kind in rng.choice(([shard], [shard, shard], [node_half], [shard, node_half])):
            victims = processes("ShardActor" if kind == shard else "CoordinatorActor")
            if victims:
                with contextlib.suppress(psutil.Error):
                    rng.choice(victims).kill()
                    killed.append(kind)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread, killed


def operations(rng: random.Random, X: Any, y: Any) -> Iterator[Change]:
    """Yield changes of a model without end."""
    held, free = list(range(N_FITTED)), list(range(N_FITTED, len(y)))
    while True:
        what = rng.random()
        if what < 0.1:
            yield "refresh", (), {}
        elif what < 0.15:
            yield "refit", (), {}
        elif what < 0.5:
            rows = [free.pop(rng.randrange(len(free))) for _ in range(2)]
            yield "add", (X[rows], y[rows]), {"row_ids": rows}
            held += rows
        else:
            rows = [held.pop(rng.randrange(len(held))) for _ in range(2)]
            yield "remove", (rows,), {}
            free += rows


def same(remote: Any, local: Any) -> bool:
    return digest(remote.to_local()._engine_model) == digest(local._engine_model)


def test_every_state_is_that_of_a_local_model(tmp_path: Path, address: str) -> None:
    """Every call returns, or raises and has changed nothing."""
    rng = random.Random(1)
    X, y = data()
    local = GraftBoostClassifier(**OPTIONS).fit(X[:N_FITTED], y[:N_FITTED])
    remote = RayGraftBoostClassifier(**OPTIONS, storage=tmp_path)
    remote.fit(X[:N_FITTED], y[:N_FITTED])
    tally, n_killed = Tally(PROMISE), 0
    changes = operations(rng, X, y)
    try:
        while n_killed < N_KILLS:
            thread, killed = kill_later(rng)
            method, arguments, named = next(changes)
            try:
                getattr(remote, method)(*arguments, **named)
                getattr(local, method)(*arguments, **named)
                outcome = "completed"
            except (ShardError, OutcomeUnknownError) as error:
                outcome = type(error).__name__
            thread.join()
            held = same(remote, local)
            who = " and ".join(killed).replace("a shard and a shard", "two shards") or "nobody"
            tally.add(held, f"{outcome}, {who} killed", method)
            n_killed += len(killed)
        remote.check_state()
    finally:
        remote.shutdown()
    tally.check()


@pytest.mark.parametrize("trial", range(N_DRIVERS))
def test_a_driver_is_killed(tmp_path: Path, address: str, trial: int) -> None:
    """What it was told to be done is done, and nothing else but the call that was cut off."""
    rng = random.Random(trial)
    X, y = data()
    local = GraftBoostClassifier(**OPTIONS).fit(X, y)
    remote = RayGraftBoostClassifier(**OPTIONS, storage=tmp_path).fit(X, y)
    tally = Tally(PROMISE)
    try:
        command = [sys.executable, "-c", DRIVER, address, remote.name_, "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            told = [int(driver.stdout.readline())]
            time.sleep(rng.uniform(0, 0.5))
            driver.kill()
            told += [int(line) for line in driver.stdout]
        n_held = remote.n_rows_
        n_done = len(y) - n_held
        for row in range(n_done):
            local.remove([row])
        is_as_told = len(told) <= n_done <= len(told) + 1
        tally.add(is_as_told and same(remote, local), "a driver killed")
        remote.check_state()
    finally:
        remote.shutdown()
    tally.check()
