"""An invalid store is either used or refused: no crash, no hang, no other error.

``GRAFTBOOST_MUTATIONS=100000 make sanitize ARGS="-k mutations"`` tries many with sanitizers.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from graftboost.store import Store

from .modified_stores import KINDS, REFUSALS, Files, make_rows
from .mutating import change_lines, cut, flipped, overwritten, records_of, resealed
from .mutation_runs import check_mutations
from .scale import amount

N_MUTATIONS = int(os.environ.get("GRAFTBOOST_MUTATIONS", amount(suite=2000, torture=60_000)))

# Faults that were found: numbers that overflow, and stores that have used the largest id.
FOUND = [3002, 12029, 16979, 19431, 20392, 23611, 23697]


def _mutated(files: Files, seed: int) -> dict[str, bytes]:
    """Return the changed files by their role."""
    rng = random.Random(seed)
    which = rng.random()
    if which < 0.45:
        records = records_of(files.contents["journal"])
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(records))
            records[at] = resealed(records[at], rng)
        return {"journal": b"".join(records)}
    if which < 0.8:
        return {"model": resealed(files.contents["model"], rng)}
    if which < 0.9:
        return {"receipts": change_lines(files.contents["receipts"], rng)}
    what = rng.choice(["model", "journal", "receipts"])
    return {what: rng.choice([flipped, overwritten, cut])(files.contents[what], rng)}


def _use(path: Path, kind: str, seed: int) -> str:
    """Use a store in every way; returns how far that was possible."""
    stage = "opened to read"
    try:
        with Store.open(path, read_only=True) as store:
            _read(store, kind)
        stage = "opened to write"
        with Store.open(path) as store:
            _read(store, kind)
            stage = "changed"
            _change(store, kind, seed)
            stage = "compacted"
            store.compact()
            stage = "verified"
            store.verify()
    except REFUSALS:
        return f"refused when {stage}"
    return "used"


def _read(store: Store, kind: str) -> None:
    store.predict(make_rows(kind, 5, 4)["X"])
    if "age" in store.attribute_names and not store.is_text("age"):
        store.find("age > 30")
    for receipt in store.history():
        str(receipt)
        store.refitted_since(receipt)
        store.regrown_by(receipt)
    store.summary()
    str(store.pending)
    store.verify()


def _change(store: Store, kind: str, seed: int) -> None:
    rows = make_rows(kind, seed, 3)
    texts, numbers = rows["attributes"].values()
    rows["attributes"] = {
        name: texts if store.is_text(name) else numbers for name in store.attribute_names
    }
    store.remove(np.random.default_rng(seed).choice(store.row_ids, 2, replace=False))
    # Explicit ids: a modified store may have used the largest one, and has no default id then.
    unused = np.setdiff1d(np.arange(10_000, 10_000 + 2 * len(store.row_ids)), store.row_ids)
    store.add(**rows, row_ids=unused[:3])
    if store.model.update_rule == "fidelity":
        store.remove(unused[:2], regrow=False)
        store.regrow(0.5)
        store.regrow()
    store.refresh()
    store.refit()


@pytest.mark.parametrize("kind", KINDS)
def test_mutations(tmp_path: Path, kind: str) -> None:
    files = Files.of(kind, tmp_path)

    def use(seed: int) -> str:
        return _use(files.write(tmp_path, **_mutated(files, seed)), kind, seed)

    check_mutations(kind, N_MUTATIONS // len(KINDS), use, also=FOUND)
