"""The data sets, as the same float32 arrays for every library."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["classification", "regression"]
Target = NDArray[np.int64] | NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
FOLDER_VARIABLE = "GRAFTBOOST_DATA"


class DataNotFoundError(Exception):
    """There is no folder of data sets, or the one asked for is not in it."""


@dataclass(frozen=True)
class Dataset:
    """Rows to train on and rows to test on; missing values are NaN.

    ``y`` holds class indices 0..K-1 (int64) for classification, the target (float64) otherwise.
    """

    name: str
    task: Task
    X_train: NDArray[np.float32]
    y_train: Target
    X_test: NDArray[np.float32]
    y_test: Target


@dataclass(frozen=True)
class Source:
    """How one Parquet file becomes a `Dataset`.

    A file with a ``split`` column brings its official split. Any other is split at random, always
    in the same way, and ``test_share`` of its rows are for the test.
    """

    task: Task
    dropped: tuple[str, ...] = ()  # columns that give the target away, or are no feature
    test_share: float = 0.3


SOURCES = {
    "adult": Source("classification"),
    "credit_info": Source("classification"),
    "electricity": Source("classification"),
    "higgs_sample": Source("classification", dropped=("part",)),  # which piece a row came with
    "letter": Source("classification"),
    "pendigits": Source("classification"),
    "optdigits": Source("classification"),
    "flights_3m": Source("classification", dropped=("delay",), test_share=0.5),
    "covtype": Source("classification", test_share=0.5),
    "california_housing": Source("regression"),
    "bike_sharing": Source("regression"),
    "diamonds": Source("regression"),
    "abalone": Source("regression"),
    "wine_quality": Source("regression"),
}


def names_of(task: Task) -> list[str]:
    """Names of the stored data sets with this task."""
    return [name for name, source in SOURCES.items() if source.task == task]


def folder() -> Path:
    """Folder with the Parquet files.

    Raises
    ------
    DataNotFoundError
        If neither the environment variable nor the folder beside the repository is there.
    """
    given = os.environ.get(FOLDER_VARIABLE)
    place = Path(given) if given else ROOT.parent / "shared" / "datasets"
    if not place.is_dir():
        looked = (
            f"{FOLDER_VARIABLE}={given} is not a folder"
            if given
            else f"{FOLDER_VARIABLE} is not set and ../shared/datasets is not there"
        )
        raise DataNotFoundError(
            f"no data sets: {looked}. Set {FOLDER_VARIABLE} to a folder that holds Parquet files "
            "named as the data sets (adult.parquet, ...), each with a column 'target'."
        )
    return place


def path_of(name: str) -> Path:
    """Parquet file of a stored data set; raises `DataNotFoundError` where there is none."""
    path = folder() / f"{name}.parquet"
    if not path.is_file():
        raise DataNotFoundError(f"data set {name!r}: there is no {path.name} in {path.parent}")
    return path


def load(name: str) -> Dataset:
    """Read one data set from the folder, or make it."""
    if name in MADE:
        return MADE[name]()
    X, y, in_test = _read(name, SOURCES[name])
    return Dataset(name, SOURCES[name].task, X[~in_test], y[~in_test], X[in_test], y[in_test])


def load_in_order(name: str) -> tuple[NDArray[np.float32], Target]:
    """Read all rows of a stored data set, in the order of the file."""
    X, y, _ = _read(name, SOURCES[name])
    return X, y


def _read(name: str, source: Source) -> tuple[NDArray[np.float32], Target, NDArray[np.bool_]]:
    """Features, target, and which rows are for the test."""
    import pandas as pd

    path = path_of(name)
    frame = pd.read_parquet(path).drop(columns=list(source.dropped), errors="ignore")
    target = frame.pop("target").to_numpy()
    if "split" in frame:
        in_test = (frame.pop("split") == "test").to_numpy()
    else:
        in_test = _random_split(len(frame), source.test_share)
    y: Target
    if source.task == "classification":
        y = np.unique(target, return_inverse=True)[1].astype(np.int64)
    else:
        y = target.astype(np.float64)
    return _as_float32(frame), y, in_test


def _random_split(n_rows: int, test_share: float) -> NDArray[np.bool_]:
    in_test = np.zeros(n_rows, dtype=np.bool_)
    in_test[np.random.default_rng(0).permutation(n_rows)[: round(n_rows * test_share)]] = True
    return in_test


def _as_float32(frame: pd.DataFrame) -> NDArray[np.float32]:
    """Numbers as they are, strings as the index of their category, missing values as NaN."""
    X = np.empty(frame.shape, dtype=np.float32)
    for j, name in enumerate(frame.columns):
        column = frame[name]
        if column.dtype.kind == "O":  # strings and categories alike
            codes = column.astype("category").cat.codes.to_numpy()
            X[:, j] = np.where(codes < 0, np.nan, codes)
        else:
            X[:, j] = column.to_numpy(dtype=np.float32)
    return X


def higgs_shaped(n_train: int = 5_500_000, n_test: int = 100_000) -> Dataset:
    """Made data of the size of half the HIGGS set: 28 features, two classes.

    As in HIGGS, 21 features are measured and 7 are functions of them, four take three values only,
    and no single feature says much about the class.
    """
    n_rows = n_train + n_test
    X = np.empty((n_rows, 28), dtype=np.float32)
    y = np.empty(n_rows, dtype=np.int64)
    block = 500_000  # rows made at a time, so that making them needs little memory of its own
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
