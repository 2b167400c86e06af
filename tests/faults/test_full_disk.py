"""The disk is full: changes are refused, none is lost, and the store works when there is room."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import graftboost
from graftboost import GraftBoostClassifier
from graftboost.store import Store, StoreError

from .isolation import isolated
from .scale import amount
from .store_changes import is_closed, left_behind, requests
from .tally import Tally, promised

N_SIZES = amount(suite=8, torture=200)
MOST_SPARE = 60_000  # bytes: room for some changes, but hardly for another model
N_CHANGES = 14
N_ROWS, N_COLUMNS = 600, 5


def _rows(seed: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n_rows, N_COLUMNS))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def model() -> GraftBoostClassifier:
    return GraftBoostClassifier(n_estimators=3, max_leaf_nodes=6, n_jobs=1).fit(*_rows(0, N_ROWS))


def _changed(store: Store) -> tuple[list[str], int]:
    """Make changes, some of which there may be no room for; returns what returned, and how many
    did not."""
    made, n_refused = [], 0
    for number in range(N_CHANGES):
        request = f"change {number}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of compactions that failed
                match number % 4:
                    case 0:
                        store.add(*_rows(number, 100), request=request)
                    case 1:
                        store.remove(store.row_ids[-3:], request=request)
                    case 2:
                        store.refit(request=request)
                    case 3:
                        store.update(*_rows(number, 60), remove=store.row_ids[:5], request=request)
        except (StoreError, OSError):
            n_refused += 1
            if is_closed(store):
                break
        else:
            made.append(request)
    return made, n_refused


def _check(path: Path, made: list[str], *, all_are_known: bool) -> None:
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as store:
            found = requests(store)[1:]
            promised(set(made) <= set(found), "a change that had returned is lost")
            if all_are_known:
                promised(found == made, "a change that was refused is there")
            store.verify()


def _go_on(path: Path, model: GraftBoostClassifier) -> None:
    with Store.open(path) as store:
        store.add(*_rows(99, 50))
        store.compact()
        store.verify()
    promised(not left_behind(path), "files are left behind")
    model.save(path.with_name("model"))
    graftboost.load(path.with_name("model")).check_state()


def _save(model: GraftBoostClassifier, path: Path) -> None:
    """Save where there may be no room: the file is complete, or there is none."""
    try:
        model.save(path)
    except OSError:
        promised(not path.exists(), "a file is there that was not saved")
        promised(not list(path.parent.glob("*.tmp")), "a part of a file is left behind")
        promised(not list(path.parent.glob(".*.tmp")), "a part of a file is left behind")


# --- full file system -----------------------------------------------------------------------------


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system in memory, of two megabytes."""
    folder = Path(tempfile.mkdtemp())
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root mounts file systems; RLIMIT_FSIZE stands in for a full one below")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mount does not work here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


def test_full_file_system(small_disk: Path, model: GraftBoostClassifier) -> None:
    tally = Tally("the disk is full")
    n_refused = 0
    for spare in np.linspace(0, MOST_SPARE, N_SIZES).astype(int):
        path, filler = small_disk / "store", small_disk / "filler"
        shutil.rmtree(path, ignore_errors=True)
        (small_disk / "model").unlink(missing_ok=True)
        try:
            with Store.create(path, model, compact_every=5, request="made") as store:
                about = os.statvfs(small_disk)
                filler.write_bytes(bytes(max(0, about.f_bavail * about.f_bsize - int(spare))))
                made, refused = _changed(store)
                known = not is_closed(store)
                _save(model, small_disk / "model")
            _check(path, made, all_are_known=known)
            filler.unlink()
            _go_on(path, model)
        except Exception as error:
            tally.add(False, f"{type(error).__name__}: {error}", f"{spare:,} bytes to spare")
            filler.unlink(missing_ok=True)
        else:
            n_refused += refused
            tally.add(True, f"{'some' if refused else 'none'} refused")
    tally.check()
    assert n_refused


# --- limited file size ----------------------------------------------------------------------------


def _limited(model: GraftBoostClassifier, spare: int) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        with Store.create(path, model, compact_every=5, request="made") as store:
            size = max(file.stat().st_size for file in path.iterdir())
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 8 + spare, limits[1]))
            made, refused = _changed(store)
            known = not is_closed(store)
            _save(model, Path(folder) / "model")
        _check(path, made, all_are_known=known)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        _go_on(path, model)
        return True, f"{'some' if refused else 'none'} refused"


def test_files_that_cannot_grow(model: GraftBoostClassifier) -> None:
    tally = Tally("the disk is full")
    for spare in np.linspace(0, MOST_SPARE // 4, N_SIZES).astype(int):
        ending = isolated(lambda: _limited(model, int(spare)))  # noqa: B023
        tally.add(*(ending.value or (False, ending.death)), f"{spare:,} bytes to spare")
    tally.check()
    assert tally.held["some refused"]
