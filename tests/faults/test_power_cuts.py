"""The power is cut at any moment: changes that had returned are there, and no others.

`power` defines what a cut may leave. Changes are recorded once, and cut at many places.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import graftboost
from graftboost.store import Store

from .power import Disk, Entry, read_log
from .recorded_changes import MODEL, STORE
from .scale import TORTURE, amount
from .serving import ROOT
from .shims import compiled
from .store_changes import WANTED, left_behind, requests
from .tally import Tally, promised

N_RECORDINGS = amount(suite=2, torture=40)
N_CHANGES = 30 if TORTURE else 10
N_CUTS = amount(suite=120, torture=1000)  # in each recording


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("recording_disk.cpp", tmp_path_factory.mktemp("shim"))


def _recorded(shim: Path, folder: Path, seed: int) -> list[Entry]:
    """Create or change the store in a folder; returns the recorded calls."""
    log = folder.with_name(f"{folder.name} log")
    arguments = [str(folder), str(log), str(seed), str(N_CHANGES)]
    environment = {
        **os.environ,
        "LD_PRELOAD": str(shim),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    command = [sys.executable, "-m", "tests.faults.recorded_changes", *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return list(read_log(log))


class Expected:
    """The changes that must be there, according to the marks so far."""

    def __init__(self, returned: list[str]) -> None:
        self.returned = returned  # requests
        self.under_way: str | None = None
        self.is_made = bool(returned)
        self.saved = 0  # trees of the model that was saved

    def pass_mark(self, text: str) -> None:
        what, _, name = text.partition(" ")
        if what == "begin":
            self.under_way = name
            return
        self.under_way = None
        if name == "create":
            self.is_made = True
        elif name.startswith("save"):
            self.saved = int(name.split()[1])
        else:
            self.returned.append(name)

    def check(self, folder: Path, *, read_only: bool) -> str:
        """Raise an error if a cut broke a promise; returns what it left."""
        self._check_saved(folder / MODEL)
        try:
            store = Store.open(folder / STORE, read_only=read_only)
        except FileNotFoundError:
            promised(not self.is_made, "the store is gone")
            return "no store yet"
        with store:
            found = [request for request in requests(store) if request != WANTED]
            lost = [request for request in self.returned if request not in found]
            promised(not lost, f"lost: {lost}")
            promised(len(found) == len(set(found)), "a change was made twice")
            more = set(found) - set(self.returned)
            promised(more <= {self.under_way}, f"nobody asked for {more}")
            store.verify()
        promised(read_only or not left_behind(folder / STORE), "files are left behind")
        return "the change under way is there" if more else "as of the last change that returned"

    def _check_saved(self, path: Path) -> None:
        if not path.exists():
            promised(not self.saved, "the saved model is gone")
            return
        model = graftboost.load(path)
        newest = self.saved + bool(self.under_way)
        promised(model.n_iter_ in (self.saved, newest), "the file has another model")
        model.check_state()


@pytest.mark.parametrize("seed", range(N_RECORDINGS))
def test_power_cuts(shim: Path, tmp_path: Path, seed: int) -> None:
    tally = Tally("the power is cut")
    folder = tmp_path / "disk"
    folder.mkdir()
    returned = _cut_before(shim, folder, seed) if seed % 2 else []
    disk = Disk(folder)
    entries = _recorded(shim, folder, seed + 1000)
    _cut_everywhere(disk, entries, Expected(returned), tmp_path / "left", seed, tally)
    tally.check()


def test_cuts_without_syncs_are_detected(shim: Path, tmp_path: Path) -> None:
    """The same calls without syncs break the promise, so it is not kept by chance."""
    tally = Tally("")
    folder = tmp_path / "disk"
    folder.mkdir()
    disk = Disk(folder)
    entries = [entry for entry in _recorded(shim, folder, 0) if entry.kind != "S"]
    _cut_everywhere(disk, entries, Expected([]), tmp_path / "left", 0, tally)
    assert len(tally.broken) > tally.held.total()


def _cut_everywhere(
    disk: Disk, entries: list[Entry], expected: Expected, left: Path, seed: int, tally: Tally
) -> None:
    """Cut the power at random moments of a recording."""
    rng = random.Random(seed)
    # A model is written by many similar writes.
    weights = [0.2 if entry.kind == "W" else 1.0 for entry in entries]
    moments = Counter(rng.choices(range(len(entries)), weights, k=N_CUTS))
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        for _ in range(moments[number]):
            shutil.rmtree(left, ignore_errors=True)
            left.mkdir()
            contents = disk.write_survivors(left, rng)
            state = hashlib.sha256(repr((number, sorted(contents.items()))).encode()).hexdigest()
            if state in seen:
                continue
            seen.add(state)
            try:
                tally.add(True, expected.check(left, read_only=rng.random() < 0.3))
            except Exception as error:
                text = f"{type(error).__name__}: {error}".replace(str(left), "")
                trial = f"seed {seed}, before call {number} of {len(entries)}"
                tally.add(False, text, f"{trial}, under way: {expected.under_way}")
        if entry.kind == "!":
            expected.pass_mark(entry.name)
        else:
            disk.apply(entry)


def _cut_before(shim: Path, left: Path, seed: int) -> list[str]:
    """Write the state after a cut during other changes; returns the requests in it."""
    rng = random.Random(seed)
    folder = left.with_name("before")
    folder.mkdir()
    disk = Disk(folder)
    entries = _recorded(shim, folder, seed)
    for entry in entries[: rng.randrange(len(entries) // 2, len(entries))]:
        disk.apply(entry)
    disk.write_survivors(left, rng)
    with Store.open(left / STORE, read_only=True) as store:
        return [request for request in requests(store) if request != WANTED]
