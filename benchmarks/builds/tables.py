"""Synthetic tables for comparing models, each with a score that determines the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Scored = tuple[Any, NDArray[np.float64]]  # dense or CSR table, and a score per row

TEXT_COLUMNS, WORDS_PER_ROW = 3000, 25
CATEGORIES = (12, 30)  # of the two features that `one_hot` encodes


def dense(n_rows: int, rng: Generator, columns: int = 8, missing: bool = True) -> Scored:
    """Normal columns, of which one has few values and one is mostly zero."""
    X = rng.normal(size=(n_rows, columns))
    X[:, 1] = np.round(3 * X[:, 1])
    X[rng.random(n_rows) < 0.85, 2] = 0
    if missing:
        X[rng.random(X.shape) < 0.06] = np.nan
    known = np.nan_to_num(X)
    return X, known[:, 0] + known[:, 1] * known[:, 3] + (known[:, 2] > 0)


def complete(n_rows: int, rng: Generator) -> Scored:
    """`dense` without missing values."""
    return dense(n_rows, rng, missing=False)


def one_hot(n_rows: int, rng: Generator, missing: bool = True) -> Scored:
    """Columns of `dense`, and two one-hot encoded categorical features."""
    X, score = dense(n_rows, rng, missing=missing)
    encoded = [np.eye(n)[rng.integers(0, n, n_rows)] for n in CATEGORIES]
    return np.hstack([X[:, :4], *encoded]), score


def mixed(n_rows: int, rng: Generator) -> Scored:
    """A sparse table of one-hot columns and of columns with many values."""
    X, score = one_hot(n_rows, rng, missing=False)
    X[np.abs(X) < 0.7] = 0
    return csr_matrix(X), score


def text(n_rows: int, rng: Generator) -> Scored:
    """A sparse table of words, few of which are frequent."""
    words = (8 * rng.pareto(0.6, size=n_rows * WORDS_PER_ROW)).astype(np.int64)
    words = np.minimum(words, TEXT_COLUMNS - 1)
    rows = np.repeat(np.arange(n_rows), WORDS_PER_ROW)
    X = csr_matrix((rng.random(len(words)) + 0.1, (rows, words)), shape=(n_rows, TEXT_COLUMNS))
    X.sum_duplicates()
    weights = np.array([1.0, -2, 3, -1, 2, -3])
    return X, np.asarray(X[:, : len(weights)] @ weights).ravel()


def target(
    score: NDArray[np.float64], n_classes: int | None, rng: Generator
) -> NDArray[np.float64] | NDArray[np.int64]:
    """The score with noise, or classes of equal size by it; ``n_classes=None`` is regression."""
    noisy = score + 0.3 * rng.normal(size=len(score))
    if n_classes is None:
        return noisy
    return np.digitize(noisy, np.quantile(noisy, np.arange(1, n_classes) / n_classes))
