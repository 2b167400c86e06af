"""Runs with `recording_disk.cpp` preloaded: changes a store, and marks calls that have returned.

``python -m tests.faults.recorded_changes <folder> <log> <seed> <changes>``. The store is created if
there is none.
"""

from __future__ import annotations

import ctypes
import random
import sys
from pathlib import Path

from graftboost import GraftBoostRegressor
from graftboost.store import Store

from .store_changes import COMPACT_EVERY, change_at_random, create

STORE, MODEL = "store", "model"  # names in the folder


def main(folder: Path, log: Path, seed: int, n_changes: int) -> None:
    """Make changes; each is marked when it begins and when it has returned."""
    shim = ctypes.CDLL(None)
    rng = random.Random(seed)

    def mark(text: str) -> None:
        shim.record_mark(text.encode())

    shim.record_to(str(log).encode())
    mark("begin create")
    path = folder / STORE
    if path.is_dir() and list(path.glob("model-*")):
        store = Store.open(path, compact_every=COMPACT_EVERY)
    else:
        store = create(path)
        store.close()
        store = Store.open(path, compact_every=COMPACT_EVERY)
    mark("returned create")
    for number in range(n_changes):
        request = f"{seed}-{number}"
        mark(f"begin {request}")
        change_at_random(store, rng, request)
        mark(f"returned {request}")
        if rng.random() < 0.2:  # a new writer
            store.close()
            store = Store.open(path, compact_every=COMPACT_EVERY)
    store.close()
    for n_trees in (1, 2):
        model = GraftBoostRegressor(n_estimators=n_trees).fit([[0.0], [1.0]] * 20, [0.0, 1.0] * 20)
        mark(f"begin save {n_trees}")
        model.save(folder / MODEL)
        mark(f"returned save {n_trees}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
