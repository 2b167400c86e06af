"""Predictions after each iteration, and the leaves that rows reach."""

import numpy as np
from sklearn.metrics import log_loss

from graftboost import GraftBoostClassifier, GraftBoostRegressor


def test_last_stage_equals_the_predictions(two_classes, three_classes):
    for X, y in (two_classes, three_classes):
        model = GraftBoostClassifier(n_estimators=6).fit(X, y)
        for method in ("predict", "predict_proba", "decision_function"):
            stages = list(getattr(model, f"staged_{method}")(X))
            assert len(stages) == 6
            np.testing.assert_array_equal(stages[-1], getattr(model, method)(X))
        losses = [log_loss(y, stage) for stage in model.staged_predict_proba(X)]
        assert losses == sorted(losses, reverse=True)


def test_a_stage_equals_a_model_with_as_many_iterations(numeric_target):
    X, y = numeric_target
    stages = list(GraftBoostRegressor(n_estimators=5).fit(X, y).staged_predict(X))
    short = GraftBoostRegressor(n_estimators=3).fit(X, y)
    np.testing.assert_array_equal(stages[2], short.predict(X))


def test_callers_may_modify_a_stage(numeric_target):
    X, y = numeric_target
    model = GraftBoostRegressor(n_estimators=4).fit(X, y)
    for stage in model.staged_predict(X):
        last = stage.copy()
        stage[:] = 0
    np.testing.assert_array_equal(last, model.predict(X))


def test_apply(two_classes, three_classes, numeric_target):
    for model, (X, y), n_trees in [
        (GraftBoostClassifier(n_estimators=4, max_leaf_nodes=5), two_classes, 4),
        (GraftBoostClassifier(n_estimators=4, max_leaf_nodes=5), three_classes, 12),
        (GraftBoostRegressor(n_estimators=4, max_leaf_nodes=5), numeric_target, 4),
    ]:
        leaves = model.fit(X, y).apply(X)
        assert leaves.shape == (300, n_trees)
        assert leaves.dtype == np.int32
        assert all(2 <= len(np.unique(leaves[:, tree])) <= 5 for tree in range(n_trees))
