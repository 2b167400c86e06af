"""Read data sets from a folder or from OpenML into float32 arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from datasets.dataset import DataNotFoundError, Dataset, Target
from datasets.made import MADE
from datasets.sources import OpenML, source_of

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
FOLDER_VARIABLE = "GRAFTBOOST_DATA"


def folder() -> Path | None:
    """Folder with the Parquet files, None if there is none.

    Raises
    ------
    DataNotFoundError
        If the environment variable names a folder that does not exist.
    """
    given = os.environ.get(FOLDER_VARIABLE)
    place = Path(given) if given else ROOT.parent / "shared" / "datasets"
    if place.is_dir():
        return place
    if given:
        raise DataNotFoundError(
            f"{FOLDER_VARIABLE}={given} is not a folder. Set it to one that holds Parquet files "
            "named as the data sets (adult.parquet, ...), each with a column 'target', or unset it."
        )
    return None


def path_of(name: str) -> Path | None:
    """Parquet file of a data set, None if it has to be read from OpenML.

    Raises
    ------
    DataNotFoundError
        If it is in neither.
    """
    place = folder()
    if place is not None and (path := place / f"{name}.parquet").is_file():
        return path
    if source_of(name).openml is not None:
        return None
    file = f"{name}.parquet"
    raise DataNotFoundError(
        f"data set {name!r}: {looked_for(file)}, and OpenML does not have it. Set "
        f"{FOLDER_VARIABLE} to a folder with {file}, with a column 'target'."
    )


def load(name: str, split: int = 0) -> Dataset:
    """Read or make one data set.

    Split 0 is the official split or, without one, a random split that is always the same. Each
    other number is another random split with as many test rows. Synthetic sets have one split.
    """
    if name in MADE:
        return MADE[name]()
    frame, y = read_table(name)
    in_test = None
    if "split" in frame:
        in_test = (frame.pop("split") == "test").to_numpy()
    if in_test is None or split:
        share = source_of(name).test_share
        n_test = round(len(frame) * share) if in_test is None else int(in_test.sum())
        in_test = _random_split(len(frame), n_test, split)
    X = as_float32(frame)
    return Dataset(name, source_of(name).task, X[~in_test], y[~in_test], X[in_test], y[in_test])


def load_in_order(name: str) -> tuple[NDArray[np.float32], Target]:
    """Read all rows of a data set, in the order of the file."""
    frame, y = read_table(name)
    return as_float32(frame.drop(columns="split", errors="ignore")), y


def read_table(name: str) -> tuple[pd.DataFrame, Target]:
    """Features as stored, with ``split`` if there is one, and the target.

    Columns that determine the target are dropped.
    """
    import pandas as pd

    path, source = path_of(name), source_of(name)
    if path is not None:
        frame = pd.read_parquet(path)
    elif source.openml is not None:
        frame = _from_openml(name, source.openml)
    frame = frame.drop(columns=list(source.dropped), errors="ignore")
    target = frame.pop("target").to_numpy()
    if source.task == "classification":
        return frame, np.unique(target, return_inverse=True)[1].astype(np.int64)
    return frame, target.astype(np.float64)


def _from_openml(name: str, wanted: OpenML) -> pd.DataFrame:
    from sklearn.datasets import fetch_openml

    here = looked_for(f"{name}.parquet")
    what = f"OpenML's {wanted.name!r}, version {wanted.version}"
    to_do = f"Set {FOLDER_VARIABLE} to a folder with {name}.parquet, with a column 'target'."
    try:
        bunch = fetch_openml(wanted.name, version=wanted.version, as_frame=True, parser="auto")
    except (OSError, ValueError) as error:  # no network, or no such data set
        raise DataNotFoundError(
            f"data set {name!r}: {here}, and {what}, could not be loaded "
            f"({type(error).__name__}: {error}). {to_do}"
        ) from error
    frame: pd.DataFrame = bunch.data.assign(target=bunch.target.to_numpy())
    if len(frame) != wanted.rows:
        raise DataNotFoundError(
            f"data set {name!r}: {here}, and {what}, has {len(frame):,} rows where "
            f"{wanted.rows:,} were expected. {to_do}"
        )
    if wanted.complete:
        frame = frame.dropna()
    # OpenML often stores numbers with few values as text categories.
    return frame.apply(_as_numbers).reset_index(drop=True)


def _as_numbers(column: pd.Series) -> pd.Series:
    """Convert a column of numbers stored as text to numbers; return others unchanged."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    try:
        return pd.to_numeric(column.astype(object))
    except (ValueError, TypeError):
        return column


def looked_for(file: str) -> str:
    """Where a missing file was looked for."""
    place = folder()
    if place is None:
        return f"{FOLDER_VARIABLE} is not set and ../shared/datasets does not exist"
    return f"there is no {file} in {place}"


def _random_split(n_rows: int, n_test: int, seed: int) -> NDArray[np.bool_]:
    in_test = np.zeros(n_rows, dtype=np.bool_)
    in_test[np.random.default_rng(seed).permutation(n_rows)[:n_test]] = True
    return in_test


def as_float32(frame: pd.DataFrame) -> NDArray[np.float32]:
    """Convert to float32: strings become category indices, missing values NaN.

    A time becomes four columns after all others: year, month, day of the week and hour.
    """
    times = [name for name in frame.columns if frame[name].dtype.kind == "M"]
    others = [name for name in frame.columns if name not in times]
    X = np.empty((len(frame), len(others) + 4 * len(times)), dtype=np.float32)
    for j, name in enumerate(others):
        column = frame[name]
        if column.dtype.kind == "O":  # strings and categories alike
            codes = column.astype("category").cat.codes.to_numpy()
            X[:, j] = np.where(codes < 0, np.nan, codes)
        else:
            X[:, j] = column.to_numpy(dtype=np.float32)
    for j, name in enumerate(times):
        time, first = frame[name].dt, len(others) + 4 * j
        X[:, first] = time.year
        X[:, first + 1] = time.month
        X[:, first + 2] = time.day_of_week
        X[:, first + 3] = time.hour
    return X
