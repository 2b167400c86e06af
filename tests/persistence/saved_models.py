"""Small models of every kind that the tests in this folder save and load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.persistence import model_file

N = 300


def table(seed: int = 0, n: int = N) -> pd.DataFrame:
    """Four columns of numbers, one with missing values, and a categorical column."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(4)})
    frame["x3"] = frame["x3"].where(rng.random(n) > 0.2)
    frame["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], n))
    return frame


def _fit_models() -> dict[str, Any]:
    X, rng = table(), np.random.default_rng(1)
    score = X["x0"] + (X["colour"] == "red") + rng.normal(scale=0.3, size=N)
    small = {"n_estimators": 8, "max_leaf_nodes": 6, "min_samples_leaf": 5}
    return {
        "binary": GraftBoostClassifier(**small).fit(X, score > 0),
        "several": GraftBoostClassifier(**small, subsample=0.7).fit(
            X, np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 0.8])]
        ),
        "regression": GraftBoostRegressor(**small).fit(X, score),
        "weighted": GraftBoostRegressor(**small, l2_regularization=0.5).fit(
            X.to_numpy(dtype=object, copy=True)[:, :3].astype(float), score, rng.random(N)
        ),
        "wide": GraftBoostRegressor(
            n_estimators=3, max_leaf_nodes=300, min_samples_leaf=1, split_sample=1.0
        ).fit(X[["x0", "x1"]], score),
    }


MODELS = _fit_models()


def features(model: Any, seed: int = 3, n: int = 40) -> Any:
    """New rows with the columns that the model was fitted to."""
    X = table(seed, n)
    if not hasattr(model, "feature_names_in_"):
        return X.to_numpy(dtype=object)[:, :3].astype(float)
    return X[list(model.feature_names_in_)]


def targets(model: Any, n: int) -> Any:
    """Random targets of the kind that the model was fitted to."""
    rng = np.random.default_rng(9)
    if hasattr(model, "classes_"):
        return rng.choice(model.classes_, n)
    return rng.normal(size=n)


def state(model: Any) -> bytes:
    """Everything that a file stores of the engine's model."""
    return model_file.pack_engine_model(model._engine_model)
