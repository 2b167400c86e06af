"""Bytes of a store's files are changed or lost on the disk: this is reported, or harmless."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from graftboost.store import Store

from .isolation import isolated_each
from .modified_stores import KINDS, REFUSALS, Files, make_rows
from .mutating import cut, flipped, overwritten, records_of, with_lying_length
from .scale import amount
from .store_changes import requests
from .tally import Tally

N_DAMAGES = amount(suite=80, torture=3000)  # of each file, in each store
BATCH = 50  # of them in one process
REPORTED = "reported"


def _damaged_journal(files: Files, seed: int) -> bytes:
    """Return a journal that is cut off, or has records that are damaged, missing or misplaced.

    All changes have receipts, so not even the last one can be mistaken for an unfinished change.
    """
    rng = random.Random(seed)
    journal = files.contents["journal"]
    records = records_of(journal)
    at = rng.randrange(len(records))
    match rng.randrange(6):
        case 0:
            return cut(journal, rng)
        case 1:
            del records[at]
        case 2:
            records.insert(rng.randrange(len(records)), records[at])
        case 3:
            other = rng.choice([i for i in range(len(records)) if i != at])
            records[at], records[other] = records[other], records[at]
        case _:
            damage = rng.choice([flipped, overwritten, with_lying_length])
            records[at] = damage(records[at], rng)
    return b"".join(records)


def _content(store: Store, kind: str) -> list[Any]:
    store.verify()
    predictions = store.predict(make_rows(kind, 5, 20)["X"])
    return [store.digest, predictions.tolist(), requests(store)]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_of_the_journal(tmp_path: Path, kind: str) -> None:
    tally = Tally("files are damaged")
    files = Files.of(kind, tmp_path)

    def open_damaged(seed: int) -> list[str] | str:
        path = files.write(tmp_path, journal=_damaged_journal(files, seed))
        try:
            with Store.open(path, read_only=bool(seed % 2)) as store:
                store.verify()
                return requests(store)[1:]
        except REFUSALS:
            return REPORTED

    seeds = range(N_DAMAGES)
    for seed, ending in zip(seeds, isolated_each(open_damaged, seeds, batch=BATCH), strict=True):
        outcome = ending.death or ending.value
        if outcome == files.requests:
            outcome = "harmless"
        elif isinstance(outcome, list):
            outcome = f"opened and verified without {set(files.requests) - set(outcome)}"
        tally.add(outcome in (REPORTED, "harmless"), outcome, f"{kind}, seed {seed}")
    tally.check()


@pytest.mark.parametrize("what", ["model", "receipts"])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_of_other_files(tmp_path: Path, kind: str, what: str) -> None:
    tally = Tally("files are damaged")
    files = Files.of(kind, tmp_path)
    with Store.open(files.write(tmp_path), read_only=True) as store:
        expected = _content(store, kind)

    def open_damaged(seed: int) -> Any:
        rng = random.Random(seed)
        damage = rng.choice([flipped, overwritten, cut, with_lying_length][: 4 - (what != "model")])
        path = files.write(tmp_path, **{what: damage(files.contents[what], rng)})
        try:
            with Store.open(path, read_only=bool(seed % 2)) as store:
                return _content(store, kind)
        except REFUSALS:
            return REPORTED

    seeds = range(N_DAMAGES)
    for seed, ending in zip(seeds, isolated_each(open_damaged, seeds, batch=BATCH), strict=True):
        outcome = ending.death or ending.value
        if isinstance(outcome, list):
            outcome = "harmless" if outcome == expected else "opened and verified, but different"
        tally.add(outcome in (REPORTED, "harmless"), outcome, f"{kind}, seed {seed}")
    tally.check()
