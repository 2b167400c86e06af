"""Data sets of very many columns, nearly all zero: words in texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, load_npz

from datasets.dataset import DataNotFoundError, SparseDataset
from datasets.reading import FOLDER_VARIABLE, folder, looked_for

TRAIN_SHARE = 0.7  # of the rows in their order, where no split comes with the data


@dataclass(frozen=True)
class SparseSource:
    """What the rows of a file are, and how they are split. All have two classes."""

    rows: str
    split: str


# Each is a file of `scipy.sparse.save_npz` with two more arrays in it, ``target`` and, where there
# is an official split, ``split`` (0 to train, 1 to test).
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
        "mails as they came, the words that occur",
        "none: the first 70% in the order of time to train, the rest to test",
    ),
    "rcv1_sample": SparseSource(
        "newswire of 1996 and 1997, words weighted by how rare they are",
        "that of the sample, which is of 1,500 rows",
    ),
}


def sparse_path_of(name: str) -> Path:
    """File of a sparse data set.

    Raises
    ------
    DataNotFoundError
        If it is not there; OpenML has none of them.
    """
    if name not in SPARSE:
        raise ValueError(f"data set {name!r} is none of {', '.join(SPARSE)}")
    place, file = folder(), f"{name}.npz"
    if place is not None and (path := place / file).is_file():
        return path
    raise DataNotFoundError(
        f"data set {name!r}: {looked_for(file)}. Set {FOLDER_VARIABLE} to a folder with {file}, a "
        "sparse matrix of scipy's with an array 'target' beside it."
    )


def load_sparse(name: str, max_rows: int | None = None) -> SparseDataset:
    """Read a sparse data set with its split, or with the first 70% of the rows to train.

    Parameters
    ----------
    name : str
        One of `SPARSE`.
    max_rows : int, default=None
        At most so many rows to train on, and at most so many to test on, drawn at random but in
        their order. All columns stay.
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
