"""Deferred regrowing in a store gives the same model as in an estimator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftboost.store import Store
from graftboost.store.receipts import find_break

from .deferred_changes import CHANGES, LABELS, OUT, X, defer, n_pending
from .stores import make_model, state


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_change_equals_that_of_the_estimator(path: Path, name: str, loads: bool) -> None:
    model = make_model()
    Store.create(path, model).close()
    expected = CHANGES[name](model, regrow=False)
    with Store.open(path) as store:
        if loads:
            store.model  # noqa: B018
        report = CHANGES[name](store, regrow=False)
        assert report.rows_deferred == expected.rows_deferred == n_pending(store) > 0
        assert (report.strategy, report.nodes_regrown) == ("in-place", 0)
        assert state(store) == state(model)
        assert store.pending == model.pending_
        assert store.regrow().forgetting == model.regrow().forgetting
        assert state(store) == state(model)
        assert n_pending(store) == 0
        store.verify()


STEPS: dict[str, Callable[[Any], Any]] = {
    "remove later": defer,
    "add later": lambda owner: owner.add(X, LABELS, regrow=False),
    "regrow a part": lambda owner: owner.regrow(0.05),
    "remove": lambda owner: owner.remove([101, 102]),
    "refresh": lambda owner: owner.refresh(),
    "update later": lambda owner: owner.update(X, LABELS, remove=[103], regrow=False),
    "regrow": lambda owner: owner.regrow(fidelity=0.7),
    "remove once more": lambda owner: owner.remove([104, 105], regrow=False),
    "refit": lambda owner: owner.refit(),
    "remove at last": lambda owner: owner.remove([106], regrow=False),
}


@pytest.mark.parametrize("between", ["nothing", "reopen", "compact", "both"])
def test_store_and_estimator_stay_identical(path: Path, between: str) -> None:
    model = make_model()
    store = Store.create(path, model)
    for step in STEPS.values():
        step(store)
        step(model)
        assert state(store) == state(model)
        if between in ("compact", "both"):
            store.compact()
        if between in ("reopen", "both"):
            store.close()
            store = Store.open(path)
        assert state(store) == state(model)
        assert store.pending == model.pending_
    store.verify()
    store.close()
    with Store.open(path, read_only=True) as reader:
        reader.verify()
        assert state(reader) == state(model)
        assert reader.pending == model.pending_
        assert find_break(reader.receipts()) is None


@pytest.mark.parametrize("compact_every", [1, 4, 100])
def test_compaction_by_itself(path: Path, compact_every: int) -> None:
    model = make_model()
    with Store.create(path, model, compact_every=compact_every) as store:
        for owner in (store, model):
            defer(owner)
            owner.regrow(0.05)
            owner.regrow()
        assert state(store) == state(model)
        store.verify()


def test_store_of_a_model_with_deferred_rows(path: Path) -> None:
    model = make_model()
    defer(model)
    with Store.create(path, model) as store:
        assert store.last_receipt.rows_deferred == len(OUT) == n_pending(store)
        assert not store.last_receipt.deferred
        assert "not yet regrown  15 rows" in str(store.last_receipt)
        assert store.pending == model.pending_
    with Store.open(path) as store:
        store.regrow()
        model.regrow()
        assert state(store) == state(model)
        assert store.regrown_by(store.receipt(0)) == store.receipt(1)
