"""Models of sparse tables equal those of the plain Python reference, bit for bit."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from graftboost import reference
from graftboost.input.sparse import for_engine

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
    by_rank,
    counted,
    estimated,
    fit_bins,
    fit_engine_model,
    update_engine_model,
)
from .sparse_tables import TRAINING, make_data, sparse

STEPS = st.tuples(
    st.sampled_from(["any", "any", "flood", "drain"]),
    st.integers(0, 12),
    st.integers(0, 12),
    RULES,
    st.sampled_from([False, False, True]),
)


def follow_reference(
    everything: Data, n_fitted: int, steps: list[Any], seed: int, **changes: Any
) -> None:
    """Fit and update sparse and dense models, with and without memory, and the reference."""
    training = {**TRAINING, **changes}
    rare_below = training["min_samples_leaf"]
    held = everything.take(np.arange(n_fitted))
    features = find_features(held, rare_below=rare_below)
    bins = fit_bins(sparse(held), rare_below=rare_below)
    for f, feature in enumerate(features):
        assert bins.edges(f).tolist() == list(feature.edges)
    from_dense = fit_bins(held, rare_below=rare_below)
    engine_models = {
        "sparse": fit_engine_model(sparse(held), bins, **training),
        "dense": fit_engine_model(held, from_dense, **training),
        "no memory": fit_engine_model(sparse(held), bins, histogram_memory=0, **training),
        "dense, no memory": fit_engine_model(held, from_dense, histogram_memory=0, **training),
    }
    model = fit_reference(held, features, training)
    rows_now = set(held.ids.tolist())
    assert_same_trees(engine_models["sparse"], model)
    places = {i: place for place, i in enumerate(everything.ids.tolist())}
    rng = np.random.default_rng(seed)
    for kind, n_out, n_in, rule, refreshes in steps:
        inside = np.array(sorted(rows_now), dtype=np.int64)
        outside = np.array(sorted(set(places) - rows_now), dtype=np.int64)
        if kind != "any":
            # Add or remove only rows that are not zero in one column.
            column = everything.X[:, rng.integers(everything.X.shape[1])]
            has = np.array([column[places[i]] != 0 for i in inside], dtype=bool)
            inside = inside[has] if kind == "drain" else inside[:0]
            has = np.array([column[places[i]] != 0 for i in outside], dtype=bool)
            outside = outside[has] if kind == "flood" else outside[:0]
        out = rng.permutation(inside)[: min(n_out, len(rows_now) - 20)]
        into = everything.take(
            np.array([places[i] for i in rng.permutation(outside)[:n_in]], dtype=np.intp)
        )
        if not len(out) and not len(into.ids):
            continue
        found = {}
        for name, engine_model in engine_models.items():
            is_sparse = name in ("sparse", "no memory")
            counts = update_engine_model(
                engine_model, sparse(into) if is_sparse else into, out, *astuple(rule)
            )
            found[name] = counted(counts)
            engine_model.check_state(n_threads=1)
        assert len(set(found.values())) == 1, found
        rows_now = rows_now - set(out.tolist()) | set(into.ids.tolist())
        if counts.refitted:  # the reference does not estimate costs
            order = [places[i] for i in engine_models["sparse"].row_ids.tolist()]
            model = fit_reference(everything.take(np.array(order)), features, training)
        else:
            updated = update_reference(model, into, out, rule)
            assert updated.nodes_regrown == counts.nodes_regrown
            assert estimated(counts) == (astuple(updated.fidelity) if updated.fidelity else ())
        if refreshes:
            for engine_model in engine_models.values():
                engine_model.refresh(n_threads=1)
            reference.refresh(model)
        for engine_model in engine_models.values():
            assert_same_trees(engine_model, model)
            engine_model.check_state(n_threads=1)
    expected = [model.scores(x) for x in everything.X.tolist()]
    assert (
        engine_models["sparse"].raw_scores(sparse(everything).X, n_threads=1).tolist() == expected
    )
    assert engine_models["sparse"].raw_scores(everything.X, n_threads=1).tolist() == expected
    assert engine_models["dense"].raw_scores(sparse(everything).X, n_threads=1).tolist() == expected


@settings(max_examples=25, deadline=None)
@given(
    options=DATA_OPTIONS,
    dtype=st.sampled_from([np.float32, np.float64]),
    n_columns=st.integers(3, 45),
    max_leaf_nodes=st.integers(2, 8),
    min_samples_leaf=st.integers(1, 9),
    subsample=st.sampled_from([1.0, 0.7]),
    steps=st.lists(STEPS, min_size=1, max_size=4),
)
def test_updates_equal_those_of_the_reference(
    options: dict[str, Any],
    dtype: Any,
    n_columns: int,
    max_leaf_nodes: int,
    min_samples_leaf: int,
    subsample: float,
    steps: list[Any],
) -> None:
    data = make_data(**options, n_rows=110, n_columns=n_columns, dtype=dtype)
    follow_reference(
        data,
        75,
        steps,
        options["seed"],
        max_leaf_nodes=max_leaf_nodes,
        min_samples_leaf=min_samples_leaf,
        subsample=subsample,
    )


@pytest.mark.parametrize("n_columns", [257, 300, 520])
@pytest.mark.parametrize("how", ["fidelity", "regret", "rank"])
def test_updates_of_many_columns_equal_those_of_the_reference(n_columns: int, how: str) -> None:
    """More columns than can have individual gain bounds."""
    loss = LOSSES[n_columns % 3]
    data = make_data(n_columns, loss, n_rows=80, n_columns=n_columns, missing=True, busy=0.05)
    low, middle, high = {
        "fidelity": [by_fidelity(target) for target in (0.3, 0.75, 1.0)],
        "regret": [reference.UpdateRule("regret", tolerance) for tolerance in (0.1, 1.2, 30.0)],
        "rank": [by_rank(sigma) for sigma in (0.0, 0.1, 1.0)],
    }[how]
    steps = [
        ("any", 2, 2, low, False),
        ("flood", 0, 8, middle, False),
        ("any", 3, 0, high, False),
        ("drain", 8, 0, middle, False),
    ]
    follow_reference(
        data,
        55,
        steps,
        n_columns,
        max_leaf_nodes=4,
        n_estimators=1 if loss == "softmax" else 2,
    )


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    weighted=st.booleans(),
    missing=st.booleans(),
    rare_below=st.integers(1, 12),
)
def test_split_ranks_equal_those_of_the_reference(
    seed: int, loss: str, weighted: bool, missing: bool, rare_below: int
) -> None:
    data = make_data(
        seed, loss, n_rows=100, n_columns=40, weighted=weighted, missing=missing, busy=0.2
    )
    training = {**TRAINING, "min_samples_leaf": rare_below}
    held = data.take(np.arange(80))
    bins = fit_bins(sparse(held), rare_below=rare_below)
    engine_model = fit_engine_model(sparse(held), bins, **training)
    model = fit_reference(held, find_features(held, rare_below=rare_below), training)
    into, out = data.take(np.arange(80, 90)), held.ids[:8]
    counts = update_engine_model(engine_model, sparse(into), out, "regret", np.inf)
    if counts.refitted:
        return
    update_reference(model, into, out, reference.UpdateRule("regret", np.inf))
    assert_same_splits(engine_model, model)


@settings(max_examples=150, deadline=None)
@given(
    column=st.lists(
        st.one_of(
            st.just(0.0),
            st.just(0.0),
            st.just(-0.0),
            st.sampled_from([1.0, -1.0, 0.5, np.nan, 5e-324, -5e-324]),
            st.floats(allow_nan=True, allow_infinity=False),
        ),
        min_size=1,
        max_size=80,
    ),
    stored=st.booleans(),
    max_bins=st.integers(2, 40),
    split_sample=st.sampled_from([0.1, 0.5, 1.0]),
    width=st.booleans(),
    rare_below=st.integers(0, 20),
)
def test_bins_equal_those_of_the_reference(
    column: list[float],
    stored: bool,
    max_bins: int,
    split_sample: float,
    width: bool,
    rare_below: int,
) -> None:
    values = np.array(column)[:, None]
    table = scipy.sparse.csr_array(values)
    if stored:  # including zeros
        rows, columns = np.indices(values.shape)
        table = scipy.sparse.csr_array((values.ravel(), (rows.ravel(), columns.ravel())))
    options: dict[str, Any] = {
        "max_bins": max_bins,
        "split_sample": split_sample,
        "width": width,
        "seed": 0,
        "rare_below": rare_below,
    }
    feature = reference.fit_feature(column, 0, **options)
    ids = np.arange(len(column))
    for X in (values, for_engine(table)):
        bins = fit_bins(Data(X, ids.astype(float), None, ids, (0,), "squared"), **options)
        assert bins.edges(0).tolist() == list(feature.edges)
        assert bins.cut.tolist() == ([] if feature is reference.bins.RARE else [0])
        for other in (values, for_engine(table)):
            assert bins.encode(other)[:, 0].tolist() == [feature.code(v) for v in column]
