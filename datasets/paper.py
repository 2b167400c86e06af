"""The paper's data sets, with its preparation and the sizes of its splits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from datasets.dataset import Dataset, Target, Task
from datasets.reading import as_float32, path_of, read_table

if TYPE_CHECKING:
    import pandas as pd

Series = Literal["global_temperatures", "web_traffic"]
LAGS = 15  # preceding values from which a value is predicted


def _numbers(frame: pd.DataFrame) -> NDArray[np.float32]:
    return as_float32(frame)


def _one_hot(frame: pd.DataFrame) -> NDArray[np.float32]:
    import pandas as pd

    coded = [name for name in frame.columns if frame[name].dtype.kind == "O"]
    return as_float32(pd.get_dummies(frame, columns=coded, dtype=np.float32))


@dataclass(frozen=True)
class PaperSet:
    """A data set of the paper's Table 1, and how ours is prepared to match it."""

    title: str
    task: Task
    n_train: int  # these four are the paper's
    n_test: int
    n_features: int
    n_classes: int  # 0 for regression
    source: str  # name in the registry
    official: bool = False  # whether the data comes with a split
    differs: str | None = None  # how ours differs
    stand_in: str | None = None  # the data that replaces the paper's, if any
    features: Callable[[pd.DataFrame], NDArray[np.float32]] = _numbers


SETS = {
    "adult": PaperSet(
        "Adult",
        "classification",
        n_train=36_139,
        n_test=9_034,
        n_features=87,
        n_classes=2,
        source="adult",
        differs="one-hot encoding gives 104 features; the paper has 87 and does not say which",
        features=_one_hot,
    ),
    "credit_info": PaperSet(
        "CreditInfo",
        "classification",
        n_train=105_000,
        n_test=45_000,
        n_features=10,
        n_classes=2,
        source="credit_info",
    ),
    "susy": PaperSet(
        "SUSY",
        "classification",
        n_train=2_500_000,
        n_test=2_500_000,
        n_features=18,
        n_classes=2,
        source="flights_3m",
        stand_in="three million flights of 2001, delayed or not, replace it: it is not available",
    ),
    "higgs": PaperSet(
        "HIGGS",
        "classification",
        n_train=5_500_000,
        n_test=5_500_000,
        n_features=28,
        n_classes=2,
        source="higgs_sample",
        stand_in="a sample of HIGGS, less than one per cent of its rows, replaces it",
    ),
    "optdigits": PaperSet(
        "Optdigits",
        "classification",
        n_train=3_822,
        n_test=1_796,
        n_features=64,
        n_classes=10,
        source="optdigits",
        official=True,
        differs="the paper has one row less in each part of the official split",
    ),
    "pendigits": PaperSet(
        "Pendigits",
        "classification",
        n_train=7_493,
        n_test=3_497,
        n_features=16,
        n_classes=10,
        source="pendigits",
        official=True,
        differs="the paper has one row less in each part of the official split",
    ),
    "letter": PaperSet(
        "Letter",
        "classification",
        n_train=15_000,
        n_test=5_000,
        n_features=16,
        n_classes=26,
        source="letter",
    ),
    "covtype": PaperSet(
        "Covtype",
        "classification",
        n_train=290_506,
        n_test=290_506,
        n_features=54,
        n_classes=7,
        source="covtype",
    ),
    "abalone": PaperSet(
        "Abalone",
        "regression",
        n_train=2_785,
        n_test=1_392,
        n_features=8,
        n_classes=0,
        source="abalone",
        differs="the target is scaled to [0, 1]",
    ),
    "wine_quality": PaperSet(
        "WineQuality",
        "regression",
        n_train=4_332,
        n_test=2_165,
        n_features=12,
        n_classes=0,
        source="wine_quality",
        differs="the target is scaled to [0, 1]",
    ),
}


def load(name: str, split: int = 0, max_rows: int | None = None) -> Dataset:
    """Read a data set of the paper with the paper's preparation and sizes.

    Parameters
    ----------
    name : str
        One of `SETS`.
    split : int, default=0
        Seed of the random split and of the rows drawn for ``max_rows``. An official split does not
        depend on it.
    max_rows : int, default=None
        Maximum number of training rows and of test rows, drawn at random.

    Returns
    -------
    Dataset
        With the paper's number of rows, or split in its proportion if there are fewer.
    """
    if name not in SETS:
        raise ValueError(f"data set {name!r} is not one of the paper's: {', '.join(SETS)}")
    wanted = SETS[name]
    path = path_of(wanted.source)
    X, y, in_test = _prepared(name, None if path is None else str(path))
    rng = np.random.default_rng(split)
    if in_test is None:
        n_train, n_test = _sizes(wanted, len(y))
        order = rng.permutation(len(y))
        train, test = order[:n_train], order[n_train : n_train + n_test]
    else:
        train, test = np.flatnonzero(~in_test), np.flatnonzero(in_test)
        if max_rows is not None:
            train, test = rng.permutation(train), rng.permutation(test)
    train, test = train[:max_rows], test[:max_rows]
    return Dataset(name, wanted.task, X[train], y[train], X[test], y[test])


def series(name: Series) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Read a time series of the paper: 15 values and the next one, in order of time.

    Values are scaled to [0, 1]; rows with a missing value are dropped.
    """
    _, values = read_table(name)
    values = min_max_scaled(values)
    windows = np.lib.stride_tricks.sliding_window_view(values, LAGS + 1)
    windows = windows[~np.isnan(windows).any(axis=1)]
    return windows[:, :LAGS].astype(np.float32), windows[:, LAGS].astype(np.float64)


def min_max_scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values scaled linearly so that the least is 0 and the greatest 1.

    Examples
    --------
    >>> min_max_scaled(np.array([3.0, 9.0, np.nan, 6.0]))
    array([0. , 1. , nan, 0.5])
    """
    low, high = np.nanmin(values), np.nanmax(values)
    scaled: NDArray[np.float64] = (values - low) / (high - low)
    return scaled


@functools.lru_cache(maxsize=1)  # experiments load several splits of the same set in sequence
def _prepared(
    name: str, path: str | None
) -> tuple[NDArray[np.float32], Target, NDArray[np.bool_] | None]:
    """Features, target, and which rows the official split tests, if the set has one."""
    wanted = SETS[name]
    frame, y = read_table(wanted.source)
    in_test = None
    if "split" in frame:
        split = frame.pop("split")
        in_test = (split == "test").to_numpy() if wanted.official else None
    if wanted.task == "regression":
        y = min_max_scaled(y.astype(np.float64))
    return wanted.features(frame), y, in_test


def _sizes(wanted: PaperSet, n_rows: int) -> tuple[int, int]:
    n_train, n_test = wanted.n_train, wanted.n_test
    if n_train + n_test <= n_rows:
        return n_train, n_test
    # Data that replaces the paper's has fewer rows: use all, in the paper's proportion.
    scaled = n_rows * n_train // (n_train + n_test)
    return scaled, n_rows - scaled
