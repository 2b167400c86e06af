"""The same rows in two forms: with categories, and one-hot encoded in a sparse table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix, hstack

from datasets.dataset import Target
from datasets.reading import read_table

if TYPE_CHECKING:
    import pandas as pd

CODED = ("adult", "flights_3m")  # of those with categories: few rows, and many


@dataclass(frozen=True)
class CodedDataset:
    """All rows of a data set, in the order of the file.

    ``frame`` has columns of categorical dtype; ``one_hot`` has the same rows in CSR form.
    """

    name: str
    frame: pd.DataFrame
    one_hot: csr_matrix
    y: Target


def load_coded(name: str) -> CodedDataset:
    """Read a data set in both forms."""
    if name not in CODED:
        raise ValueError(f"data set {name!r} is not one of {', '.join(CODED)}")
    frame, y = read_table(name)
    frame = frame.drop(columns="split", errors="ignore")
    coded = [column for column in frame.columns if frame[column].dtype.kind == "O"]
    frame = frame.astype(dict.fromkeys(coded, "category"))
    return CodedDataset(name, frame, one_hot(frame), y)


def one_hot(frame: pd.DataFrame) -> csr_matrix:
    """A frame as float32 in CSR form, with one column for each category.

    A row whose category is missing has a zero in all columns of that feature.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40], "job": pd.Categorical(["smith", "baker"])})
    >>> one_hot(frame).toarray()
    array([[30.,  0.,  1.],
           [40.,  1.,  0.]], dtype=float32)
    """
    return hstack([_columns(frame[name]) for name in frame.columns], format="csr")


def _columns(column: pd.Series) -> csr_matrix:
    """One column of numbers, or one column for each category that occurs."""
    if column.dtype.kind != "O":
        return csr_matrix(column.to_numpy(dtype=np.float32)[:, np.newaxis])
    categories = column.cat.remove_unused_categories().cat
    codes = categories.codes.to_numpy()
    rows = np.flatnonzero(codes >= 0)
    ones = np.ones(len(rows), dtype=np.float32)
    shape = (len(codes), len(categories.categories))
    return csr_matrix((ones, (rows, codes[rows])), shape=shape)
