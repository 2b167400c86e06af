"""Refresh: leaf values are recomputed, the tree structure is unchanged."""

from __future__ import annotations

import pickle

import numpy as np

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .small_models import TARGETS, X


def test_refresh_of_a_fit_changes_nothing():
    for target, Estimator in (
        ("two classes", GraftBoostClassifier),
        ("regression", GraftBoostRegressor),
    ):
        model = Estimator(n_estimators=5, subsample=0.7).fit(X, TARGETS[target])
        expected, importances = model._raw_scores(X), model.feature_importances_
        model.refresh().check_state()
        assert np.array_equal(model._raw_scores(X), expected)
        assert np.allclose(model.feature_importances_, importances)


def test_refresh_keeps_the_structure_and_allows_updates():
    model = GraftBoostClassifier(n_estimators=10, fidelity=0.0).fit(X, TARGETS["two classes"])
    assert model.remove(slice(0, 4)).strategy == "in-place"
    leaves = model.apply(X)
    before = model._raw_scores(X)
    model.refresh().check_state()
    assert np.array_equal(model.apply(X), leaves)
    assert not np.array_equal(model._raw_scores(X), before)
    once = model._raw_scores(X)
    assert np.array_equal(model.refresh()._raw_scores(X), once)
    copied = pickle.loads(pickle.dumps(model))
    for each in (model, copied):
        each.remove([25, 30])
        each.check_state()
    assert np.array_equal(copied._raw_scores(X), model._raw_scores(X))
