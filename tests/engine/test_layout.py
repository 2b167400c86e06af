"""Models do not depend on how codes are stored: bundles, sparse cells, two-byte codes."""

from __future__ import annotations

import numpy as np
import pytest

from graftboost import reference

from .making import CLASSES, Data, fit_bins, fit_engine_model, make_data, update_engine_model


def one_hot_data(n_rows: int = 1_000, n_columns: int = 40, *, also_hot: float = 0.0) -> Data:
    """One real column and many exclusive ones; a share of the rows has a second one set."""
    rng = np.random.default_rng(0)
    hot = rng.integers(0, n_columns, n_rows)
    one_hot = (hot[:, None] == np.arange(n_columns)).astype(np.float32)
    second = rng.random(n_rows) < also_hot
    one_hot[second, rng.integers(0, n_columns, n_rows)[second]] = 1
    real = rng.normal(size=n_rows).astype(np.float32)
    y = ((hot % 3 == 0) ^ (real > 0.5)).astype(np.float64)
    X = np.hstack([real[:, None], one_hot])
    return Data(X, y, None, np.arange(n_rows), (0,) * X.shape[1], "logistic")


def assert_same_as_reference(data: Data) -> None:
    bins = fit_bins(data)
    engine_model = fit_engine_model(data, bins, n_estimators=2)
    model = reference.fit(
        data.X.tolist(),
        data.y.tolist(),
        loss=data.loss,
        features=[
            reference.Feature(tuple(bins.edges(f).tolist()), n)
            for f, n in enumerate(data.n_categories)
        ],
        row_ids=data.ids.tolist(),
        n_classes=CLASSES[data.loss],
        n_estimators=2,
        learning_rate=0.3,
        max_leaf_nodes=8,
        min_samples_leaf=5,
        l2_regularization=0.1,
    )
    for t, tree in enumerate(model.trees):
        assert engine_model.tree(t)["g"].tolist() == [node.sums.g for node in tree.nodes]
        assert engine_model.tree(t)["gain"].tolist() == [node.gain for node in tree.nodes]
        assert engine_model.tree(t)["feature"].tolist() == [
            node.split.feature for node in tree.nodes
        ]
    engine_model.check_state(n_threads=1)
    applied = engine_model.apply(data.X, n_threads=1)
    for t in range(engine_model.n_trees):
        assert (applied[:, t] == engine_model.leaf_ids(t)).all()


def test_exclusive_columns() -> None:
    assert_same_as_reference(one_hot_data())


def test_columns_that_are_rarely_set_together() -> None:
    # So rarely that the sample from which bundles are formed may not show it.
    data = one_hot_data(40_000)
    data.X[data.ids % 1_999 == 0, 5:9] = 1
    engine_model = fit_engine_model(data, n_threads=2)
    engine_model.check_state(n_threads=2)
    applied = engine_model.apply(data.X, n_threads=1)
    for t in range(engine_model.n_trees):
        assert (applied[:, t] == engine_model.leaf_ids(t)).all()


@pytest.mark.parametrize("also_hot", [0.05, 0.5])
def test_sparse_columns_that_overlap(also_hot: float) -> None:
    assert_same_as_reference(one_hot_data(also_hot=also_hot))


def test_one_hot_is_the_same_model_as_categories() -> None:
    data = one_hot_data()
    hot = data.X[:, 1:].argmax(axis=1)
    categories = Data(
        np.column_stack([data.X[:, 0], hot]).astype(np.float32),
        data.y,
        None,
        data.ids,
        (0, 40),
        "logistic",
    )
    assert np.array_equal(
        fit_engine_model(data).raw_scores(data.X, 1),
        fit_engine_model(categories).raw_scores(categories.X, 1),
    )


def test_two_byte_codes_beside_one_byte_codes() -> None:
    data = make_data(0, n_rows=2_000, missing=True)
    many = np.random.default_rng(0).integers(0, 700, 2_000).astype(np.float32)
    X = np.column_stack([data.X[:, :3], many, data.X[:, 3]]).astype(np.float32)
    mixed = Data(X, data.y, None, data.ids, (0, 0, 0, 700, 0), "logistic")
    assert_same_as_reference(mixed)
    assert_same_as_reference(Data(X, data.y, None, data.ids, (0, 0, 0, 0, 0), "logistic"))
    engine_model = fit_engine_model(Data(many[:, None], data.y, None, data.ids, (700,), "logistic"))
    engine_model.check_state(n_threads=1)


@pytest.mark.parametrize("n_columns", [250, 260, 600])
def test_more_exclusive_columns_than_a_byte_has_values(n_columns: int) -> None:
    data = one_hot_data(4_000, n_columns)
    data.X[::97, 7] = np.nan
    assert_same_as_reference(data)


@pytest.mark.parametrize("value", [np.nan, -1.0, 0.5])
def test_values_not_seen_in_fit(value: float) -> None:
    """The shared byte has codes only for the values in fit, but added rows may have others."""
    data = one_hot_data(1_200)
    data.X[1_000:, 3:20:4] = value
    bins = fit_bins(data.take(np.arange(1_000)))
    engine_model = fit_engine_model(data.take(np.arange(1_000)), bins)
    update_engine_model(
        engine_model, data.take(np.arange(1_000, 1_200)), np.arange(150), "regret", 1.0
    )
    engine_model.check_state(n_threads=1)
    applied = engine_model.apply(data.X[engine_model.row_ids], n_threads=1)
    for t in range(engine_model.n_trees):
        assert (applied[:, t] == engine_model.leaf_ids(t)).all()
    # Bins are kept, so a fit of the same rows equals a refit.
    engine_model.refit(n_threads=1)
    again = fit_engine_model(data.take(np.sort(engine_model.row_ids)), bins)
    assert np.array_equal(engine_model.raw_scores(data.X, 1), again.raw_scores(data.X, 1))


@pytest.mark.parametrize("also_hot", [0.0, 0.02, 0.5])
def test_updates_of_one_hot_columns(also_hot: float) -> None:
    """Added rows may set columns together that were never set together before."""
    data = one_hot_data(1_000, also_hot=also_hot)
    data.X[950:, 3:6] = 1
    engine_model = fit_engine_model(data.take(np.arange(900)))
    for step, tolerance in enumerate([0.0, 1.0, 1e9, 1.0]):
        into = data.take(np.arange(900 + 25 * step, 925 + 25 * step))
        update_engine_model(
            engine_model, into, np.arange(40 * step, 40 * step + 20), "regret", tolerance
        )
        engine_model.check_state(n_threads=1)
    update_engine_model(engine_model, data.take(np.arange(0)), np.arange(940, 990), "regret", 1.0)
    engine_model.check_state(n_threads=1)
    applied = engine_model.apply(data.X[engine_model.row_ids], n_threads=1)
    for t in range(engine_model.n_trees):
        assert (applied[:, t] == engine_model.leaf_ids(t)).all()
