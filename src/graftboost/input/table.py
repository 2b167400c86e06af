"""Read X: arrays, data frames and sparse tables become a `Table`.

Columns are not encoded yet. A table of plain numbers is passed on without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from graftboost.input.categories import Coded, Column
from graftboost.input.sparse import AnyTable, is_sparse, read_sparse


@dataclass(frozen=True)
class Table:
    """X as the caller passed it, with columns that are not encoded yet.

    `columns` is a matrix if X is an array or a sparse matrix of numbers, and otherwise a list with
    one entry per column. `names` are the column names if all of them are strings.
    """

    argument: str
    names: NDArray[np.object_] | None
    columns: AnyTable | list[Column]
    n_rows: int

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return len(self.columns) if isinstance(self.columns, list) else int(self.columns.shape[1])

    def column(self, feature: int) -> Column:
        """Return one column of X."""
        if isinstance(self.columns, list):
            return self.columns[feature]
        if is_sparse(self.columns):
            return np.asarray(self.columns[:, [feature]].toarray()[:, 0])
        return np.asarray(self.columns[:, feature])

    def label(self, feature: int) -> str:
        """Return the name of a column for error messages."""
        name = feature if self.names is None else repr(self.names[feature])
        return f"{self.argument}: column {name}"


def read_table(X: Any, argument: str = "X", *, may_be_empty: bool = False) -> Table:
    """Read an array, a data frame or a sparse matrix; error messages call it `argument`.

    A data frame without rows is refused unless it may be empty.
    """
    if is_sparse(X):
        rows = read_sparse(X, argument)
        return Table(argument, None, rows, rows.shape[0])
    if isinstance(X, np.ndarray):
        return _read_array(X, argument)
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"{argument} is a lazy frame. Pass {argument}.collect().")
    if isinstance(frame, nw.DataFrame):
        return _read_frame(frame, argument, may_be_empty)
    return _read_array(X, argument)


def _read_frame(frame: nw.DataFrame[Any], argument: str, may_be_empty: bool) -> Table:
    n_rows, n_features = frame.shape
    if (n_rows == 0 and not may_be_empty) or n_features == 0:
        _check_shape(np.empty((n_rows, n_features)), argument)
    names = _string_names(frame.columns, argument)
    native = frame.to_native()
    if nw.dependencies.is_pandas_dataframe(native) and _is_one_float_block(native):
        return Table(argument, names, native.to_numpy(), n_rows)
    columns = [_read_series(series) for series in frame.iter_columns()]
    return Table(argument, names, columns, n_rows)


def _is_one_float_block(frame: Any) -> bool:
    """Tell whether a pandas frame provides its values as a matrix without a copy."""
    dtypes = set(frame.dtypes)
    return dtypes <= {np.dtype(np.float32)} or dtypes <= {np.dtype(np.float64)}


def _string_names(names: Sequence[Any], argument: str) -> NDArray[np.object_] | None:
    if all(isinstance(name, str) for name in names):
        return np.asarray(names, dtype=object)
    if any(isinstance(name, str) for name in names):
        raise TypeError(
            f"{argument} has column names of different types, only some of which are strings. "
            "Feature names are only supported if all input features have string names: "
            f"use {argument}.columns = {argument}.columns.astype(str)."
        )
    return None


def _read_series(series: nw.Series[Any]) -> Column:
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return Coded.read(series)
    if isinstance(dtype, nw.Boolean):
        series = series.cast(nw.Float32)
    elif isinstance(dtype, nw.Decimal):
        series = series.cast(nw.Float64)
    values: NDArray[Any] = series.to_numpy()
    if values.dtype.kind in "biuf":
        return values
    # Each library has its own missing value; here it is None.
    objects = _as_objects(values)
    objects[series.is_null().to_numpy()] = None
    return objects


def _read_array(X: Any, argument: str) -> Table:
    array = _check_shape(X, argument)
    if array.dtype.kind in "US" and isinstance(X, list | tuple):
        array = np.asarray(X, dtype=object)  # numpy converted numbers to text
    if array.dtype.kind in "biuf":
        return Table(argument, None, _as_floats(array), len(array))
    columns: list[Column] = [_as_objects(column) for column in array.T]
    return Table(argument, None, columns, len(array))


def _check_shape(X: Any, argument: str) -> NDArray[Any]:
    """Return X as an array with two dimensions, neither of them empty."""
    # A fast path, because scikit-learn's check takes longer than adding a row.
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "biuf":
        return X
    from sklearn.utils import check_array

    try:
        return np.asarray(check_array(X, dtype=None, ensure_all_finite=False, input_name=argument))
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from error


def _as_objects(values: NDArray[Any]) -> NDArray[np.object_]:
    """Return values as Python objects; dates stay numpy objects, as tolist may convert them."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = list(values) if values.dtype.kind in "mM" else values.tolist()
    return objects


def _as_floats(array: NDArray[Any]) -> NDArray[Any]:
    """Convert numbers to float32 if that is exact for their dtype, else to float64."""
    if array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32 if np.can_cast(array.dtype, np.float32) else np.float64)


def take_rows(X: Any, rows: slice) -> Any:
    """Return some rows of X as the caller passed it, in the same form."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[rows].to_native()
    return X.tocsr()[rows] if is_sparse(X) else np.asarray(X)[rows]


def find_feature(feature: Any, table: Table, argument: str) -> int:
    """Return the position of a feature given by name or by position."""
    if isinstance(feature, str):
        if table.names is None:
            raise ValueError(
                f"{argument} names the feature {feature!r}, but X has no feature names. "
                "Pass its index, or pass X as a data frame."
            )
        positions = np.flatnonzero(table.names == feature)
        if len(positions):
            return int(positions[0])
    elif isinstance(feature, int | np.integer) and 0 <= feature < table.n_features:
        return int(feature)
    known = "" if table.names is None else f", named {', '.join(table.names[:10])}"
    raise ValueError(
        f"{argument} contains {feature!r}, which is not a feature: X has {table.n_features} "
        f"features{known}. Pass names, or indices from 0 to {table.n_features - 1}."
    )
