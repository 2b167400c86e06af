"""What a model stores of its rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graftboost.persistence import file_format, model_file
from graftboost.reference import Loss

from .making import (
    CLASSES,
    DATA_OPTIONS,
    LOSSES,
    counted,
    fit_engine_model,
    make_data,
    trees,
    update_engine_model,
)


@settings(max_examples=60, deadline=None)
@given(
    options=DATA_OPTIONS,
    subsample=st.sampled_from([1.0, 0.6]),
    n_rows=st.integers(2, 600),
)
def test_sums_equal_those_of_the_rows(
    options: dict[str, Any], subsample: float, n_rows: int
) -> None:
    data = make_data(**options, n_rows=n_rows)
    if data.weight is not None:
        data.weight[0] = 1.0
    fit_engine_model(data, subsample=subsample, n_estimators=2).check_state(n_threads=1)


@pytest.mark.parametrize("loss", LOSSES)
def test_nodes_are_the_sums_of_recorded_gradients(loss: str) -> None:
    data = make_data(0, loss)
    engine_model = fit_engine_model(data)
    rule = Loss(loss, CLASSES[loss])
    for t in range(engine_model.n_trees):
        tree, leaf_ids = engine_model.tree(t), engine_model.leaf_ids(t)
        sums = [rule.row_sums(int(g), 1) for g in engine_model.recorded(t)]
        for node, leaf in enumerate(tree["leaf"]):
            if leaf < 0:
                continue
            rows = np.flatnonzero(leaf_ids == leaf)
            assert tree["g"][node] == sum(sums[r].g for r in rows)
            assert tree["h"][node] == sum(sums[r].h for r in rows)
            assert tree["n"][node] == len(rows)
            assert len(rows) >= 5


def test_leaf_ids_equal_those_of_apply() -> None:
    data = make_data(0, "softmax", missing=True, categories=True)
    engine_model = fit_engine_model(data, subsample=0.7)
    applied = engine_model.apply(data.X, n_threads=1)
    for t in range(engine_model.n_trees):
        assert (applied[:, t] == engine_model.leaf_ids(t)).all()


@pytest.mark.parametrize("max_leaf_nodes", [2, 64, 65, 256, 257, 500])
def test_many_leaves(max_leaf_nodes: int) -> None:
    data = make_data(0, n_rows=3_000)
    engine_model = fit_engine_model(
        data, max_leaf_nodes=max_leaf_nodes, min_samples_leaf=1, n_estimators=2, n_threads=2
    )
    assert len(engine_model.tree(0)["leaf"]) == 2 * max_leaf_nodes - 1
    engine_model.check_state(n_threads=1)
    applied = engine_model.apply(data.X, n_threads=1)
    assert (applied[:, 1] == engine_model.leaf_ids(1)).all()
    scores = engine_model.raw_scores(data.X, n_threads=2)[:, 0]
    expected = np.full(3_000, engine_model.base_scores[0])
    for t in range(2):
        tree = engine_model.tree(t)
        values = np.empty(max_leaf_nodes)
        values[tree["leaf"][tree["leaf"] >= 0]] = tree["value"][tree["leaf"] >= 0]
        expected += values[applied[:, t]]
    assert (scores == expected).all()


def test_trees_are_the_same_if_not_updatable() -> None:
    data = make_data(0, "softmax", missing=True)
    kept, dropped = fit_engine_model(data), fit_engine_model(data, updatable=False)
    assert not dropped.updatable
    assert dropped.n_rows == 0
    for with_state, without in zip(trees(kept), trees(dropped), strict=True):
        assert with_state["value"] == without["value"]
        assert with_state["left"] == without["left"]
    with pytest.raises(IndexError, match="not updatable"):
        dropped.recorded(0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_pickle(loss: str, weighted: bool) -> None:
    data = make_data(0, loss, weighted=weighted, missing=True, categories=True)
    engine_model = fit_engine_model(data)
    again = pickle.loads(pickle.dumps(engine_model))
    assert trees(again) == trees(engine_model)
    assert (again.row_ids == data.ids).all()
    assert (again.raw_scores(data.X, 1) == engine_model.raw_scores(data.X, 1)).all()
    again.check_state(n_threads=1)


def test_pickle_of_too_few_bytes() -> None:
    data = model_file.pack_engine_model(fit_engine_model(make_data(0)))
    for size in (0, 7, 31, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(file_format.InvalidFileError, match="the pickled model is"):
            model_file.unpack_engine_model(data[:size])


def test_leaf_values_add_up_exactly() -> None:
    engine_model = fit_engine_model(make_data(4, "squared"), n_estimators=20)
    for t in range(engine_model.n_trees):
        scaled = engine_model.tree(t)["value"] * 2.0**32
        assert (scaled == np.rint(scaled)).all()


def test_early_stopping_keeps_the_best_iteration() -> None:
    data = make_data(0, n_rows=300)
    other = make_data(0, n_rows=400).take(np.arange(300, 400))
    engine_model = fit_engine_model(
        data,
        n_estimators=200,
        X_val=other.X,
        y_val=1 - other.y,
        n_iter_no_change=3,
    )
    losses = engine_model.validation_losses
    assert len(losses) < 200
    assert engine_model.n_iterations == max(1, int(np.argmin(losses)) + 1)
    engine_model.check_state(n_threads=1)


def test_on_iteration_may_stop_or_raise() -> None:
    data = make_data(0)
    engine_model = fit_engine_model(
        data, n_estimators=50, on_iteration=lambda done, loss: done == 7
    )
    assert engine_model.n_iterations == 7

    def fail(done: int, loss: float) -> bool:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        fit_engine_model(data, on_iteration=fail)


@pytest.mark.parametrize("n_changed", [3, 15, 40])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("least", "min_hessian", "l2"), [(1, 0.0, 0.0), (1, 0.1, 0.0), (20, 0.1, 0.1)]
)
def test_gain_bounds_do_not_affect_updates(
    loss: str, n_changed: int, least: int, min_hessian: float, l2: float
) -> None:
    """A copy made through bytes has no bounds, but its updates are the same.

    With leaves of one row and no regularization, gains are rounding errors.
    """
    data = make_data(0, loss, n_rows=3_000, missing=True, categories=True)
    engine_model = fit_engine_model(
        data.take(np.arange(2_500)),
        n_estimators=8,
        max_leaf_nodes=16,
        min_samples_leaf=least,
        min_hessian=min_hessian,
        l2_regularization=l2,
    )
    rng, first = np.random.default_rng(0), 2_500
    for _ in range(10):
        copied = pickle.loads(pickle.dumps(engine_model))
        out = rng.choice(engine_model.row_ids, rng.integers(1, n_changed), replace=False)
        last = first + int(rng.integers(0, n_changed))
        into = data.take(np.arange(first, last))
        tolerance = rng.choice([0.3, 1.2, 1e9])
        ours = update_engine_model(engine_model, into, out, tolerance=tolerance)
        theirs = update_engine_model(copied, into, out, tolerance=tolerance)
        assert counted(ours) == counted(theirs)
        assert trees(engine_model) == trees(copied)
        first = last
