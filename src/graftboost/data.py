"""X on its way in: arrays, data frames and sparse tables become what the engine reads.

That is a matrix of float32 or float64, dense or sparse as it came; NaN is a missing value, and a
categorical column holds the index of each row's category. A table that is such a matrix already is
passed on without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from graftboost.categories import MOST_CATEGORIES, Categories, Coded, Column
from graftboost.sparse import AnyTable, is_sparse, read_sparse, replace_columns
from graftboost.wiping import Copies

if TYPE_CHECKING:
    from graftboost._engine import Forest

# The engine has 65,536 codes a feature; one is "missing", and n edges make n + 1 intervals.
MOST_EDGES = 65_534


@dataclass(frozen=True)
class Table:
    """A caller's X as it came, its columns not yet encoded.

    `columns` is a matrix when all of X is numbers and came as an array or sparse, else one entry a
    column. `names` are the columns' names if X has names and all are strings.
    """

    argument: str
    names: NDArray[np.object_] | None
    columns: AnyTable | list[Column]
    n_rows: int

    @property
    def n_features(self) -> int:
        """How many columns there are."""
        return len(self.columns) if isinstance(self.columns, list) else int(self.columns.shape[1])

    def column(self, feature: int) -> Column:
        """Return one column of X."""
        if isinstance(self.columns, list):
            return self.columns[feature]
        if is_sparse(self.columns):
            return np.asarray(self.columns[:, [feature]].toarray()[:, 0])
        return np.asarray(self.columns[:, feature])

    def label(self, feature: int) -> str:
        """Return what an error calls a column."""
        name = feature if self.names is None else repr(self.names[feature])
        return f"{self.argument}: column {name}"


def read_table(X: Any, argument: str = "X") -> Table:
    """Read an array, a data frame or a sparse table; `argument` is what errors call it."""
    if is_sparse(X):
        rows = read_sparse(X, argument)
        return Table(argument, None, rows, rows.shape[0])
    if isinstance(X, np.ndarray):
        return _read_array(X, argument)
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"{argument} is a lazy frame. Pass {argument}.collect().")
    if isinstance(frame, nw.DataFrame):
        return _read_frame(frame, argument)
    return _read_array(X, argument)


def _read_frame(frame: nw.DataFrame[Any], argument: str) -> Table:
    n_rows, n_features = frame.shape
    if n_rows == 0 or n_features == 0:
        _check_shape(np.empty((n_rows, n_features)), argument)
    names = _string_names(frame.columns, argument)
    native = frame.to_native()
    if nw.dependencies.is_pandas_dataframe(native) and _is_one_float_block(native):
        return Table(argument, names, native.to_numpy(), n_rows)
    columns = [_read_series(series) for series in frame.iter_columns()]
    return Table(argument, names, columns, n_rows)


def _is_one_float_block(frame: Any) -> bool:
    """Tell whether a pandas frame hands out its values as a matrix without a copy."""
    dtypes = set(frame.dtypes)
    return dtypes <= {np.dtype(np.float32)} or dtypes <= {np.dtype(np.float64)}


def _string_names(names: Sequence[Any], argument: str) -> NDArray[np.object_] | None:
    if all(isinstance(name, str) for name in names):
        return np.asarray(names, dtype=object)
    if any(isinstance(name, str) for name in names):
        raise TypeError(
            f"{argument} has column names of several types, of which only some are strings. "
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
    # Libraries write "missing" in their own ways; here it is None.
    objects = _as_objects(values)
    objects[series.is_null().to_numpy()] = None
    return objects


def _read_array(X: Any, argument: str) -> Table:
    array = _check_shape(X, argument)
    if array.dtype.kind in "US" and isinstance(X, list | tuple):
        array = np.asarray(X, dtype=object)  # numpy made text of numbers beside text
    if array.dtype.kind in "biuf":
        return Table(argument, None, _as_floats(array), len(array))
    columns: list[Column] = [_as_objects(column) for column in array.T]
    return Table(argument, None, columns, len(array))


def _check_shape(X: Any, argument: str) -> NDArray[Any]:
    """Return X as an array with two dimensions, neither of them empty."""
    # Most are; scikit-learn's check takes longer than to add a row.
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "biuf":
        return X
    try:
        return np.asarray(check_array(X, dtype=None, ensure_all_finite=False, input_name=argument))
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from error


def _as_objects(values: NDArray[Any]) -> NDArray[np.object_]:
    """Return values as Python objects, but dates as numpy's: tolist may make numbers of them."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = list(values) if values.dtype.kind in "mM" else values.tolist()
    return objects


def _as_floats(array: NDArray[Any]) -> NDArray[Any]:
    """Convert numbers to float32 where that holds them exactly, else to float64."""
    if array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32 if np.can_cast(array.dtype, np.float32) else np.float64)


@dataclass(frozen=True)
class Columns:
    """What fit learned about the columns of X: how many, their names, the categories of some.

    Examples
    --------
    >>> columns = Columns.learn(read_table([[5, 0.5], [7, 1.5]]), categorical_features=[0])
    >>> columns.encode(read_table([[7, 2.5], [6, 3.5]]))
    array([[1. , 2.5],
           [2. , 3.5]])
    """

    names: NDArray[np.object_] | None
    n_features: int
    categories: dict[int, Categories]

    @classmethod
    def learn(cls, table: Table, categorical_features: Any) -> Columns:
        """Find the categorical columns and their categories."""
        categories = {
            feature: _learn_categories(table, feature)
            for feature in find_categorical(table, categorical_features)
        }
        return cls(table.names, table.n_features, categories)

    def held_by(self, forest: Forest) -> Columns:
        """Return these columns, with the categories that no row of a forest has forgotten."""
        categories = {
            feature: found.held_by(forest, feature) for feature, found in self.categories.items()
        }
        return replace(self, categories=categories)

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that need no class of ours to be read again."""
        return {
            "names": None if self.names is None else self.names.tolist(),
            "n_features": self.n_features,
            "categories": {
                feature: categories.to_plain() for feature, categories in self.categories.items()
            },
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Columns:
        """Return what `to_plain` was called on."""
        names = plain["names"]
        return cls(
            None if names is None else np.array(names, dtype=object),
            plain["n_features"],
            {
                feature: Categories.from_plain(categories)
                for feature, categories in plain["categories"].items()
            },
        )

    @property
    def n_categories(self) -> dict[int, int]:
        """How many categories each categorical column has."""
        return {feature: len(found) for feature, found in self.categories.items()}

    def encode(self, table: Table, copies: Copies | None = None) -> AnyTable:
        """Return the engine's matrix for a table with these columns.

        `copies` takes note of it, unless it is the caller's own.
        """
        matrix = self._encoded(table)
        return matrix if copies is None or matrix is table.columns else copies.add(matrix)

    def _encoded(self, table: Table) -> AnyTable:
        self._check_columns(table)
        if isinstance(table.columns, list):
            return self._assemble(table)
        _check_finite(table.columns, table)
        if is_sparse(table.columns):
            return self._encode_sparse(table)
        matrix = table.columns
        for feature, categories in self.categories.items():
            codes = categories.encode(matrix[:, feature], table.label(feature))
            if not categories.are_own_codes:
                if matrix is table.columns:
                    matrix = matrix.copy()  # it is the caller's
                matrix[:, feature] = codes
        return matrix

    def _encode_sparse(self, table: Table) -> AnyTable:
        # Categories are numbered from 0, and the first need not be that of the number 0: all cells
        # of such a column are written anew.
        rows: AnyTable = table.columns
        codes = {
            feature: categories.encode(table.column(feature), table.label(feature))
            for feature, categories in self.categories.items()
            if not categories.are_own_codes
        }
        if not codes:
            return rows
        values = np.column_stack(list(codes.values())).astype(rows.dtype)
        return replace_columns(rows, list(codes), values)

    def _assemble(self, table: Table) -> NDArray[Any]:
        columns = [
            self.categories[feature].encode(table.column(feature), table.label(feature))
            if feature in self.categories
            else _numbers(table, feature)
            for feature in range(self.n_features)
        ]
        single = all(np.can_cast(column.dtype, np.float32) for column in columns)
        # Columns come one by one, so each is written where it is contiguous.
        matrix = np.empty((len(columns), table.n_rows), np.float32 if single else np.float64).T
        for feature, column in enumerate(columns):
            matrix[:, feature] = column
        _check_finite(matrix, table)
        return matrix

    def _check_columns(self, table: Table) -> None:
        if table.n_features != self.n_features:
            raise ValueError(
                f"{table.argument} has {table.n_features} features, but {self.n_features} "
                "were given in X. Pass the same columns in the same order."
            )
        if self.names is None or table.names is None:
            return
        if not np.array_equal(self.names, table.names):
            raise ValueError(
                f"{table.argument} does not have the feature names of X, or has them in another "
                "order. Pass the same columns in the same order."
            )


def _learn_categories(table: Table, feature: int) -> Categories:
    categories = Categories.learn(table.column(feature))
    if categories.kind == "numbers" and not np.isfinite(categories.values).all():
        raise ValueError(_infinity_in(table, feature))
    if len(categories) > MOST_CATEGORIES:
        raise ValueError(
            f"{table.label(feature)} has {len(categories)} categories, but at most "
            f"{MOST_CATEGORIES} are possible. Join the rare ones, or leave the column out."
        )
    return categories


def _numbers(table: Table, feature: int) -> NDArray[Any]:
    """Return a column that is not categorical; raise unless it holds numbers."""
    column = table.column(feature)
    label = table.label(feature)
    if isinstance(column, Coded):
        raise ValueError(
            f"{label} has a category dtype, but is not among the model's categorical features. "
            "Convert it to numbers, or fit with categorical_features='from_dtype'."
        )
    if column.dtype != object:
        return column
    odd = next((value for value in column if _is_text_or_time(value)), None)
    if odd is not None:
        raise ValueError(
            f"{label} holds a value of type {type(odd).__name__}, which is neither a number nor of "
            "a category dtype. Convert the column to numbers, or to categories (pandas: "
            ".astype('category'), polars: .cast(pl.Categorical), pyarrow: .dictionary_encode()), "
            "or list it in categorical_features."
        )
    try:
        return column.astype(np.float64)
    except TypeError as error:
        raise TypeError(f"{label} does not hold numbers: {error}") from error


def _is_text_or_time(value: Any) -> bool:
    return (
        isinstance(value, str | bytes | np.datetime64 | np.timedelta64)
        or hasattr(value, "isoformat")
        or hasattr(value, "total_seconds")
    )


def _check_finite(matrix: AnyTable, table: Table) -> None:
    """Raise if a value is infinite.

    The least and the greatest value tell, without the temporaries that isinf would need; fmin and
    fmax pass over NaN.
    """
    values = matrix.data if is_sparse(matrix) else matrix
    if not values.size:
        return
    extremes = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if np.isinf(extremes).any():
        infinite = np.isinf(values)
        feature = matrix.indices[infinite].min() if is_sparse(matrix) else infinite.any(0).argmax()
        raise ValueError(_infinity_in(table, int(feature)))


def _infinity_in(table: Table, feature: int) -> str:
    return (
        f"{table.label(feature)} contains infinity. Put NaN where a value is missing, or a large "
        "finite number."
    )


def find_categorical(table: Table, categorical_features: Any) -> list[int]:
    """Return which columns are categorical, as the parameter `categorical_features` says."""
    if categorical_features is None:
        return []
    if isinstance(categorical_features, str):
        # "from_dtype": a matrix has no such dtype, so none of its columns is categorical.
        columns = table.columns if isinstance(table.columns, list) else []
        return [feature for feature, column in enumerate(columns) if isinstance(column, Coded)]
    asked = np.asarray(categorical_features)
    if asked.dtype == bool:
        if asked.shape != (table.n_features,):
            raise ValueError(
                f"categorical_features is a mask of shape {asked.shape}, but X has "
                f"{table.n_features} features. Give one truth value for each."
            )
        return [int(feature) for feature in np.flatnonzero(asked)]
    found = {find_feature(feature, table, "categorical_features") for feature in asked.tolist()}
    return sorted(found)


def check_bin_edges(bin_edges: Any, table: Table, columns: Columns) -> dict[int, list[float]]:
    """Return the edges of those columns that the parameter `bin_edges` gives some."""
    if bin_edges is None:
        return {}
    if isinstance(bin_edges, Mapping):
        given = {find_feature(key, table, "bin_edges"): value for key, value in bin_edges.items()}
    elif len(bin_edges) == table.n_features:
        given = dict(enumerate(bin_edges))
    else:
        raise ValueError(
            f"bin_edges has {len(bin_edges)} entries, but X has {table.n_features} features. Give "
            "one for each (None to fit it), or a dict from a feature's name or index to its edges."
        )
    return {
        feature: _check_edges(values, feature, columns)
        for feature, values in given.items()
        if values is not None
    }


def _check_edges(values: Any, feature: int, columns: Columns) -> list[float]:
    name = feature if columns.names is None else repr(columns.names[feature])
    if feature in columns.categories:
        raise ValueError(
            f"bin_edges has edges for feature {name}, which is categorical and has none."
        )
    try:
        edges = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.array(np.nan)
    if edges.ndim != 1 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise ValueError(
            f"bin_edges of feature {name} must be finite numbers, each greater than the one "
            f"before. Got {values!r}."
        )
    if len(edges) > MOST_EDGES:
        raise ValueError(
            f"bin_edges of feature {name} has {len(edges)} edges, but at most {MOST_EDGES} "
            "are possible."
        )
    return [float(edge) for edge in edges]


def find_feature(feature: Any, table: Table, argument: str) -> int:
    """Return the position of a feature given by name or by position."""
    if isinstance(feature, str):
        if table.names is None:
            raise ValueError(
                f"{argument} names the feature {feature!r}, but X has no feature names. "
                "Give its index, or pass a data frame."
            )
        places = np.flatnonzero(table.names == feature)
        if len(places):
            return int(places[0])
    elif isinstance(feature, int | np.integer) and 0 <= feature < table.n_features:
        return int(feature)
    known = "" if table.names is None else f", named {', '.join(table.names[:10])}"
    raise ValueError(
        f"{argument} holds {feature!r}, which is not a feature: X has {table.n_features} features"
        f"{known}. Give names, or indices from 0 to {table.n_features - 1}."
    )
