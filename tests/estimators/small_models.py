"""A small table with three kinds of targets, and models fitted to it."""

from __future__ import annotations

import numpy as np

from graftboost import GraftBoostClassifier, GraftBoostRegressor

N_ROWS = 200
X = np.random.default_rng(0).normal(size=(N_ROWS, 3)).round(2)
TARGETS = {
    "regression": 10 * X[:, 0],
    "two classes": (X[:, 0] + X[:, 1] > 0).astype(int),
    "three classes": np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7]),
}


def fitted(target="two classes", **parameters):
    settings = {"n_estimators": 5, "min_samples_leaf": 4, "n_jobs": 1, **parameters}
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    return Estimator(**settings).fit(X, TARGETS[target])
