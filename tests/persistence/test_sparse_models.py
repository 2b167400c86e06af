"""Copies, files and stores of models of sparse tables: restored models behave the same."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import graftboost
from graftboost.store import Store
from tests.input.sparse_tables import (
    N_ROWS,
    TARGETS,
    X,
    assert_same,
    assert_same_report,
    make_model,
    with_cell,
)


def updates(model: Any, turn: int, make: Any = scipy.sparse.csr_array) -> Any:
    """Make the update with this number; some of its rows have columns that no row had before."""
    rng = np.random.default_rng(turn)
    rows = X[rng.choice(N_ROWS, 8)].copy()
    rows[:, 3 + 6 * (turn % 4)] = rng.choice([0.0, -1.0, 2.0], 8)
    labels = rng.choice(["no", "yes"], 8)
    held = model.row_ids if isinstance(model, Store) else model.row_ids_
    out = rng.choice(np.sort(held), 5, replace=False)
    return model.update(make(rows), labels, remove=out)


def copy_by(way: str, model: Any, folder: Path) -> Any:
    if way == "file":
        model.save(folder / "model")
        return graftboost.load(folder / "model")
    return copy.deepcopy(model) if way == "deepcopy" else pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "file"])
@pytest.mark.parametrize("memory", [None, 0])
def test_updates_of_copies_are_the_same(way: str, memory: float | None, tmp_path: Path) -> None:
    y = TARGETS["two classes"]
    model = make_model(stats_memory=memory).fit(scipy.sparse.csr_matrix(X), y)
    dense = make_model().fit(X, y)
    for turn in range(8):
        other = copy_by(way, model, tmp_path)
        assert_same(other, model)
        report = updates(model, turn)
        assert_same_report(updates(other, turn), report)
        assert_same_report(updates(dense, turn, np.asarray), report)
        assert_same(other, model)
        assert_same(dense, model)
        if turn % 3 == 2:
            model = other


def test_a_file_without_state_can_predict(tmp_path: Path) -> None:
    model = make_model().fit(scipy.sparse.csr_matrix(X), TARGETS["two classes"])
    updates(model, 3)
    model.save(tmp_path / "small", updatable=False)
    small = graftboost.load(tmp_path / "small")
    assert np.array_equal(small.predict_proba(scipy.sparse.csr_array(X)), model.predict_proba(X))
    with pytest.raises(ValueError, match="updatable=False"):
        small.remove([0])


@pytest.mark.parametrize("compact_every", [2, 100])
def test_stores(compact_every: int, tmp_path: Path) -> None:
    y = TARGETS["two classes"]
    model = make_model().fit(scipy.sparse.csr_matrix(X), y)
    dense = make_model().fit(X, y)
    path = tmp_path / "store"
    with (
        Store.create(path, model, compact_every=compact_every) as store,
        Store.create(tmp_path / "dense", dense) as other,
    ):
        assert store.digest == other.digest
        for turn in range(4):
            make = scipy.sparse.csc_array if turn % 2 else np.asarray
            assert_same_report(updates(store, turn, make), updates(other, turn, np.asarray))
            updates(model, turn)
            assert store.digest == other.digest
            assert_same(store.model, model)
            assert np.array_equal(store.predict(scipy.sparse.csr_array(X)), model.predict(X))
        store.verify()
    with Store.open(path, compact_every=compact_every) as store:
        assert_same(store.model, model)
        held = np.sort(store.row_ids)[::40]
        store.remove(held)
        model.remove(held)
        store.compact()
        store.verify()
        assert_same(store.model, model)
        store.add(scipy.sparse.csr_matrix(X[:4]), y[:4])
        store.refit()
        store.refresh()
        model.add(X[:4], y[:4])
        model.refit().refresh()
    with Store.open(path, read_only=True) as store:
        assert_same(store.model, model)
        store.verify()
    with Store.open(path, compact_every=compact_every) as store:
        updates(store, 9)
        updates(model, 9)
        assert_same(store.model, model)


def test_a_store_with_infinity_or_other_columns_is_unchanged(tmp_path: Path) -> None:
    y = TARGETS["two classes"]
    path = tmp_path / "store"
    with Store.create(path, make_model().fit(scipy.sparse.csr_array(X), y)) as store:
        digest = store.digest
        with pytest.raises(ValueError, match="column 13 contains infinity"):
            store.add(with_cell(np.inf, 13), y[:5])
        with pytest.raises(ValueError, match="3 features"):
            store.add(scipy.sparse.csr_array((5, 3)), y[:5])
        assert store.digest == digest
        store.verify()
    with Store.open(path) as store:
        assert store.digest == digest
