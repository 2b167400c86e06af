"""Rows of mostly zeros, as arrays and as sparse tables, and parameters for training on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from graftboost.input.sparse import for_engine

from .making import CLASSES, Data

TRAINING: dict[str, Any] = {
    "n_estimators": 2,
    "learning_rate": 0.3,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 5,
    "l2_regularization": 0.1,
}


def make_cells(
    rng: np.random.Generator, n_rows: int, n_columns: int, missing: bool, busy: float = 0.3
) -> np.ndarray:
    """Columns other than zero in no, few, many or all rows; some of them change halfway."""
    X = np.zeros((n_rows, n_columns))
    half = n_rows // 2
    few = [0.0, 1 / n_rows, 3 / n_rows, 0.05, 0.1]
    for f in range(n_columns):
        shares = few if rng.random() > busy else [0.12, 0.13, 0.3, 0.7, 1.0]
        share = np.full(n_rows, rng.choice(shares))
        if rng.random() < 0.4:
            share[half:] = rng.choice([0.0, 0.1, 0.3, 0.6])
        match rng.integers(5):
            case 0:
                values = np.ones(n_rows)
            case 1:
                values = rng.integers(1, 4, n_rows).astype(float)
            case 2:
                values = rng.normal(size=n_rows).round(1)
            case 3:
                values = rng.normal(size=n_rows)
            case _:
                values = rng.choice([-1.0, 1.0], n_rows)
        X[:, f] = np.where(rng.random(n_rows) < share, values, 0.0)
        if missing and rng.random() < 0.3:
            X[rng.random(n_rows) < rng.choice([0.02, 0.2]), f] = np.nan
    return X


def make_target(rng: np.random.Generator, X: np.ndarray, loss: str) -> np.ndarray:
    """A target that depends on several columns, rare or not."""
    chosen = rng.choice(X.shape[1], min(5, X.shape[1]), replace=False)
    signal = np.nan_to_num(X[:, chosen]) @ rng.choice([-2.0, 1.0, 3.0], len(chosen))
    signal = signal + rng.normal(scale=0.4, size=len(X))
    if loss == "squared":
        return 30 * signal + 7
    n_classes = CLASSES[loss]
    cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return np.searchsorted(cuts, signal).astype(np.float64)


def make_data(
    seed: int,
    loss: str,
    *,
    n_rows: int,
    n_columns: int,
    weighted: bool = False,
    missing: bool = False,
    categories: bool = False,
    dtype: Any = np.float64,
    busy: float = 0.3,
) -> Data:
    """Rows for the engine, as an array."""
    rng = np.random.default_rng(seed)
    X = make_cells(rng, n_rows, n_columns, missing, busy)
    n_categories = [0] * n_columns
    if categories:
        for f in range(0, n_columns, 3):
            n_categories[f] = int(rng.integers(2, 5))
            others = rng.integers(1, n_categories[f] + 1, n_rows)  # the last is unseen
            X[:, f] = np.where(rng.random(n_rows) < rng.choice([0.02, 0.3, 0.9]), others, 0)
    weight = None
    if weighted:
        weight = rng.exponential(size=n_rows)
        weight[rng.random(n_rows) < 0.15] = 0.0
        weight[0] = weight.max() + 1
    ids = rng.choice(10 * n_rows, n_rows, replace=False).astype(np.int64)
    X = X.astype(dtype)
    return Data(X, make_target(rng, X, loss), weight, ids, tuple(n_categories), loss)


def sparse(data: Data) -> Data:
    """The same rows as a sparse table."""
    return replace(data, X=for_engine(scipy.sparse.csr_array(data.X)))
