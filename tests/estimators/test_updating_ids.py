"""Row ids in updates: selecting rows, assigning ids, and the range of ids."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from graftboost import GraftBoostRegressor

from .small_models import N_ROWS, TARGETS, X, fitted

LEAST_ID, LARGEST_ID = -(2**63), 2**63 - 1


def test_slices_and_masks_select_ids():
    ids = np.random.default_rng(0).permutation(N_ROWS) - 50
    y = TARGETS["regression"]
    model = GraftBoostRegressor(n_estimators=3).fit(X, y, row_ids=ids)
    assert model.remove(slice(-50, -45)).removed_ids.tolist() == [-50, -49, -48, -47, -46]
    assert model.remove(slice(None, -40)).removed_ids.tolist() == [-45, -44, -43, -42, -41]
    assert model.remove(slice(np.int64(148), None)).removed_ids.tolist() == [148, 149]
    assert set(model.remove(model.row_ids_ % 50 == 0).removed_ids.tolist()) == {0, 50, 100}
    first = model.row_ids_[:3].tolist()
    mask = [True] * 3 + [False] * (model.n_rows_ - 3)
    assert model.remove(mask).removed_ids.tolist() == first
    model.check_state()


def test_ids_at_the_ends_of_their_range():
    model = fitted()
    ids = [LEAST_ID, LARGEST_ID, -1, 2**32, 2**32 + 1]
    assert model.add(X[:5], TARGETS["two classes"][:5], row_ids=ids).added_ids.tolist() == ids
    model.check_state()
    assert model.remove([LARGEST_ID, LEAST_ID]).removed_ids.tolist() == [LARGEST_ID, LEAST_ID]
    assert sorted(model.row_ids_.tolist()) == [-1, *range(N_ROWS), 2**32, 2**32 + 1]
    # The largest id was used, and ids are reused only if the caller passes them.
    with pytest.raises(ValueError, match=rf"row_ids is required: .* {LARGEST_ID}.*Pass unused ids"):
        model.add(X[:1], [1])
    assert model.add(X[:1], [1], row_ids=[LARGEST_ID]).added_ids.tolist() == [LARGEST_ID]
    model.check_state()


def test_ids_of_all_kinds_of_integers():
    model = fitted()
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        assert model.remove(np.array([3, 5], dtype=dtype)).removed_ids.tolist() == [3, 5]
        report = model.add(X[[3, 5]], [1, 0], row_ids=np.array([5, 3], dtype=dtype))
        assert report.added_ids.tolist() == [5, 3]
    assert model.remove(np.uint8(7)).removed_ids.tolist() == [7]
    model.check_state()


def test_an_id_can_be_reused_in_the_same_update():
    y = TARGETS["regression"]
    model = fitted("regression", fidelity=0.0)
    before = model.predict(X)
    model.update(X[50:60], y[50:60], row_ids=range(10), remove=range(10))
    assert sorted(model.row_ids_.tolist()) == list(range(N_ROWS))
    assert not np.array_equal(model.predict(X), before)
    model.check_state()
    model.update(X[:10], y[:10], row_ids=range(10), remove=range(10))
    assert np.array_equal(model.refit().predict(X), before)


def test_default_ids_continue_after_the_largest_id():
    model = fitted()
    y = TARGETS["two classes"]
    assert model.add(X[:2], y[:2]).added_ids.tolist() == [200, 201]
    model.remove([200, 201])
    assert model.add(X[:1], y[:1]).added_ids.tolist() == [202]
    model.add(X[:1], y[:1], row_ids=[1_000])
    model.add(X[:1], y[:1], row_ids=[-1_000])
    with pytest.raises(ValueError, match="already holds a row with id 1000"):
        model.add(X[:2], y[:2], row_ids=[1_000, 5_000])
    assert model.add(X[:1], y[:1]).added_ids.tolist() == [1_001]
    model = pickle.loads(pickle.dumps(model))
    assert model.add(X[:1], y[:1]).added_ids.tolist() == [1_002]
    assert model.partial_fit(X[:1], y[:1]).row_ids_.max() == 1_003


def test_an_id_selects_the_same_row_after_many_updates():
    """The held rows are tracked by their ids; a refit equals a fit of these rows."""
    rng = np.random.default_rng(3)
    y = TARGETS["regression"]
    model = GraftBoostRegressor(n_estimators=3, bin_edges=[np.linspace(-2, 2, 21).tolist()] * 3)
    model.fit(X, y)
    row_of = dict(enumerate(range(N_ROWS)))
    for step in range(60):
        out = rng.permutation(sorted(row_of))[: rng.integers(0, 15)]
        into = rng.integers(0, N_ROWS, rng.integers(1, 15))
        ids = None if step % 2 else rng.permutation(10_000)[: len(into)] - 20_000
        if ids is not None:
            ids = ids[~np.isin(ids, sorted(row_of))]
            into = into[: len(ids)]
        report = model.update(X[into], y[into], row_ids=ids, remove=out)
        for id_ in out.tolist():
            del row_of[id_]
        row_of.update(zip(report.added_ids.tolist(), into.tolist(), strict=True))
    assert set(model.row_ids_.tolist()) == set(row_of)
    model.check_state()
    rows = list(row_of.values())
    fresh = clone(model).fit(X[rows], y[rows], row_ids=list(row_of))
    assert np.array_equal(model.refit().predict(X), fresh.predict(X))
