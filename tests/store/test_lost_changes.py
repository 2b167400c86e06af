"""A change whose call has returned is kept, or its loss is reported; others may be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftboost.persistence import file_format
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import Store

from .stores import (
    N_ROWS,
    drop_last_receipt,
    files,
    journal_of,
    make_model,
    make_rows,
    records,
    write_files,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with Store.create(path, make_model()) as store:
        store.remove([16])
        store.remove([17], request="erase me")
    return path


def _lines(path: Path) -> list[bytes]:
    return (path / "receipts.jsonl").read_bytes().splitlines(keepends=True)


def _check_reported(path: Path, message: str = "Change [12] of .* was made.* but is lost") -> None:
    before = files(path)
    for read_only in (True, False):
        with pytest.raises(InvalidFileError, match=message):
            Store.open(path, read_only=read_only)
    assert {**files(path), "lock": b""} == {**before, "lock": b""}  # the files are unchanged


# --- damage ---------------------------------------------------------------------------------------


def test_flipped_bit_in_the_last_change(path: Path) -> None:
    journal = journal_of(path)
    whole, last = journal.read_bytes(), records(path)[-1]
    begin = len(whole) - len(last)
    header_end = file_format.PREFIX.size + file_format.PREFIX.unpack_from(last)[3]
    array = len(last) - file_format.loads(last, "journal").arrays["removed"].nbytes
    places = np.random.default_rng(0).integers(file_format.PREFIX.size, header_end, 30)
    for place in [*range(file_format.PREFIX.size), *places.tolist(), *range(array, len(last))]:
        data = bytearray(whole)
        data[begin + place] ^= 1 << (place % 8)
        journal.write_bytes(data)
        with pytest.raises(InvalidFileError, match=r"Change 2|version"):
            Store.open(path, read_only=True)
    _check_reported(path)


@pytest.mark.parametrize("at", [16, 24])
@pytest.mark.parametrize("value", [0, 1, 40, 2**20, 2**31, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize("which", [0, 1])
def test_wrong_lengths(path: Path, at: int, value: int, which: int) -> None:
    changes = [bytearray(record) for record in records(path)]
    changes[which][at : at + 8] = value.to_bytes(8, "little")
    journal_of(path).write_bytes(b"".join(changes))
    _check_reported(path)


@pytest.mark.parametrize("how", ["deleted", "emptied", "one change less", "cut", "zeros", "older"])
def test_journal_without_a_change(path: Path, how: str) -> None:
    journal = journal_of(path)
    first, last = records(path)
    match how:
        case "deleted":
            journal.unlink()
        case "emptied":
            journal.write_bytes(b"")
        case "one change less":
            journal.write_bytes(first)
        case "cut":
            journal.write_bytes(first + last[: len(last) // 2])
        case "zeros":
            journal.write_bytes(first + bytes(len(last)))
        case "older":
            with Store.open(path) as store:
                store.remove([18])
            journal.write_bytes(first + last)
            _check_reported(path, "Change 3 of .* was made.* but is lost")
            return
    _check_reported(path)


def test_truncated_files(path: Path) -> None:
    journal = journal_of(path)
    whole = journal.read_bytes()
    for size in range(0, len(whole), 97):
        journal.write_bytes(whole[:size])
        with pytest.raises(InvalidFileError, match=r"was made.* but is lost"):
            Store.open(path, read_only=True)


def test_older_model_or_receipts(path: Path) -> None:
    older = files(path)
    with Store.open(path) as store:
        store.remove([18])
        store.compact()
        store.remove([19])
    newer = files(path)
    for name in ("model-000002.graft", "journal-000002.graft"):
        (path / name).unlink()
    for name in ("model-000001.graft", "journal-000001.graft"):
        (path / name).write_bytes(older[name])
    _check_reported(path, "Change 3 of .* was made.* but is lost")
    write_files(path, newer)
    (path / "receipts.jsonl").write_bytes(older["receipts.jsonl"])
    _check_reported(path, r"receipts\.jsonl is damaged")


def test_verify_reads_the_journal_again(path: Path) -> None:
    with Store.open(path, read_only=True) as store:
        journal_of(path).write_bytes(records(path)[0])
        with pytest.raises(InvalidFileError, match=r"Change 2 of .* was made, but is lost"):
            store.verify()


# --- crashes --------------------------------------------------------------------------------------


def _check_as_after(path: Path, *removed: int) -> None:
    for read_only in (True, False, True):
        with Store.open(path, read_only=read_only) as store:
            assert sorted(set(range(N_ROWS)) - set(store.row_ids.tolist())) == list(removed)
            assert [r.number for r in store.history()] == list(range(1 + len(removed)))
            assert store.last_receipt == store.history()[-1]
            store.verify()
    with Store.open(path) as store:
        store.remove([100])
        store.verify()
        assert [r.number for r in store.history()] == list(range(2 + len(removed)))


@pytest.mark.parametrize("end", ["cut", "zeros", "garbage", "header only", "nothing"])
def test_unfinished_change_is_not_made(path: Path, end: str) -> None:
    """The power fails before the journal is flushed, and so before its receipt is written."""
    first, last = records(path)
    torn = {
        "cut": last[: len(last) // 3],
        "zeros": bytes(len(last)),
        "garbage": last[:200] + np.random.default_rng(0).bytes(len(last) - 200),
        "header only": last[:700] + bytes(len(last) - 700),
        "nothing": b"",
    }[end]
    journal_of(path).write_bytes(first + torn)
    drop_last_receipt(path)
    _check_as_after(path, 16)


@pytest.mark.parametrize("end", ["nothing", "half", "zeros", "garbage", "lines of garbage"])
def test_change_with_an_unfinished_receipt_is_made(path: Path, end: str) -> None:
    *lines, last = _lines(path)
    torn = {
        "nothing": b"",
        "half": last[: len(last) // 2],
        "zeros": bytes(len(last)),
        "garbage": last[:20] + np.random.default_rng(0).bytes(len(last)),
        "lines of garbage": b"\n{}\n[]\n\n" + last[5:],
    }[end]
    (path / "receipts.jsonl").write_bytes(b"".join(lines) + torn)
    _check_as_after(path, 16, 17)
    with Store.open(path) as store:
        assert store.receipt("erase me").number == 2


def test_damaged_receipt_before_others_is_reported(path: Path) -> None:
    first, second, third = _lines(path)
    (path / "receipts.jsonl").write_bytes(first + second[:-9] + b'0000000"\n' + third)
    _check_reported(path, "receipt 1 is missing or was modified")


def test_reading_a_store_whose_writer_was_killed(path: Path) -> None:
    """It was not opened for writing since then; readers get the change, and can verify it."""
    *lines, _ = _lines(path)
    (path / "receipts.jsonl").write_bytes(b"".join(lines))
    with Store.open(path, read_only=True) as store:
        assert 17 not in store.row_ids
        assert store.last_receipt.request == "erase me"
        store.verify()
    assert _lines(path) == lines
    Store.open(path).close()
    assert len(_lines(path)) == 3


def test_receipts_are_written_with_each_change(path: Path) -> None:
    X, _ = make_rows(3, 1)

    def requests() -> list[Any]:
        return [line.split(b'"request":"')[1].split(b'"')[0] for line in _lines(path)]

    with Store.open(path) as store:
        store.add(X, ["yes"], request="one more")
        assert requests()[-1] == b"one more"
        store.refit(request="all of them")
        assert requests()[-1] == b"all of them"
        before = _lines(path)
        store.compact()
        assert _lines(path) == before
