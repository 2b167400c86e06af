"""When a disk fails, the store says what is certain and no more."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graftboost import disk
from graftboost.store import OutcomeUnknownError, Store, StoreError

from .stores import N_ROWS, make_model

CALLS = ("pwrite", "fsync", "ftruncate", "replace", "unlink")


@contextmanager
def failing(which: Callable[[str, int], bool]) -> Iterator[list[str]]:
    """Let calls that change the disk fail: those of which `which(name, how many before)` holds."""
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


@pytest.mark.parametrize("from_then_on", [False, True])
def test_every_call_of_a_change_fails_in_turn(path: Path, from_then_on: bool) -> None:
    kinds = set()
    for place in range(20):
        row, request = place + 1, f"remove {place + 1}"
        store = Store.open(path)
        with failing(lambda _, n, place=place: n == place or (from_then_on and n > place)) as made:
            error = _outcome(
                lambda store=store, row=row: store.remove([row], request=f"remove {row}")
            )
        if len(made) <= place:  # it went through before its turn to fail came
            break
        kinds.add(type(error))
        unknown = isinstance(error, OutcomeUnknownError)
        if unknown:
            assert "as it was" not in str(error)
            for use in (store.compact, store.history, store.verify, store.refit):
                with pytest.raises(StoreError, match=r"is closed, because.*Open it again"):
                    use()
        else:
            assert "was not made. The store is as it was" in str(error)
            assert row in store.row_ids
        store.close()
        with Store.open(path) as store:
            is_made = request in [receipt.request for receipt in store.history()]
            assert unknown or not is_made
            assert (row in store.row_ids) != is_made
            store.verify()
    assert error is None
    assert place >= 4
    assert kinds == {OutcomeUnknownError if from_then_on else StoreError}


def test_a_receipt_that_may_be_there_keeps_its_change(path: Path) -> None:
    store = Store.open(path)
    # The journal is written and flushed; of the receipt, neither flushing nor cutting it off works.
    with (
        failing(lambda name, n: n >= 3) as made,
        pytest.raises(OutcomeUnknownError, match=r"receipts\.jsonl could not be written, nor cut"),
    ):
        store.remove([1])
    assert made == ["pwrite", "fsync", "pwrite", "fsync", "ftruncate"]
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as again:
            assert 1 not in again.row_ids
            again.verify()


def test_what_another_writer_may_not_have_flushed_is_written_again(path: Path) -> None:
    store = Store.open(path)
    journal = next(path.glob("journal-*"))
    size = journal.stat().st_size
    with failing(lambda name, n: n >= 1), pytest.raises(OutcomeUnknownError):
        store.remove([1])
    # A failed fsync leaves pages that count as written. To flush them once more does nothing.
    written: list[tuple[str, int]] = []
    really = os.pwrite

    def noted(number: int, data: Any, at: int) -> int:
        written.append((Path(f"/proc/self/fd/{number}").readlink().name, at))
        return really(number, data, at)

    os.pwrite = noted
    try:
        Store.open(path).close()
    finally:
        os.pwrite = really
    changes = [entry for entry in written if entry[0] != "lock"]
    assert changes[0] == (journal.name, size)
    assert changes[1][0] == "receipts.jsonl"
    with Store.open(path) as store:
        assert store.n_rows == N_ROWS - 2
        store.verify()


def test_a_compaction_that_may_not_stay(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(path)

    def fails(directory: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "flush_directory", fails)
        with pytest.raises(OutcomeUnknownError, match="no change is lost"):
            store.compact()
    # To go on could write a change that belongs to a model whose name a power cut takes away.
    with pytest.raises(StoreError, match="is closed"):
        store.remove([1])
    with Store.open(path) as again:
        assert again.n_rows == N_ROWS - 1
        again.verify()


def test_old_files_go_only_when_the_new_names_are_on_the_disk(path: Path) -> None:
    """A writer is killed after it renamed the new model, and before that reached the disk."""
    store = Store.open(path)
    store._state.write(2, disk.PRIVATE)
    store.close()
    with failing(lambda name, n: False) as made:
        Store.open(path).close()
    # Open, flush the directory; only then are the old model and journal removed.
    steps = [name for name in made if name in ("fsync", "unlink")]
    assert steps == ["fsync", "unlink", "unlink", "fsync"]


def test_a_store_that_may_not_be_there(tmp_path: Path) -> None:
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
            Store.open(path).close()  # here it is, for the power was not cut
        elif not list(path.glob("model-*")):
            with pytest.raises(FileNotFoundError, match="There is no store"):
                Store.open(path)
            Store.create(path, make_model()).close()
    assert unknown >= 2
