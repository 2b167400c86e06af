"""Synthetic data sets, for sizes and kinds of columns that no file has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from datasets.dataset import Dataset

if TYPE_CHECKING:
    import pandas as pd

N_SKEWED_COLUMNS = 20


def higgs_shaped(
    n_train: int = 5_500_000, n_test: int = 100_000, *, name: str = "higgs_shaped"
) -> Dataset:
    """Synthetic data, by default of half the size of HIGGS: 28 features, two classes.

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
    return Dataset(name, "classification", X[:n_train], y[:n_train], X[n_train:], y[n_train:])


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


@dataclass(frozen=True)
class SkewedDataset:
    """The same rows as numbers (``codes``) and with columns of category dtype (``frame``)."""

    codes: NDArray[np.float32]
    frame: pd.DataFrame
    y: NDArray[np.int64]


def skewed(
    n_rows: int, *, values: tuple[int, int] = (2, 300), shares: tuple[float, float] | None
) -> SkewedDataset:
    """Draw rows of 20 columns, and one of two classes that depends on every other column.

    The number of values rises from column to column, from the first to the second of `values`. The
    most frequent value has a share of the rows between the two `shares` that does not depend on the
    number of values; the others are equally frequent. If `shares` is None, all values are.

    Examples
    --------
    >>> data = skewed(5_000, shares=(0.5, 0.9))
    >>> shares = [np.bincount(column.astype(int)).max() / 5_000 for column in data.codes.T]
    >>> bool(min(shares) > 0.48 and max(shares) < 0.92)
    True
    """
    import pandas as pd  # the benchmarks of arrays do without

    rng = np.random.default_rng(0)
    codes = np.empty((n_rows, N_SKEWED_COLUMNS), dtype=np.float32)
    frame = {}
    score = np.zeros(n_rows)
    for c in range(N_SKEWED_COLUMNS):
        n_values = round(values[0] * (values[1] / values[0]) ** (c / (N_SKEWED_COLUMNS - 1)))
        # Seven and the number of columns have no common divisor: each share belongs to one column,
        # and neighbours have different ones.
        rank = 7 * c % N_SKEWED_COLUMNS / (N_SKEWED_COLUMNS - 1)
        common = 1 / n_values
        if shares is not None:
            common = max(common, shares[0] + rank * (shares[1] - shares[0]))
        share = np.full(n_values, (1 - common) / (n_values - 1))
        share[rng.integers(n_values)] = common
        column = rng.choice(n_values, n_rows, p=share)
        codes[:, c] = column
        frame[f"c{c}"] = pd.Categorical.from_codes(column, categories=range(n_values))
        if c % 2 == 0:
            score += rng.standard_normal(n_values)[column]
    y = rng.random(n_rows) < 1 / (1 + np.exp(np.median(score) - score))
    return SkewedDataset(codes, pd.DataFrame(frame), y.astype(np.int64))


SKEWED: dict[str, Callable[..., SkewedDataset]] = {
    "skewed_20k": partial(skewed, n_rows=20_000, shares=(0.3, 0.97)),
    "skewed_300k": partial(skewed, n_rows=300_000, shares=(0.3, 0.97)),
    "very_skewed": partial(skewed, n_rows=100_000, shares=(0.6, 0.95)),
    "few_values": partial(skewed, n_rows=100_000, values=(2, 10), shares=(0.3, 0.97)),
    "uniform": partial(skewed, n_rows=100_000, shares=None),
}
MADE: dict[str, Callable[..., Dataset]] = {
    "higgs_shaped": higgs_shaped,
    "higgs_shaped_2m": partial(higgs_shaped, 2_000_000, name="higgs_shaped_2m"),
}
