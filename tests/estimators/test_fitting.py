"""Fitted models: what they learn, their attributes, and what their training depends on."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from graftboost import GraftBoostClassifier, GraftBoostRegressor

BOTH = pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])


def test_learns_two_classes(two_classes):
    X, y = two_classes
    model = GraftBoostClassifier().fit(X[:200], y[:200])
    assert model.classes_.tolist() == [0, 1]
    assert model.score(X[200:], y[200:]) > 0.8
    scores = model.decision_function(X)
    assert scores.shape == (300,)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_learns_three_classes(three_classes):
    X, y = three_classes
    model = GraftBoostClassifier(n_estimators=40).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.7
    scores = model.decision_function(X)
    assert scores.shape == (300, 3)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_learns_a_numeric_target(numeric_target):
    X, y = numeric_target
    model = GraftBoostRegressor().fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.8


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        [False, True],
        [-1, 1],
        [0.0, 1.0],
        [10**12, 10**12 + 7],
        np.array(["a", "b"], dtype=object),
    ],
)
def test_labels_keep_their_type(two_classes, labels):
    X, y = two_classes
    labels = np.asarray(labels)
    model = GraftBoostClassifier(n_estimators=5).fit(X, labels[y])
    np.testing.assert_array_equal(model.classes_, labels)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    expected = GraftBoostClassifier(n_estimators=5).fit(X, y).predict(X)
    np.testing.assert_array_equal(predicted, labels[expected])


@BOTH
def test_fitted_attributes(Estimator, two_classes):
    X, y = two_classes
    model = Estimator(n_estimators=7)
    for attribute in ["n_rows_", "row_ids_", "n_iter_", "feature_importances_", "n_features_in_"]:
        assert not hasattr(model, attribute)
    model.fit(X, y)
    assert model.n_rows_ == 300
    assert model.n_iter_ == 7
    assert model.n_features_in_ == 5
    np.testing.assert_array_equal(model.row_ids_, np.arange(300))
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "validation_losses_")
    assert not hasattr(model, "best_iteration_")
    model.check_state()


@BOTH
def test_feature_importances_are_shares_of_the_gain(Estimator, two_classes):
    X, y = two_classes
    model = Estimator(n_estimators=10).fit(X, y)
    assert model.feature_importances_.shape == (5,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
    no_split = Estimator(n_estimators=3, min_samples_leaf=200).fit(X, y)
    np.testing.assert_array_equal(no_split.feature_importances_, np.zeros(5))


@BOTH
def test_feature_names_are_those_of_the_last_fit(Estimator, two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = Estimator(n_estimators=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("bacde")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


@BOTH
def test_row_ids(Estimator, two_classes, rng, assert_same_model):
    X, y = two_classes
    ids = rng.permutation(10_000)[:300] - 5_000
    model = Estimator(n_estimators=5, subsample=0.5).fit(X, y, row_ids=ids)
    np.testing.assert_array_equal(np.sort(model.row_ids_), np.sort(ids))
    assert_same_model(
        Estimator(n_estimators=5).fit(X, y), Estimator(n_estimators=5).fit(X, y, row_ids=range(300))
    )


@BOTH
@pytest.mark.parametrize("parameters", [{}, {"subsample": 0.5}, {"early_stopping": True}])
def test_model_does_not_depend_on_row_order_or_threads(Estimator, two_classes, rng, parameters):
    X, y = two_classes
    ids = np.arange(300)
    order = rng.permutation(300)
    model = Estimator(n_estimators=10, n_jobs=1, **parameters)
    expected = model.fit(X, y).predict(X)
    shuffled = clone(model).set_params(n_jobs=3)
    shuffled.fit(X[order], y[order], row_ids=ids[order])
    np.testing.assert_array_equal(shuffled.predict(X), expected)
    np.testing.assert_array_equal(shuffled.feature_importances_, model.feature_importances_)


@pytest.mark.parametrize(
    "random_state",
    [3, np.int64(3), None, np.random.RandomState(3)],
    ids=["int", "int64", "None", "state"],
)
def test_random_state(two_classes, random_state):
    X, y = two_classes
    model = GraftBoostClassifier(n_estimators=3, subsample=0.5, random_state=random_state)
    model.fit(X, y)
    if isinstance(random_state, int | np.integer):
        again = GraftBoostClassifier(n_estimators=3, subsample=0.5, random_state=3).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


def test_random_state_selects_the_rows_of_a_tree(two_classes):
    X, y = two_classes
    first, second = (
        GraftBoostClassifier(n_estimators=3, subsample=0.5, random_state=seed).fit(X, y)
        for seed in (0, 1)
    )
    assert (first.predict_proba(X) != second.predict_proba(X)).any()


@pytest.mark.parametrize(
    "bin_edges", [{0: [-1.0, 0.0, 1.0]}, {"a": (-1, 0, 1)}, [[-1, 0, 1], None, None, None, None]]
)
def test_given_bin_edges_are_used_unchanged(two_classes, bin_edges):
    X, y = two_classes
    X = pd.DataFrame(X, columns=list("abcde"))
    model = GraftBoostClassifier(n_estimators=2, bin_edges=bin_edges).fit(X, y)
    np.testing.assert_array_equal(model._engine_model.bins.edges(0), [-1, 0, 1])
    assert len(model._engine_model.bins.edges(1)) > 3


def test_rows_of_weight_zero_do_not_affect_the_bins(two_classes):
    X, y = two_classes
    weight = np.ones(300)
    weight[0] = 0
    X[0] = 1e6
    model = GraftBoostClassifier(n_estimators=2).fit(X, y, sample_weight=weight)
    assert model.n_rows_ == 300
    assert max(model._engine_model.bins.edges(feature).max() for feature in range(5)) < 1e3


def test_more_nodes_than_16_bits_can_count():
    """A tree with 42,875 leaves, one for each row."""
    X = np.indices((35, 35, 35)).reshape(3, -1).T.astype(np.float32)
    y = np.random.default_rng(0).normal(size=len(X))
    model = GraftBoostRegressor(
        n_estimators=1,
        learning_rate=1.0,
        max_leaf_nodes=65_536,
        min_samples_leaf=1,
        updatable=False,
    ).fit(X, y)
    assert len(np.unique(model.apply(X))) > 2**15
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.99
