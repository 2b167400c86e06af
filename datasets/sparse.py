"""Sparse data sets with very many columns: words in texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, load_npz

from datasets.dataset import DataNotFoundError, SparseDataset
from datasets.reading import FOLDER_VARIABLE, folder, looked_for

TRAIN_SHARE = 0.7  # of the rows in their order, if the data has no split


@dataclass(frozen=True)
class SparseSource:
    """Content and split of a file. All have two classes."""

    rows: str
    split: str


# Each is a file of `scipy.sparse.save_npz` with two more arrays, ``target`` and, if there is an
# official split, ``split`` (0 for training, 1 for test rows).
SPARSE = {
    "news20_ngrams": SparseSource(
        "posts to twenty newsgroups, words and pairs of words counted",
        "official: older posts to train, newer to test",
    ),
    "reuters21578": SparseSource(
        "newswire of 1987, words and pairs of words counted",
        "official: older articles to train, newer to test",
    ),
    "spam_stream": SparseSource(
        "emails in order of arrival, the words that occur",
        "none: the first 70% in order of time to train, the rest to test",
    ),
    "rcv1_sample": SparseSource(
        "newswire of 1996 and 1997, words weighted by rarity",
        "that of the sample of 1,500 rows",
    ),
}


def sparse_path_of(name: str) -> Path:
    """File of a sparse data set.

    Raises
    ------
    DataNotFoundError
        If it is missing; OpenML has none of them.
    """
    if name not in SPARSE:
        raise ValueError(f"data set {name!r} is not one of {', '.join(SPARSE)}")
    place, file = folder(), f"{name}.npz"
    if place is not None and (path := place / file).is_file():
        return path
    raise DataNotFoundError(
        f"data set {name!r}: {looked_for(file)}. Set {FOLDER_VARIABLE} to a folder with {file}, a "
        "scipy sparse matrix with an additional array 'target'."
    )


def load_sparse(name: str, max_rows: int | None = None) -> SparseDataset:
    """Read a sparse data set with its split, or with the first 70% of the rows to train.

    Parameters
    ----------
    name : str
        One of `SPARSE`.
    max_rows : int, default=None
        Maximum number of training rows and of test rows, drawn at random and kept in order. All
        columns are kept.
    """
    X, y, in_test = _read(name)
    if in_test is None:
        in_test = np.arange(len(y)) >= round(TRAIN_SHARE * len(y))
    train, test = (_at_most(max_rows, np.flatnonzero(part)) for part in (~in_test, in_test))
    return SparseDataset(name, "classification", X[train], y[train], X[test], y[test])


def load_sparse_in_order(name: str) -> tuple[csr_matrix, NDArray[np.int64]]:
    """Read all rows of a sparse data set, in the order of the file."""
    X, y, _ = _read(name)
    return X, y


def _read(name: str) -> tuple[csr_matrix, NDArray[np.int64], NDArray[np.bool_] | None]:
    """All rows, their classes, and which of them the official split tests, if there is one."""
    path = sparse_path_of(name)
    X = csr_matrix(load_npz(path), dtype=np.float32)
    with np.load(path) as arrays:
        y = np.unique(arrays["target"], return_inverse=True)[1].astype(np.int64)
        in_test = arrays["split"] == 1 if "split" in arrays.files else None
    return X, y, in_test


def _at_most(n: int | None, rows: NDArray[np.int64]) -> NDArray[Any]:
    if n is None or len(rows) <= n:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, n, replace=False))
