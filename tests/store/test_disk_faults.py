"""When a disk fails, the store reports exactly what is certain."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graftboost import load
from graftboost.persistence import atomic_file
from graftboost.store import OutcomeUnknownError, Store, StoreError
from tests.forking import fork, wait_for

from .stores import N_ROWS, files, make_model

CALLS = ("pwrite", "fsync", "ftruncate", "replace", "unlink")


@contextmanager
def failing(which: Callable[[str, int], bool]) -> Iterator[list[str]]:
    """Let calls that change the disk fail if `which(name, number of earlier calls)` is true."""
    really = {name: getattr(os, name) for name in CALLS}
    made: list[str] = []

    def call(name: str) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            made.append(name)
            if which(name, len(made) - 1):
                raise OSError(errno.EIO, "Input/output error")
            return really[name](*args, **kwargs)

        return called

    for name in CALLS:
        setattr(os, name, call(name))
    try:
        yield made
    finally:
        for name in CALLS:
            setattr(os, name, really[name])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store.create(tmp_path / "store", make_model()) as store:
        store.remove([0])
    return tmp_path / "store"


def _outcome(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except (StoreError, OSError) as error:
        return error
    return None


# A change, with a mark in the lock file before and after it.
CALLS_OF_A_CHANGE = ["pwrite", "pwrite", "fsync", "pwrite", "fsync", "pwrite"]


@pytest.mark.parametrize("from_then_on", [False, True])
@pytest.mark.parametrize("place", range(len(CALLS_OF_A_CHANGE)))
def test_every_call_of_a_change_fails_in_turn(path: Path, place: int, from_then_on: bool) -> None:
    store = Store.open(path)
    with failing(lambda _, n: n == place or (from_then_on and n > place)) as made:
        error = _outcome(lambda: store.remove([1], request="remove 1"))
    assert made[: place + 1] == CALLS_OF_A_CHANGE[: place + 1]
    if place == len(CALLS_OF_A_CHANGE) - 1:
        assert error is None  # the change is on the disk, and only the mark remains
    elif place == 0 and from_then_on:  # nothing was written, but the files cannot be read
        assert type(error) is StoreError
        assert "It holds what it held before the call" in str(error)
    elif from_then_on:
        assert type(error) is OutcomeUnknownError
        assert "is unchanged" not in str(error)
        for use in (store.compact, store.history, store.verify, store.refit):
            with pytest.raises(StoreError, match=r"is closed, because.*Open it again"):
                use()
    else:
        assert type(error) is StoreError
        assert "was not made. The store is unchanged" in str(error)
        assert 1 in store.row_ids
    store.close()
    with Store.open(path) as store:
        is_made = "remove 1" in [receipt.request for receipt in store.history()]
        assert is_made == (error is None) or isinstance(error, OutcomeUnknownError)
        assert (1 in store.row_ids) != is_made
        store.verify()


def test_a_change_whose_receipt_may_exist_is_kept(path: Path) -> None:
    store = Store.open(path)
    # The journal is written and flushed. The receipt can be neither flushed nor truncated.
    with (
        failing(lambda name, n: n >= 4) as made,
        pytest.raises(
            OutcomeUnknownError,
            match=r"receipts\.jsonl could not be written, and its previous length",
        ),
    ):
        store.remove([1])
    assert made == [*CALLS_OF_A_CHANGE[:5], "ftruncate"]
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as again:
            assert 1 not in again.row_ids
            again.verify()


def _inodes(path: Path) -> dict[str, int]:
    return {
        name: (path / name).stat().st_ino for name in ("journal-000001.graft", "receipts.jsonl")
    }


def _kill_while_flushing(path: Path) -> None:
    """Kill a writer during the fsync of a change, so that the outcome is unknown."""

    def write() -> None:
        store = Store.open(path)
        os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
        store.remove([1])

    assert wait_for(fork(write)) == signal.SIGKILL


@pytest.mark.parametrize("end", ["a failed fsync", "killed"])
def test_files_that_may_not_be_flushed_are_copied(path: Path, end: str) -> None:
    """A failed fsync leaves pages that count as written. Flushing them again does nothing."""
    if end == "killed":
        _kill_while_flushing(path)
    else:
        store = Store.open(path)
        with failing(lambda name, n: n >= 2), pytest.raises(OutcomeUnknownError):
            store.remove([1])
    assert (path / "lock").read_bytes().startswith(b"writing\n")
    before = _inodes(path)
    Store.open(path, read_only=True).close()
    assert _inodes(path) == before
    with Store.open(path) as store:
        assert not set(_inodes(path).items()) & set(before.items())
        assert store.n_rows == N_ROWS - 2
        store.verify()
    assert (path / "lock").read_bytes().startswith(b"settled\n")
    before = _inodes(path)
    Store.open(path).close()
    assert _inodes(path) == before  # flushed files are not copied


@pytest.mark.parametrize("place", range(6))
def test_failing_copies(path: Path, place: int) -> None:
    _kill_while_flushing(path)
    before = files(path)
    # Calls 0 and 1 write the name of the process into the lock file.
    with failing(lambda name, n: n >= 2 + place), pytest.raises(OSError, match="Input/output"):
        Store.open(path)
    after = files(path)
    assert {name: after[name] for name in before if name != "lock"} == {
        name: content for name, content in before.items() if name != "lock"
    }
    assert after["lock"].startswith(b"writing\n")  # so that the next writer copies the files
    with Store.open(path) as store:
        assert store.n_rows == N_ROWS - 2
        store.verify()
    assert len(files(path)) == 4


def test_missing_receipts_are_written_one_by_one(path: Path) -> None:
    """If two are written at once, a power cut can damage the first and keep the second."""
    with Store.open(path) as store:
        store.remove([1])
        store.remove([2])
    log = path / "receipts.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:2]) + bytes(700))  # as a power cut may leave it
    written: list[bytes] = []
    pwrite, fsync = os.pwrite, os.fsync

    def is_log(number: int) -> bool:
        return Path(f"/proc/self/fd/{number}").readlink() == log

    def noted_write(number: int, data: Any, at: int) -> int:
        if is_log(number):
            assert at == log.stat().st_size  # nothing is overwritten
            written.append(bytes(data))
        return pwrite(number, data, at)

    def noted_flush(number: int) -> None:
        if is_log(number):
            written.append(b"flush")
        fsync(number)

    os.pwrite, os.fsync = noted_write, noted_flush
    try:
        Store.open(path).close()
    finally:
        os.pwrite, os.fsync = pwrite, fsync
    assert written == [b"flush", lines[2], b"flush", lines[3], b"flush"]
    assert log.read_bytes() == b"".join(lines)


def test_compaction_with_unknown_outcome(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(path)

    def fails(directory: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_file, "flush_directory", fails)
        with pytest.raises(OutcomeUnknownError, match="no change is lost"):
            store.compact()
    # A further change could belong to a model that a power cut removes.
    with pytest.raises(StoreError, match="is closed"):
        store.remove([1])
    with Store.open(path) as again:
        assert again.n_rows == N_ROWS - 1
        again.verify()


def test_old_files_are_removed_after_the_new_names_are_flushed(path: Path) -> None:
    """A writer is killed after it renamed the new model, before the rename is on the disk."""
    store = Store.open(path)
    store._state.write(2, atomic_file.PRIVATE)
    store.close()
    with failing(lambda name, n: False) as made:
        Store.open(path).close()
    # Flush the receipts and the directory; only then are the old model and journal removed.
    steps = [name for name in made if name in ("fsync", "unlink")]
    assert steps == ["fsync", "fsync", "unlink", "unlink", "fsync"]


def test_creation_with_unknown_outcome(tmp_path: Path) -> None:
    with failing(lambda name, n: False) as made:
        Store.create(tmp_path / "first", make_model()).close()
    last_of_creating = len(made) - 1 - made[::-1].index("fsync")
    unknown = 0
    for place in range(last_of_creating + 1):
        path = tmp_path / str(place)
        with failing(lambda _, n, place=place: n == place):
            error = _outcome(lambda path=path: Store.create(path, make_model()).close())
        if isinstance(error, OutcomeUnknownError):
            unknown += 1
            assert "It is not certain that the store" in str(error)
            Store.open(path).close()  # it exists, because the power was not cut
        elif error is not None:
            with pytest.raises(FileNotFoundError, match="There is no store"):
                Store.open(path)
            Store.create(path, make_model()).close()
    assert unknown >= 2


@pytest.mark.parametrize("is_done", [False, True])
def test_rename_that_reports_an_error(tmp_path: Path, is_done: bool) -> None:
    old, new = make_model(), make_model("regressor")
    path = tmp_path / "model"
    old.save(path)
    replace = os.replace

    def failing_replace(source: Path, target: Path) -> None:
        if is_done or target.name == "receipts.jsonl":
            replace(source, target)
        if target.name != "receipts.jsonl":
            raise OSError(errno.EIO, "Input/output error")

    os.replace = failing_replace
    try:
        saving = _outcome(lambda: new.save(path))
        creating = _outcome(lambda: Store.create(tmp_path / "store", old).close())
    finally:
        os.replace = replace
    assert type(saving) is (atomic_file.UncertainError if is_done else OSError)
    assert type(load(path)) is type(new if is_done else old)
    assert type(creating) is (OutcomeUnknownError if is_done else OSError)
    assert len(list((tmp_path / "store").glob("model-*"))) == is_done
    assert not list(tmp_path.rglob("*.tmp"))
