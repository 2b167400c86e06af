"""Data sets in memory, and the error for missing ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Task = Literal["classification", "regression"]
Target = NDArray[np.int64] | NDArray[np.float64]
Table = NDArray[np.float32] | csr_matrix


class DataNotFoundError(Exception):
    """A data set is neither in the folder nor available from OpenML."""


@dataclass(frozen=True)
class Dataset:
    """Training and test rows; missing values are NaN.

    ``y`` holds class indices 0..K-1 (int64) for classification, the target (float64) otherwise.
    """

    name: str
    task: Task
    X_train: NDArray[np.float32]
    y_train: Target
    X_test: NDArray[np.float32]
    y_test: Target


@dataclass(frozen=True)
class SparseDataset:
    """The same with float32 tables in CSR form, in which values not stored are zero."""

    name: str
    task: Task
    X_train: csr_matrix
    y_train: Target
    X_test: csr_matrix
    y_test: Target


AnyDataset = Dataset | SparseDataset
