"""The file of receipts is read line by line, and its content is validated."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from graftboost.cli import query_commands
from graftboost.cli.output import Output
from graftboost.estimators.forgetting import Forgetting
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import Receipt, Store

from .stores import make_model, reseal_model

N_RECEIPTS = 10_000
MOST_BYTES = 3e6  # all receipts at once take more than 20 MB


@pytest.fixture(scope="module")
def long_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a long history: a valid chain of receipts, and a model that refers to it."""
    path = tmp_path_factory.mktemp("stores") / "store"
    Store.create(path, make_model()).close()
    log = path / "receipts.jsonl"
    receipt = Receipt.from_json(json.loads(log.read_bytes()))
    begin = end = 0
    with log.open("wb") as file:
        for number in range(N_RECEIPTS):
            begin, line = end, receipt.to_line()
            end = begin + file.write(line)
            last = receipt
            receipt = replace(
                last,
                number=number + 1,
                request=f"request {number + 1}",
                action="refresh",
                added=[],
                before=last.after,
                strategy="in-place",
                previous=last.hash,
            ).sealed()

    def name_it(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        header["store"].update(number=last.number, receipt=last.hash, receipt_at=[begin, end])

    reseal_model(path, name_it)
    return path


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def test_many_receipts_take_little_memory(long_store: Path) -> None:
    with _little_memory(), Store.open(long_store) as store:
        store.verify()
        assert store.receipt("request 777").number == 777
        assert store.refitted_since(store.receipt(0))
        assert store.last_receipt.number == N_RECEIPTS - 1


COMMANDS = {
    "history": lambda path: query_commands.history(Output(False), path, None),
    "history --json": lambda path: query_commands.history(Output(True), path, None),
    "history --last": lambda path: query_commands.history(Output(False), path, 5),
    "info": lambda path: query_commands.info(Output(False), path),
    "receipt": lambda path: query_commands.receipt(Output(False), path, "request 9000", None),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_take_little_memory(long_store: Path, command: str) -> None:
    with (
        open(os.devnull, "w") as nowhere,  # noqa: PTH123
        contextlib.redirect_stdout(nowhere),
        _little_memory(),
    ):
        COMMANDS[command](long_store)


DEEP = b"[" * 100_000 + b"]" * 100_000 + b"\n"


def test_deeply_nested_line(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.create(path, make_model()) as store:
        store.remove([1])
        store.remove([2])
        store.compact()
    log = path / "receipts.jsonl"
    whole = log.read_bytes()
    with log.open("ab") as file:
        file.write(DEEP)  # as a crash may leave it
    with Store.open(path) as store:
        store.verify()
        store.remove([3])
        store.verify()
    log.write_bytes(DEEP)
    with pytest.raises(InvalidFileError, match=r"receipts\.jsonl is damaged"):
        Store.open(path)
    first, second, third = whole.splitlines(keepends=True)
    nested = b"[" * len(second[:-1]) + b"\n"
    log.write_bytes(first + nested + third)
    (path / "journal-000002.graft").unlink()
    with Store.open(path) as store:
        for use in (store.history, store.verify):
            with pytest.raises(InvalidFileError, match="line 2 is not a receipt"):
                use()


FORGETTING = asdict(Forgetting(1.5, 0.5, 0.25, 0.5, 2, 1))


@pytest.mark.parametrize(
    "entries",
    [
        {"number": "1"},
        {"number": True},
        {"request": 7},
        {"time": "yesterday"},
        {"action": "forge"},
        {"removed": [[1, "2"]], "edges": "supplied"},
        {"removed": [[2, 1]], "edges": "supplied"},
        {"removed": [[1, 3], [2, 5]], "edges": "supplied"},
        {"removed": [[1, 2**70]], "edges": "supplied"},
        {"removed": {"1": 2}, "edges": "supplied"},
        {"edges": "sharp"},
        {"strategy": ["refit"]},
        {"after": "x"},
        {"before": None},
        {"nodes_regrown": -1},
        {"rows_regrown": 0.5},
        {"forgetting": {}},
        {"forgetting": [1.0, 0.0, 0.0, 0.0, 1, 0]},
        {"forgetting": {**FORGETTING, "more": 1}},
        {"forgetting": {**FORGETTING, "achieved": "1"}},
        {"forgetting": {**FORGETTING, "achieved": True}},
        {"forgetting": {**FORGETTING, "achieved": None}},
        {"forgetting": {**FORGETTING, "achieved": 10**400}},
        {"forgetting": {**FORGETTING, "memory_left": math.nan}},
        {"forgetting": {**FORGETTING, "memory_left_error": math.inf}},
        {"forgetting": {**FORGETTING, "rows_remembered": -1}},
        {"forgetting": {**FORGETTING, "rows_still_remembered": 0.5}},
        {"more": 1},
    ],
    ids=lambda entries: str(entries)[:150],
)
def test_invalid_receipts(tmp_path: Path, entries: dict[str, Any]) -> None:
    path = tmp_path / "store"
    Store.create(path, make_model()).close()
    log = path / "receipts.jsonl"
    content = json.loads(log.read_bytes())
    Receipt.from_json(content)
    Receipt.from_json({**content, "forgetting": FORGETTING})
    with pytest.raises(ValueError, match=r"its '|the fields of a receipt"):
        Receipt.from_json({**content, **entries})


def test_requests_must_be_text(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.create(path, make_model()) as store:
        for call in (lambda: store.remove([1], request=7), lambda: store.refit(request=b"7")):  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="request is of type"):
                call()
        assert len(store.history()) == 1
        store.verify()
