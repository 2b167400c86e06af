"""The engine and the plain Python reference give the same model, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graftboost._engine import Forest
from hypothesis import given, settings
from hypothesis import strategies as st

from graftboost import reference
from graftboost.reference.trees import candidates

from .making import CLASSES, Data, fit_bins, fit_forest, make_data, update_forest


def reference_features(data: Data, **binning: Any) -> list[reference.Feature]:
    return [
        reference.Feature(n_categories=n)
        if n
        else reference.fit_feature(data.X[:, f].tolist(), f, **binning)
        for f, n in enumerate(data.n_categories)
    ]


def fit_both(data: Data, **training: Any) -> tuple[Forest, reference.Model]:
    binning = {"max_bins": 64, "split_sample": 0.5, "seed": 0}
    features = reference_features(data, **binning)
    bins = fit_bins(data)
    for f, feature in enumerate(features):
        assert bins.edges(f).tolist() == list(feature.edges)
    wanted: dict[str, Any] = {
        "n_estimators": 4,
        "learning_rate": 0.3,
        "max_leaf_nodes": 8,
        "min_samples_leaf": 5,
        "l2_regularization": 0.1,
        **training,
    }
    forest = fit_forest(data, bins, **wanted)
    model = reference.fit(
        data.X.tolist(),
        data.y.tolist(),
        None if data.weight is None else data.weight.tolist(),
        loss=data.loss,
        features=features,
        row_ids=data.ids.tolist(),
        n_classes=CLASSES[data.loss],
        **wanted,
    )
    return forest, model


def assert_same(forest: Forest, model: reference.Model, X: np.ndarray) -> None:
    assert forest.base_scores.tolist() == model.base
    assert forest.n_trees == len(model.trees)
    for t, tree in enumerate(model.trees):
        expected: dict[str, list[Any]] = {
            "left": [node.left for node in tree.nodes],
            "right": [node.right for node in tree.nodes],
            "parent": [node.parent for node in tree.nodes],
            "leaf": [node.leaf for node in tree.nodes],
            "feature": [node.test.feature for node in tree.nodes],
            "low": [node.test.low for node in tree.nodes],
            "span": [node.test.span for node in tree.nodes],
            "gain": [node.gain for node in tree.nodes],
            "value": [node.value for node in tree.nodes],
            "g": [node.sums.g for node in tree.nodes],
            "h": [node.sums.h for node in tree.nodes],
            "n": [node.sums.n for node in tree.nodes],
        }
        found = {name: values.tolist() for name, values in forest.tree(t).items()}
        assert found == expected
        gradients = dict(zip(forest.row_ids.tolist(), forest.recorded(t).tolist(), strict=True))
        assert {i: gradients[i] for i in model.gradients[t]} == model.gradients[t]
    scores = forest.raw_scores(X, n_threads=1)
    assert scores.tolist() == [model.scores(row) for row in X.tolist()]


def assert_same_model(data: Data, **training: Any) -> None:
    assert_same(*fit_both(data, **training), data.X)


@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("categories", [False, True])
def test_every_kind_of_data(loss: str, weighted: bool, missing: bool, categories: bool) -> None:
    data = make_data(1, loss, weighted=weighted, missing=missing, categories=categories)
    assert_same_model(data)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(["logistic", "softmax", "squared"]),
    weighted=st.booleans(),
    missing=st.booleans(),
    categories=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    n_rows=st.integers(3, 150),
    max_leaf_nodes=st.integers(2, 12),
    min_samples_leaf=st.integers(1, 10),
    l2_regularization=st.sampled_from([0.0, 0.1, 3.0]),
    subsample=st.sampled_from([1.0, 0.7]),
    training_seed=st.integers(0, 2**63),
)
def test_any_settings(
    seed: int,
    loss: str,
    weighted: bool,
    missing: bool,
    categories: bool,
    dtype: Any,
    n_rows: int,
    max_leaf_nodes: int,
    min_samples_leaf: int,
    l2_regularization: float,
    subsample: float,
    training_seed: int,
) -> None:
    data = make_data(
        seed,
        loss,
        n_rows=n_rows,
        weighted=weighted,
        missing=missing,
        categories=categories,
        dtype=dtype,
    )
    if data.weight is not None and not data.weight.any():
        data.weight[0] = 1.0
    assert_same_model(
        data,
        n_estimators=2,
        max_leaf_nodes=max_leaf_nodes,
        min_samples_leaf=min_samples_leaf,
        l2_regularization=l2_regularization,
        subsample=subsample,
        seed=training_seed,
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(["logistic", "softmax", "squared"]),
    weighted=st.booleans(),
    missing=st.booleans(),
    categories=st.booleans(),
    max_leaf_nodes=st.integers(2, 10),
    min_samples_leaf=st.integers(1, 8),
    subsample=st.sampled_from([1.0, 0.7]),
    steps=st.lists(
        st.tuples(
            st.integers(0, 10),
            st.integers(0, 10),
            st.tuples(
                st.sampled_from(["regret", "rank"]), st.sampled_from([0.0, 0.1, 1.0, 30.0, np.inf])
            ),
            st.booleans(),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_updates(
    seed: int,
    loss: str,
    weighted: bool,
    missing: bool,
    categories: bool,
    max_leaf_nodes: int,
    min_samples_leaf: int,
    subsample: float,
    steps: list[tuple[int, int, tuple[str, float], bool]],
) -> None:
    """Any sequence of updates, under both rules, with a refresh here and there."""
    everything = make_data(
        seed, loss, n_rows=110, weighted=weighted, missing=missing, categories=categories
    )
    if everything.weight is not None:
        everything.weight[0] = everything.weight.max() + 1
    held = everything.take(np.arange(80))
    forest, model = fit_both(
        held,
        n_estimators=2,
        max_leaf_nodes=max_leaf_nodes,
        min_samples_leaf=min_samples_leaf,
        subsample=subsample,
    )
    rng = np.random.default_rng(seed)
    places = {i: place for place, i in enumerate(everything.ids.tolist())}
    for n_out, n_in, (rule, tolerance), refreshes in steps:
        out = rng.choice(sorted(model.rows), n_out, replace=False).astype(np.int64)
        free = np.array(sorted(set(everything.ids.tolist()) - set(model.rows)), dtype=np.int64)
        into = everything.take(
            np.array(
                [places[i] for i in rng.choice(free, min(n_in, len(free)), replace=False)], int
            )
        )
        how = (rule, tolerance, max(1, int(np.ceil(min(32 * tolerance, 1e9)))))
        counts = update_forest(forest, into, out, *how)
        if counts.refitted:  # the reference has no opinion on what is cheaper
            return
        weights = [None] * len(into.ids) if into.weight is None else into.weight.tolist()
        rows = zip(into.ids.tolist(), into.X.tolist(), into.y.tolist(), weights, strict=True)
        added = {i: (x, y, w) for i, x, y, w in rows}
        retrained = reference.update(model, added, out.tolist(), reference.ToleranceRule(*how))
        assert retrained == counts.nodes_retrained
        if refreshes:
            forest.refresh(n_threads=2)
            reference.refresh(model)
        forest.check_state(n_threads=1)
        scores = forest.raw_scores(everything.X, n_threads=1)
        assert scores.tolist() == [model.scores(x) for x in everything.X.tolist()]
    assert_same(forest, model, everything.X)
    forest.check_state(n_threads=1)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(list(CLASSES)),
    weighted=st.booleans(),
    categories=st.booleans(),
    subsample=st.sampled_from([1.0, 0.7]),
)
def test_split_places(
    seed: int, loss: str, weighted: bool, categories: bool, subsample: float
) -> None:
    """After rows have gone and nothing was retrained: every candidate, counted one by one."""
    data = make_data(seed, loss, weighted=weighted, missing=True, categories=categories)
    forest, model = fit_both(data, n_estimators=2, subsample=subsample)
    gone = data.ids[: len(data.ids) // 6]
    update_forest(forest, data.take(np.arange(0)), gone, "regret", np.inf)
    reference.update(model, {}, gone.tolist(), reference.ToleranceRule("regret", np.inf))
    codes = {row_id: row.codes for row_id, row in model.rows.items()}
    for t, tree in enumerate(model.trees):
        found, recorded = forest.splits(t), model.recorded(t)
        assert found["node"].tolist() == [i for i, node in enumerate(tree.nodes) if node.left >= 0]
        for s, i in enumerate(found["node"]):
            node = tree.nodes[i]
            left = tree.nodes[node.left].sums
            present = model.settings.gain(node.sums, model.settings.score(node.sums, left))
            worth = [
                (test, model.settings.gain(node.sums, score))
                for score, test in candidates(model.settings, node.rows, codes, recorded)
            ]
            own = [gain for test, gain in worth if test.feature == node.test.feature]
            assert found["gain"][s] == present
            assert found["n_better"][s] == sum(gain > present for _, gain in worth)
            others = (gain for test, gain in worth if test.feature != node.test.feature)
            assert found["other_gain"][s] == max(others, default=-np.inf)
            assert found["next_gain"][s] == max((g for g in own if g != present), default=-np.inf)
            assert (found["left_rows"][s], found["right_rows"][s]) == (
                left.n,
                tree.nodes[node.right].sums.n,
            )


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
