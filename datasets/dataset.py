"""What a data set is once it is read, and what is raised where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Task = Literal["classification", "regression"]
Target = NDArray[np.int64] | NDArray[np.float64]


class DataNotFoundError(Exception):
    """A data set is neither in the folder nor to be had from OpenML."""


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
