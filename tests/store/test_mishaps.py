"""Errors of the environment or the caller leave a store valid."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graftboost.persistence import atomic_file, file_format
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import OutcomeUnknownError, Store, StoreError, digest
from tests.forking import fork, wait_for

from .stores import N_ROWS, make_model, make_rows


def _failing(times: int = 1, error: BaseException | None = None) -> Any:
    """Wrap a function so that it raises an error a few times, after it has run."""

    def wrap(function: Any) -> Any:
        left = times

        def failing(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            result = function(*args, **kwargs)
            if left:
                left -= 1
                raise error or OSError(5, "Input/output error")
            return result

        return failing

    return wrap


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_compaction_that_fails_after_the_rename(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    store = Store.create(path, make_model())
    store.remove([1])
    with monkeypatch.context() as patch:
        patch.setattr(atomic_file, "rename", _failing(error=error)(atomic_file.rename))
        with pytest.raises((OutcomeUnknownError, KeyboardInterrupt)):
            store.compact()
    if isinstance(error, OSError):
        with pytest.raises(StoreError, match="is closed, because the disk failed"):
            store.remove([2])
        store = Store.open(path)
    store.remove([2])
    before = store.digest
    store.close()
    with Store.open(path) as store:
        assert store.digest == before
        assert store.n_rows == N_ROWS - 2
        assert len(store.history()) == 3
        store.verify()


def test_files_are_removed_by_the_next_compaction(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(path, make_model())
    store.remove([1])

    def locked(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_file, "remove", locked)
        with pytest.raises(StoreError, match="may still hold removed rows"):
            store.compact()
    assert (path / "model-000001.graft").exists()
    store.compact()
    assert not (path / "model-000001.graft").exists()
    store.close()


def test_a_store_that_cannot_be_read_again_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(path, make_model())

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_file, "write", full)
        patch.setattr(file_format, "load", full)
        with pytest.raises(StoreError, match=r"No space left.*is closed.*open it again"):
            store.remove([1])
    with pytest.raises(StoreError, match="is closed, because its files could not be read again"):
        store.remove([2])
    store.close()
    with Store.open(path) as store:
        assert store.n_rows == N_ROWS


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Store.create("store", make_model()) as store:
        monkeypatch.chdir("/")
        store.remove([1])
        store.compact()
    monkeypatch.chdir(tmp_path)
    with Store.open("store") as store:
        monkeypatch.chdir("/")
        store.remove([2])
        store.verify()


def test_changes_made_through_the_estimator_are_refused(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([1])
        store.model.remove([5])
        with pytest.raises(StoreError, match="was changed through its estimator"):
            store.remove([6])
        assert store.n_rows == N_ROWS - 1
        store.remove([6])
        assert 5 in store.model.row_ids_
    with Store.open(path) as store:
        assert store.n_rows == N_ROWS - 2


def test_incomplete_ends_of_files(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([1])
    journal, receipts = path / "journal-000001.graft", path / "receipts.jsonl"
    with journal.open("ab") as file:  # the beginning of a change, some of its pages not written
        file.write(file_format.MAGIC + bytes(500))
    with receipts.open("ab") as file:
        file.write(bytes(40) + b"}\n")
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as store:
            assert store.n_rows == N_ROWS - 1
            assert len(store.history()) == 2
            store.verify()
    with Store.open(path) as store:
        store.remove([2])
        store.compact()
        store.verify()
        assert [r.number for r in store.history()] == [0, 1, 2]


def test_changes_too_large_to_be_read_are_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = make_rows(3, 50)
    with Store.create(path, make_model(), attributes={"who": ["x"] * N_ROWS}) as store:
        monkeypatch.setattr(file_format, "MOST_HEADER_BYTES", 4000)
        with pytest.raises(ValueError, match="Change fewer rows at once"):
            store.add(X, ["yes", "no"] * 25, attributes={"who": ["somebody else " * 8] * 50})
        monkeypatch.undo()
        assert store.n_rows == N_ROWS
        assert digest(store._state.saved.engine_model) == store.digest


def test_damaged_data_is_not_written_with_valid_checksums(path: Path) -> None:
    Store.create(path, make_model("regressor")).close()
    model = path / "model-000001.graft"
    found = file_format.load(model)
    data = bytearray(model.read_bytes())
    data[data.index(found.arrays["row_raw_target"].tobytes()[:64])] ^= 1
    model.write_bytes(data)
    with Store.open(path) as store:
        store.remove([1])
        with pytest.raises(InvalidFileError, match="checksum of row_raw_target"):
            store.compact()
        with pytest.raises(InvalidFileError, match="checksum of row_raw_target"):
            store.verify()


def test_store_that_could_not_be_created(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(file_format, "save", full)
        with pytest.raises(OSError, match="No space left"):
            Store.create(path, make_model())
    for value in (object(), float("nan")):
        with pytest.raises(ValueError, match=r"^notes cannot be stored as JSON"):
            Store.create(path, make_model(), notes={"a": value})
    with pytest.raises(FileNotFoundError, match="There is no store"):
        Store.open(path)
    with Store.create(path, make_model()) as store:
        store.verify()


def test_an_unreferenced_store_releases_its_lock(path: Path) -> None:
    store = Store.create(path, make_model())
    del store
    gc.collect()
    store = Store.open(path)
    child = fork(signal.pause)
    store.close()
    try:
        Store.open(path).close()
    finally:
        os.kill(child, signal.SIGKILL)
        wait_for(child)


def test_requests_take_precedence_over_numbers(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([1], request="0")
        store.remove([2])
        assert store.receipt("0").number == 1
        assert store.receipt("2").number == 2
        assert store.receipt(0).number in (0, 1)


def test_large_numbers_in_columns_with_missing_values(path: Path) -> None:
    large = 2**53 + 1
    whole = {"customer": [large + i for i in range(N_ROWS)]}
    X, _ = make_rows(3, 1)
    with Store.create(path, make_model(), attributes=whole) as store:
        assert store.find(f"customer == {large}").tolist() == [0]
        with pytest.raises(ValueError, match=r"cannot be stored exactly\. Pass the column as"):
            store.add(X, ["yes"], attributes={"customer": [None]})
        store.add(X, ["yes"], attributes={"customer": [large]})
        assert store.find(f"customer == {large}").tolist() == [0, 200]
    with pytest.raises(ValueError, match="cannot be stored exactly"):
        Store.create(
            path.with_name("b"), make_model(), attributes={"c": [None, *whole["customer"][1:]]}
        )


def test_missing_dates_and_empty_columns(path: Path) -> None:
    since = pd.Series(pd.to_datetime(["2024-05-01"] * N_ROWS))
    since[0] = pd.NaT
    kept = {"since": since, "nothing": [None] * N_ROWS}
    X, _ = make_rows(3, 1)
    with Store.create(path, make_model(), attributes=kept) as store:
        assert 0 not in store.find("since >= '2020-01-01'")
        assert len(store.find("since >= '2020-01-01'")) == N_ROWS - 1
        store.add(X, ["yes"], attributes={"since": ["2025-01-01"], "nothing": [7]})
        assert store.find("nothing == 7").tolist() == [200]
        store.compact()
    with Store.open(path) as store:
        assert store.find("nothing == 7").tolist() == [200]
        assert np.isnan(store._state.attributes.columns["nothing"][0])
        with pytest.raises(ValueError, match="not valid Unicode"):
            store.add(X, ["yes"], attributes={"since": ["\ud800"], "nothing": [1]})


def test_new_class_whose_rows_are_refused(path: Path) -> None:
    X, _ = make_rows(3, 2)
    with Store.create(path, make_model()) as store:
        with pytest.raises(ValueError, match="already holds a row with id 0"):
            store.add(X, ["maybe"] * 2, row_ids=[0, 1000])
        assert list(store._state.saved.classes) == [2]
        store.add(X, ["perhaps"] * 2)
        assert store.summary()["classes"] == ["no", "perhaps", "yes"]
        store.verify()
