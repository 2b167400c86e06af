"""A table that is mostly zeros, small models of it, and comparisons of models."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse

from graftboost import GraftBoostClassifier, GraftBoostRegressor

N_ROWS, N_COLUMNS = 240, 54  # so many that some are stored sparsely
WIDTH = 2_000_000  # columns of a wide table
SMALL: dict[str, Any] = {
    "n_estimators": 5,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 6,
    "learning_rate": 0.3,
    "n_jobs": 1,
}


def make_cells() -> np.ndarray:
    """Columns of counts, of positive and negative numbers, nearly empty ones, and a full one."""
    rng = np.random.default_rng(0)
    X = np.zeros((N_ROWS, N_COLUMNS))
    for f in range(N_COLUMNS):
        share = [0.3, 0.1, 0.02, 0.0, 1.0, 0.05][f % 6]
        values = rng.integers(1, 5, N_ROWS) if f % 2 else rng.normal(size=N_ROWS).round(2)
        X[:, f] = np.where(rng.random(N_ROWS) < share, values, 0)
    X[rng.random(X.shape) < 0.02] = np.nan
    return X


X = make_cells()
SIGNAL = 2 * np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) - np.nan_to_num(X[:, 4])
TARGETS: dict[str, np.ndarray] = {
    "regression": 20 * SIGNAL + 5,
    "two classes": np.where(SIGNAL > 0, "yes", "no"),
    "three classes": np.digitize(SIGNAL, [-0.5, 0.5]),
}
WEIGHT = np.random.default_rng(1).exponential(size=N_ROWS)
WEIGHT[::17] = 0


def make_model(target: str = "two classes", **parameters: Any) -> Any:
    """A small model that is not fitted."""
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    return Estimator(**{**SMALL, **parameters})


def assert_same(model: Any, other: Any, table: np.ndarray = X) -> None:
    """Compare the predictions of two models for the same rows, bit for bit."""
    expected = other._raw_scores(table)
    assert np.array_equal(model._raw_scores(table), expected)
    assert np.array_equal(model._raw_scores(scipy.sparse.csr_matrix(table)), expected)
    assert model.feature_importances_.tolist() == other.feature_importances_.tolist()
    assert np.array_equal(np.sort(model.row_ids_), np.sort(other.row_ids_))
    model.check_state()
    other.check_state()


def assert_same_report(report: Any, other: Any) -> None:
    """Compare the reports of two updates, except for the seconds."""
    for field in fields(report):
        if field.name != "seconds":
            assert np.array_equal(getattr(report, field.name), getattr(other, field.name)), field


def with_cell(value: float, column: int, form: str = "csr") -> Any:
    """A few rows, one of which has this value in this column."""
    cells = np.nan_to_num(X[:5])
    cells[3, column] = value
    return scipy.sparse.csr_matrix(cells).asformat(form)


def make_wide(seed: int, n_rows: int, cells_per_row: int = 3) -> tuple[Any, np.ndarray]:
    """Rows with a few words each; the first words determine the class."""
    rng = np.random.default_rng(seed)
    words = rng.integers(100, WIDTH, (n_rows, cells_per_row))
    words[:, 0] = 1_000 * rng.integers(0, 20, n_rows) + WIDTH // 2
    counts = rng.integers(1, 4, words.shape).astype(np.float32)
    rows = np.repeat(np.arange(n_rows), cells_per_row)
    table = scipy.sparse.coo_matrix((counts.ravel(), (rows, words.ravel())), (n_rows, WIDTH))
    return table.tocsr(), (words[:, 0] // 1_000 % 3 == 0).astype(int)
