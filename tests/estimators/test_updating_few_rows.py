"""Updates that leave few rows, start from few rows, or change no row."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .small_models import N_ROWS, TARGETS, X, fitted


@pytest.mark.parametrize(
    ("target", "n_left"),
    [("two classes", 1), ("three classes", 1), ("three classes", 2), ("regression", 7)],
)
def test_removing_most_rows_and_adding_them_again(target, n_left, assert_same_model):
    model = fitted(target)
    whole = fitted(target)
    model.remove(slice(n_left, None))
    assert model.row_ids_.tolist() == list(range(n_left))
    model.check_state()
    assert np.isfinite(model._raw_scores(X)).all()
    model.add(X[n_left:], TARGETS[target][n_left:], row_ids=range(n_left, N_ROWS))
    assert_same_model(model, whole)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"update_rule": "regret", "tolerance": 0.0},
        {"update_rule": "regret", "tolerance": 1e12},
    ],
)
@pytest.mark.parametrize("subsample", [0.5, 1.0])
def test_removing_rows_one_by_one(target, parameters, subsample):
    model = fitted(target, **parameters, subsample=subsample, min_samples_leaf=6)
    for row in range(N_ROWS - 1):
        model.remove(row)
        if row % 10 and row < N_ROWS - 10:
            continue
        model.check_state()
        assert np.isfinite(model._raw_scores(X)).all()
        for t in range(model._engine_model.n_trees):
            tree = model._engine_model.tree(t)
            assert len(tree["n"]) == 1 or tree["n"].min() >= 6
    with pytest.raises(ValueError, match=r"row_ids: these are all the rows .* or fit anew"):
        model.remove(N_ROWS - 1)
    assert model.row_ids_.tolist() == [N_ROWS - 1]
    # The last row may be removed if another one is added.
    model.update(X[:1], TARGETS[target][:1], remove=[N_ROWS - 1])
    assert model.row_ids_.tolist() == [N_ROWS]
    model.check_state()


@pytest.mark.parametrize("target", TARGETS)
def test_starting_with_few_rows(target):
    y = TARGETS[target]
    few = np.unique(y, return_index=True)[1][:3]
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    model = Estimator(n_estimators=5, bin_edges=[np.linspace(-2, 2, 21).tolist()] * 3)
    model.fit(X[few], y[few], row_ids=few)
    for row in np.setdiff1d(np.arange(N_ROWS), few):
        model.add(X[[row]], y[[row]], row_ids=[row])
        if row % 20 == 0:
            model.check_state()
    whole = clone(model).fit(X, y)
    assert model.n_rows_ == N_ROWS
    assert np.array_equal(model.refit()._raw_scores(X), whole._raw_scores(X))


@pytest.mark.parametrize("in_steps", [False, True])
def test_removing_a_class_and_adding_it_again(in_steps):
    y = TARGETS["three classes"]
    model = fitted("three classes")
    gone = np.flatnonzero(y == 1)
    for rows in gone[:, np.newaxis] if in_steps else [gone]:
        model.remove(rows)
    model.check_state()
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X)[:, 1].max() < 0.05
    for rows in gone[:, np.newaxis] if in_steps else [gone]:
        model.add(X[rows], y[rows], row_ids=rows)
    model.check_state()
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X) == y).mean() > 0.85
    assert np.array_equal(model.refit().predict_proba(X), fitted("three classes").predict_proba(X))


def test_removing_all_classes_but_one():
    y = TARGETS["two classes"]
    model = fitted()
    model.remove(np.flatnonzero(y == 1))
    model.check_state()
    assert model.predict(X).tolist() == [0] * N_ROWS
    model.add(X[y == 1], y[y == 1])
    model.check_state()
    assert (model.predict(X) == y).mean() > 0.85


@pytest.mark.parametrize("parameters", [{}, {"update_rule": "regret", "tolerance": 0.0}])
def test_adding_and_removing_rows_of_weight_zero(parameters):
    y = TARGETS["regression"]
    weight = np.ones(N_ROWS)
    weight[:50] = 0
    model = GraftBoostRegressor(n_estimators=5, **parameters).fit(X, y, weight)
    before = model.predict(X)
    for _ in range(3):
        removed = model.remove(model.row_ids_[model.row_ids_ < 20][:10]).removed_ids
        model.add(X[:10], y[:10] + 5, np.zeros(10), row_ids=removed)
        assert np.array_equal(model.predict(X), before)
        model.check_state()


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        (),
        range(0),
        np.empty(0),
        np.empty(0, dtype=np.uint64),
        pd.Series([], dtype="int64"),
        pl.Series([], dtype=pl.Int64),
        np.zeros(N_ROWS, dtype=bool),
        slice(500, 600),
        slice(7, 7),
        slice(2**70, None),
    ],
)
def test_removing_no_rows_changes_nothing(nothing):
    model = fitted()
    before = pickle.dumps(model)
    report = model.remove(nothing)
    assert (len(report.removed_ids), report.trees_touched, model.n_rows_) == (0, 0, N_ROWS)
    assert pickle.dumps(model) == before
    assert model.update(X[:1], [1], remove=nothing).added_ids.tolist() == [N_ROWS]


def test_empty_update_changes_nothing():
    model = fitted()
    before = pickle.dumps(model)
    assert "0 rows added, 0 removed" in str(model.update())
    assert pickle.dumps(model) == before


def test_remaining_targets_of_tiny_range_keep_their_scale():
    y = 3 * X[:, 0]
    y[:2] = 0, 1e-309
    model = GraftBoostRegressor(n_estimators=3).fit(X, y)
    model.remove(slice(2, None))
    model.check_state()
    assert np.allclose(model.predict(X[:2]), 0, atol=1e-6)  # one step of the grid of targets


def test_removing_all_rows_but_two_and_adding_them_again():
    y = 3 * X[:, 0]
    model = GraftBoostRegressor(n_estimators=3).fit(X, y, row_ids=np.arange(len(X)))
    expected = model.predict(X)
    model.remove(slice(2, None))
    model.add(X[2:], y[2:], row_ids=np.arange(2, len(X)))
    assert np.array_equal(model.predict(X), expected)


@pytest.mark.parametrize("seed", [4, 15, 19])
@pytest.mark.parametrize("parameters", [{}, {"update_rule": "regret", "tolerance": 100.0}])
def test_node_that_was_too_small_to_split_grows_and_is_regrown(seed, parameters):
    """A histogram counted for a node's ancestors must not replace that of its own rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(700, 4)).round(2)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=700)
    model = GraftBoostRegressor(
        n_estimators=10,
        max_leaf_nodes=12,
        min_samples_leaf=10,
        n_jobs=1,
        **parameters,
    ).fit(X[:60], y[:60])
    for begin in range(60, 700, 8):
        model.add(X[begin : begin + 8], y[begin : begin + 8])
        model.check_state()
