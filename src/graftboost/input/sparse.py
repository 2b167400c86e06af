"""Sparse tables: scipy's sparse matrices and arrays.

They are converted to CSR with ascending columns and without duplicates. A cell that is not stored
is 0, the same as a stored 0.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graftboost._engine import SparseTable

# Scipy and scikit-learn are imported where they are used, because commands without sparse tables do
# not need them.

# A table inside the package: an array, or scipy's CSR.
AnyTable: TypeAlias = Any

# The engine's limit.
MOST_COLUMNS = 2**29 - 1


def is_sparse(X: Any) -> bool:
    """Tell whether X is one of scipy's sparse matrices or arrays."""
    scipy_sparse = sys.modules.get("scipy.sparse")  # if it is not imported, X is not sparse
    return scipy_sparse is not None and bool(scipy_sparse.issparse(X))


def read_sparse(X: Any, argument: str) -> Any:
    """Return X as CSR with float values; X itself if it already has this form.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> X = coo_array(([1, 2], ([0, 0], [4, 1])), shape=(1, 5))
    >>> read_sparse(X, "X").indices.tolist()
    [1, 4]
    """
    from sklearn.utils import check_array

    if not _is_consistent(X):
        raise ValueError(
            f"{argument} has an indptr or indices that do not match its shape {X.shape}. They may "
            "have been modified; create the table again from (data, (row, column))."
        )
    try:
        rows = check_array(
            X, accept_sparse="csr", dtype=None, ensure_all_finite=False, input_name=argument
        )
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from error
    if rows.dtype.kind not in "biuf":
        raise TypeError(
            f"{argument} has dtype {rows.dtype}, but must contain numbers. Convert it to float."
        )
    if rows.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"{argument} has {rows.shape[1]} columns, but at most {MOST_COLUMNS} are possible. "
            "Reduce them, for example by hashing."
        )
    if not rows.has_canonical_format:
        rows = rows.copy()  # it may belong to the caller
        rows.sum_duplicates()
    if rows.dtype not in (np.float32, np.float64):
        exact = np.can_cast(rows.dtype, np.float32)
        rows = rows.astype(np.float32 if exact else np.float64)
    return rows


def _is_consistent(X: Any) -> bool:
    """Tell whether indptr and indices are consistent, which scipy does not check."""
    if X.format not in ("csr", "csc"):
        return True
    n_rows, n_columns = X.shape if X.format == "csr" else X.shape[::-1]
    begin = X.indptr
    if len(begin) != n_rows + 1 or begin[0] != 0 or np.any(np.diff(begin) < 0):
        return False
    columns = X.indices[: begin[-1]]
    if begin[-1] > min(len(X.indices), len(X.data)):
        return False
    return len(columns) == 0 or bool(columns.min() >= 0 and columns.max() < n_columns)


def replace_columns(rows: Any, columns: list[int], values: NDArray[Any]) -> Any:
    """Return a CSR table in which some columns have new values."""
    from scipy.sparse import csr_array

    others = csr_array(rows, copy=True)
    others.data[np.isin(others.indices, columns)] = 0
    columns_map = csr_array(
        (np.ones(len(columns), values.dtype), columns, np.arange(len(columns) + 1)),
        shape=(len(columns), rows.shape[1]),
    )
    replaced = others + csr_array(values) @ columns_map
    replaced.sum_duplicates()
    return replaced


def csr(X: Any, shape: tuple[int, int] | None = None) -> Any:
    """Return a CSR array of a dense array, or of (data, indices, indptr)."""
    from scipy.sparse import csr_array

    return csr_array(X, shape=shape)


def same_form(first: AnyTable, second: AnyTable) -> tuple[AnyTable, AnyTable]:
    """Return both tables in the form of the first, and with the wider of their dtypes."""
    dtype = np.result_type(first.dtype, second.dtype)
    if is_sparse(first) and not is_sparse(second):
        second = csr(second)
    elif is_sparse(second) and not is_sparse(first):
        second = second.toarray()
    return first.astype(dtype, copy=False), second.astype(dtype, copy=False)


def for_engine(X: AnyTable) -> NDArray[Any] | SparseTable:
    """Return a table in the form that the engine reads, without a copy."""
    if not is_sparse(X):
        return X  # type: ignore[no-any-return]
    return SparseTable(
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        np.ascontiguousarray(X.data),
        X.shape[1],
    )
