"""The engine and the plain Python reference give the same model, bit for bit."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from graftboost._engine import EngineModel
from hypothesis import given, settings
from hypothesis import strategies as st

from graftboost import reference

from .comparing import (
    assert_same_splits,
    assert_same_trees,
    find_features,
    fit_reference,
    update_reference,
)
from .making import (
    DATA_OPTIONS,
    LOSSES,
    RULES,
    Data,
    by_fidelity,
    estimated,
    fit_bins,
    fit_engine_model,
    make_data,
    update_engine_model,
)

TRAINING: dict[str, Any] = {
    "n_estimators": 4,
    "learning_rate": 0.3,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 5,
    "l2_regularization": 0.1,
}


def fit_both(data: Data, **training: Any) -> tuple[EngineModel, reference.Model]:
    features = find_features(data)
    bins = fit_bins(data)
    for f, feature in enumerate(features):
        assert bins.edges(f).tolist() == list(feature.edges)
    wanted = {**TRAINING, **training}
    return fit_engine_model(data, bins, **wanted), fit_reference(data, features, wanted)


def assert_same(engine_model: EngineModel, model: reference.Model, X: np.ndarray) -> None:
    assert_same_trees(engine_model, model)
    scores = engine_model.raw_scores(X, n_threads=1)
    assert scores.tolist() == [model.scores(row) for row in X.tolist()]


def assert_same_model(data: Data, **training: Any) -> None:
    assert_same(*fit_both(data, **training), data.X)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("categories", [False, True])
def test_every_kind_of_data(loss: str, weighted: bool, missing: bool, categories: bool) -> None:
    data = make_data(1, loss, weighted=weighted, missing=missing, categories=categories)
    assert_same_model(data)


@settings(max_examples=40, deadline=None)
@given(
    options=DATA_OPTIONS,
    dtype=st.sampled_from([np.float32, np.float64]),
    n_rows=st.integers(3, 150),
    max_leaf_nodes=st.integers(2, 12),
    min_samples_leaf=st.integers(1, 10),
    min_hessian=st.sampled_from([0.0, 1e-3, 0.1, 2.0]),
    l2_regularization=st.sampled_from([0.0, 0.1, 3.0]),
    subsample=st.sampled_from([1.0, 0.7]),
    training_seed=st.integers(0, 2**63),
)
def test_any_settings(
    options: dict[str, Any],
    dtype: Any,
    n_rows: int,
    max_leaf_nodes: int,
    min_samples_leaf: int,
    min_hessian: float,
    l2_regularization: float,
    subsample: float,
    training_seed: int,
) -> None:
    data = make_data(**options, n_rows=n_rows, dtype=dtype)
    if data.weight is not None and not data.weight.any():
        data.weight[0] = 1.0
    assert_same_model(
        data,
        n_estimators=2,
        max_leaf_nodes=max_leaf_nodes,
        min_samples_leaf=min_samples_leaf,
        min_hessian=min_hessian,
        l2_regularization=l2_regularization,
        subsample=subsample,
        seed=training_seed,
    )


@settings(max_examples=60, deadline=None)
@given(
    options=DATA_OPTIONS,
    max_leaf_nodes=st.integers(2, 10),
    min_samples_leaf=st.integers(1, 8),
    min_hessian=st.sampled_from([0.0, 1e-3, 0.1, 2.0]),
    subsample=st.sampled_from([1.0, 0.7]),
    steps=st.lists(
        st.tuples(
            st.integers(0, 10),
            st.integers(0, 10),
            RULES,
            st.booleans(),
            st.sampled_from([None, None, 0.02, 0.3, np.inf]),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_updates(
    options: dict[str, Any],
    max_leaf_nodes: int,
    min_samples_leaf: int,
    min_hessian: float,
    subsample: float,
    steps: list[tuple[int, int, reference.UpdateRule, bool, float | None]],
) -> None:
    """Any sequence of updates, under all rules, with refreshes and deferred regrowing."""
    everything = make_data(**options, n_rows=110)
    if everything.weight is not None:
        everything.weight[0] = everything.weight.max() + 1
    held = everything.take(np.arange(80))
    training = {
        **TRAINING,
        "n_estimators": 2,
        "max_leaf_nodes": max_leaf_nodes,
        "min_samples_leaf": min_samples_leaf,
        "min_hessian": min_hessian,
        "subsample": subsample,
    }
    engine_model, model = fit_both(held, **training)
    rng = np.random.default_rng(options["seed"])
    places = {i: place for place, i in enumerate(everything.ids.tolist())}
    for n_out, n_in, rule, refreshes, work in steps:
        out = rng.choice(sorted(model.rows), n_out, replace=False).astype(np.int64)
        free = np.array(sorted(set(everything.ids.tolist()) - set(model.rows)), dtype=np.int64)
        into = everything.take(
            np.array(
                [places[i] for i in rng.choice(free, min(n_in, len(free)), replace=False)], int
            )
        )
        counts = update_engine_model(engine_model, into, out, *astuple(rule))
        if counts.refitted:  # the reference does not estimate costs
            now = np.array([places[i] for i in engine_model.row_ids.tolist()])
            model = fit_reference(everything.take(now), find_features(held), training)
        else:
            updated = update_reference(model, into, out, rule)
            assert updated.nodes_regrown == counts.nodes_regrown
            assert estimated(counts) == (astuple(updated.fidelity) if updated.fidelity else ())
        if refreshes:
            engine_model.refresh(n_threads=2)
            reference.refresh(model)
        assert engine_model.rows_deferred == model.deferred.n
        if work is not None:
            counts = engine_model.regrow(work, 0.85, 0.001, 1)
            if counts.refitted:
                now = np.array([places[i] for i in engine_model.row_ids.tolist()])
                model = fit_reference(everything.take(now), find_features(held), training)
            else:
                updated = reference.regrow_deferred(model, by_fidelity(0.85, 0.001), work)
                assert updated.nodes_regrown == counts.nodes_regrown
                assert estimated(counts) == (astuple(updated.fidelity) if updated.fidelity else ())
                assert engine_model.rows_deferred == model.deferred.n
        engine_model.check_state(n_threads=1)
        scores = engine_model.raw_scores(everything.X, n_threads=1)
        assert scores.tolist() == [model.scores(x) for x in everything.X.tolist()]
    assert_same(engine_model, model, everything.X)
    engine_model.check_state(n_threads=1)


@settings(max_examples=30, deadline=None)
@given(
    options=DATA_OPTIONS,
    subsample=st.sampled_from([1.0, 0.5]),
    keeping=st.sampled_from([by_fidelity(0.0, 0.0), reference.UpdateRule("regret", np.inf)]),
    last=RULES,
    refreshes=st.lists(st.booleans(), min_size=2, max_size=4),
)
def test_window_with_kept_structure(
    options: dict[str, Any],
    subsample: float,
    keeping: reference.UpdateRule,
    last: reference.UpdateRule,
    refreshes: list[bool],
) -> None:
    """Steps of a window that keep the structure, with refreshes in between; then any update.

    The engine counts no histograms until the last update; the reference always has all gains.
    """
    everything = make_data(**options, n_rows=130)
    if everything.weight is not None:
        everything.weight[0] = everything.weight.max() + 1
    held = everything.take(np.arange(90))
    training = {**TRAINING, "n_estimators": 2, "subsample": subsample}
    engine_model, model = fit_both(held, **training)
    begin, end = 1, 90
    for n, refresh in zip([1, *[8] * (len(refreshes) - 1), 2], [*refreshes, False], strict=True):
        rule = last if n == 2 else keeping
        into = everything.take(np.arange(end, end + n))
        out = everything.ids[begin : begin + n]
        begin, end = begin + n, end + n
        counts = update_engine_model(engine_model, into, out, *astuple(rule))
        if counts.refitted:
            return  # the reference does not estimate costs
        update_reference(model, into, out, rule)
        if refresh:
            engine_model.refresh(n_threads=2)
            reference.refresh(model)
        engine_model.check_state(n_threads=1)
    assert_same(engine_model, model, everything.X)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    weighted=st.booleans(),
    categories=st.booleans(),
    subsample=st.sampled_from([1.0, 0.7]),
)
def test_split_ranks(
    seed: int, loss: str, weighted: bool, categories: bool, subsample: float
) -> None:
    """After rows were removed without regrowing nodes: all candidates, computed one by one."""
    data = make_data(seed, loss, weighted=weighted, missing=True, categories=categories)
    engine_model, model = fit_both(data, n_estimators=2, subsample=subsample)
    gone = data.ids[: len(data.ids) // 6]
    nothing = data.take(np.arange(0))
    update_engine_model(engine_model, nothing, gone, "regret", np.inf)
    update_reference(model, nothing, gone, reference.UpdateRule("regret", np.inf))
    assert_same_splits(engine_model, model)


@settings(max_examples=200, deadline=None)
@given(
    column=st.lists(
        st.one_of(
            st.floats(allow_nan=True, allow_infinity=False),
            st.floats(allow_nan=False, allow_infinity=False, width=16),
            st.integers(-5, 5).map(float),
        ),
        min_size=1,
        max_size=120,
    ),
    max_bins=st.integers(2, 40),
    split_sample=st.sampled_from([0.1, 0.5, 1.0]),
    width=st.booleans(),
    seed=st.integers(0, 99),
)
def test_edges(
    column: list[float], max_bins: int, split_sample: float, width: bool, seed: int
) -> None:
    values = np.array(column)[:, None]
    data = Data(values, np.zeros(len(column)), None, np.arange(len(column)), (0,), "squared")
    options: dict[str, Any] = {
        "max_bins": max_bins,
        "split_sample": split_sample,
        "width": width,
        "seed": seed,
    }
    feature = reference.fit_feature(column, 0, **options)
    bins = fit_bins(data, **options)
    assert bins.edges(0).tolist() == list(feature.edges)
    assert bins.encode(values)[:, 0].tolist() == [feature.code(v) for v in column]
