"""Tables with millions of columns, most of them zero: the cost depends on the stored values."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import scipy.sparse

import graftboost
from graftboost import GraftBoostClassifier
from graftboost.store import Store
from tests.input.sparse_tables import WIDTH, assert_same_report, make_model, make_wide


def test_two_million_columns(tmp_path: Path) -> None:
    table, y = make_wide(0, 1_500)
    later, labels = make_wide(1, 60)
    tracemalloc.start()
    try:
        model = GraftBoostClassifier(n_estimators=20, max_leaf_nodes=12, n_jobs=1).fit(table, y)
        for turn in range(6):
            rows = slice(10 * turn, 10 * turn + 10)
            model.update(later[rows], labels[rows], remove=range(10 * turn, 10 * turn + 10))
        model.check_state()
        assert model.score(table, y) > 0.95
        model.save(tmp_path / "model")
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 50e6
    assert (tmp_path / "model").stat().st_size < 5e6
    again = graftboost.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(later), model.predict_proba(later))
    assert_same_report(again.remove([100, 200]), model.remove([100, 200]))
    again.check_state()
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))
    importances = model.feature_importances_
    assert importances.shape == (WIDTH,)
    assert (np.flatnonzero(importances) >= WIDTH // 2).all()
    model.refit()
    again.refit()
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))


def test_empty_columns_do_not_affect_the_model() -> None:
    """Without the empty columns, only the numbers of the other columns change."""
    table, y = make_wide(0, 400)
    used = np.unique(table.indices)
    narrow = table[:, used]
    model = make_model(split_sample=1.0).fit(table, y)
    other = make_model(split_sample=1.0).fit(narrow, y)
    assert np.array_equal(model.predict_proba(table), other.predict_proba(narrow))
    for turn in range(4):
        out = range(10 * turn, 10 * turn + 9)
        assert_same_report(model.remove(out), other.remove(out))
        assert np.array_equal(model.predict_proba(table), other.predict_proba(narrow))
    assert model.feature_importances_[used].tolist() == other.feature_importances_.tolist()


def test_a_store_of_a_wide_model(tmp_path: Path) -> None:
    table, y = make_wide(0, 400)
    later, labels = make_wide(1, 30)
    model = make_model().fit(table, y)
    path = tmp_path / "store"
    with Store.create(path, model) as store:
        store.update(later, labels, remove=range(20))
        store.remove(range(20, 30))
    assert sum(file.stat().st_size for file in path.iterdir()) < 2e6
    model.update(later, labels, remove=range(20))
    model.remove(range(20, 30))
    with Store.open(path) as store:
        assert np.array_equal(store.predict_proba(table), model.predict_proba(table))
        store.compact()
        store.verify()
    assert sum(file.stat().st_size for file in path.iterdir()) < 2e6


def test_column_numbers_beyond_the_precision_of_floats(tmp_path: Path) -> None:
    last = 2**24 + 5
    columns = np.where(np.arange(200) % 3 == 0, last, last - 1)
    table = scipy.sparse.csr_array((np.ones(200), (np.arange(200), columns)), shape=(200, last + 1))
    y = np.arange(200) % 3 == 0
    model = make_model().fit(table, y)
    assert model.score(table, y) == 1.0
    model.remove(range(30))
    model.add(table[:6], y[:6])
    model.check_state()
    model.save(tmp_path / "model")
    assert graftboost.load(tmp_path / "model").score(table, y) == 1.0
