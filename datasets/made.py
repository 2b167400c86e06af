"""Synthetic data sets, for sizes that no file has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from datasets.dataset import Dataset


def higgs_shaped(n_train: int = 5_500_000, n_test: int = 100_000) -> Dataset:
    """Synthetic data of half the size of HIGGS: 28 features, two classes.

    As in HIGGS, 21 features are measured and 7 are functions of them, four take three values only,
    and no single feature predicts the class well.
    """
    n_rows = n_train + n_test
    X = np.empty((n_rows, 28), dtype=np.float32)
    y = np.empty(n_rows, dtype=np.int64)
    block = 500_000  # rows made at a time, to limit the memory needed
    for start in range(0, n_rows, block):
        rows = slice(start, min(start + block, n_rows))
        X[rows], y[rows] = _higgs_shaped_block(rows.stop - rows.start, seed=start)
    return Dataset(
        "higgs_shaped", "classification", X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    )


def _higgs_shaped_block(n: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 28), dtype=np.float32)
    X[:, 0:4] = np.exp(0.5 * X[:, 0:4])  # momenta: positive, with a long tail
    X[:, 17:21] = np.round(np.clip(X[:, 17:21] + 1, 0, 2))  # tags: 0, 1 or 2
    for j in range(7):  # masses: a function of three measured features each, and noise
        a, b, c = X[:, j], X[:, j + 4], X[:, j + 11]
        X[:, 21 + j] = np.sqrt(a * a + b * b + 0.5 * np.abs(b * c)) + 0.1 * X[:, 21 + j]
    score = (
        1.5 * np.sin(X[:, 21] * X[:, 4])
        + 0.8 * X[:, 5] * X[:, 6] * (X[:, 17] > 0)
        + np.where(X[:, 22] > X[:, 23], 0.9, -0.9)
        - 0.5 * np.log1p(X[:, 27] ** 2)
        + 0.5
    )
    y = rng.random(n, dtype=np.float32) < 1 / (1 + np.exp(-score))
    return X, y.astype(np.int64)


MADE: dict[str, Callable[[], Dataset]] = {"higgs_shaped": higgs_shaped}
