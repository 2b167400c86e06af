"""What the journal records of deferred changes and of regrowing, and how they are replayed."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from graftboost.persistence import atomic_file, file_format
from graftboost.persistence.json_values import decode
from graftboost.store import Store, StoreError

from .deferred_changes import OUT, defer, n_pending
from .stores import N_ROWS, drop_last_receipt, journal_of, make_model, records, state

# --- arguments and parameters ---------------------------------------------------------------------


def last_header(path: Path) -> dict[str, Any]:
    return file_format.loads(records(path)[-1], "journal").header


def test_arguments_of_regrowing_are_recorded(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.model.set_params(memory_floor=0.5)
        defer(store)
        assert decode(last_header(path)["rule"])["regrow"] is False
        store.regrow(0.05, fidelity=0.25)
        header = last_header(path)
        assert decode(header["work"]) == 0.05
        assert decode(header["rule"]) == {
            "name": "fidelity",
            "fidelity": 0.25,
            "memory_floor": 0.5,
            "tolerance": 0.0,
            "top_candidates": 1,
            "regrow": True,
        }
        store.remove([1], regrow=False)
        store.regrow()
        assert decode(last_header(path)["work"]) == math.inf
        assert decode(last_header(path)["rule"])["fidelity"] == 0.85
        found = state(store)
    with Store.open(path) as store:
        assert state(store) == found
        assert (store.model.fidelity, store.model.memory_floor) == (0.85, 0.5)


@pytest.mark.parametrize("parameter", [{"fidelity": 0.5}, {"n_jobs": 2}, {"memory_floor": 0.3}])
def test_parameters_used_by_regrowing_are_kept(path: Path, parameter: dict[str, Any]) -> None:
    with Store.create(path, make_model()) as store:
        defer(store)
        store.model.set_params(**parameter)
        store.regrow()
    with Store.open(path) as store:
        [(name, value)] = parameter.items()
        assert store.model.get_params()[name] == value


# --- replay ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["deferral", "regrowing"])
def test_change_without_its_receipt_is_made(path: Path, what: str) -> None:
    """The writer was killed between the journal and the receipt."""
    with Store.create(path, make_model()) as store:
        defer(store)
        if what == "regrowing":
            store.regrow(0.1, request="tonight")
        found, receipt, digest = state(store), store.last_receipt, store.digest
    drop_last_receipt(path)
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as store:
            assert (state(store), store.digest) == (found, digest)
            assert store.last_receipt == receipt
            store.verify()
    log = (path / "receipts.jsonl").read_bytes()
    assert json.loads(log.splitlines()[-1])["hash"] == receipt.hash


@pytest.mark.parametrize("what", ["deferral", "regrowing"])
def test_incomplete_change_is_not_made(path: Path, what: str) -> None:
    with Store.create(path, make_model()) as store:
        defer(store)
        before = state(store)
        store.regrow(0.1) if what == "regrowing" else store.remove([1], regrow=False)
    drop_last_receipt(path)
    journal = journal_of(path)
    journal.write_bytes(journal.read_bytes()[:-5])
    for read_only in (True, False):
        with Store.open(path, read_only=read_only) as store:
            assert state(store) == before
            assert n_pending(store) == len(OUT)
            store.verify()


@pytest.mark.parametrize("what", ["deferral", "regrowing"])
def test_change_that_cannot_be_written_is_undone(
    path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is noted of deferred rows, which the digest does not cover."""

    def fail(*args: Any) -> None:
        raise OSError(5, "Input/output error")

    with Store.create(path, make_model()) as store:
        defer(store)
        before, pending, digest = state(store), store.pending, store.digest
        with monkeypatch.context() as patch:
            patch.setattr(atomic_file, "write", fail)
            with pytest.raises(StoreError, match=r"The store is unchanged|what it held before"):
                store.regrow(0.1) if what == "regrowing" else store.remove([1], regrow=False)
        assert store.digest == digest
        assert state(store) == before
        assert store.pending == pending
        model = copy.deepcopy(store.model)
        store.regrow()
        model.regrow()
        assert state(store) == state(model)
        assert store.n_rows == N_ROWS - len(OUT)
        store.verify()
    with Store.open(path) as store:
        assert state(store) == state(model)
