"""Encode a `Table` as the matrix that the engine reads.

The matrix holds float32 or float64 and is dense or sparse, like the table. NaN is a missing value,
and a categorical column holds the index of each row's category. A table that already is such a
matrix is passed on without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.input.categories import MOST_CATEGORIES, Categories, Coded
from graftboost.input.sparse import AnyTable, is_sparse, replace_columns
from graftboost.input.table import Table, find_feature
from graftboost.input.wiping import Copies

if TYPE_CHECKING:
    from graftboost._engine import EngineModel


@dataclass(frozen=True)
class Columns:
    """What `fit` learned about the columns of X: number, names, and categories.

    Examples
    --------
    >>> from graftboost.input.table import read_table
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

    def held_by(self, engine_model: EngineModel) -> Columns:
        """Return these columns; categories that no row of the model has become fingerprints."""
        categories = {
            feature: found.held_by(engine_model, feature)
            for feature, found in self.categories.items()
        }
        return replace(self, categories=categories)

    def to_plain(self) -> dict[str, Any]:
        """Return the content as plain values, which can be read without this class."""
        return {
            "names": None if self.names is None else self.names.tolist(),
            "n_features": self.n_features,
            "categories": {
                feature: categories.to_plain() for feature, categories in self.categories.items()
            },
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Columns:
        """Return the columns for a result of `to_plain`."""
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
        """The number of categories of each categorical column."""
        return {feature: len(found) for feature, found in self.categories.items()}

    def encode(self, table: Table, copies: Copies | None = None) -> AnyTable:
        """Return the engine's matrix for a table with these columns.

        A new matrix is registered in `copies`; the caller's own matrix is not.
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
                    matrix = matrix.copy()  # the original belongs to the caller
                matrix[:, feature] = codes
        return matrix

    def _encode_sparse(self, table: Table) -> AnyTable:
        # Category 0 need not be the value 0, so all cells of such a column are stored.
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
        # Columns are written one by one, so each is contiguous.
        matrix = np.empty((len(columns), table.n_rows), np.float32 if single else np.float64).T
        for feature, column in enumerate(columns):
            matrix[:, feature] = column
        _check_finite(matrix, table)
        return matrix

    def _check_columns(self, table: Table) -> None:
        if table.n_features != self.n_features:
            raise ValueError(
                f"{table.argument} has {table.n_features} features, but {self.n_features} "
                "were passed to fit. Pass the same columns in the same order."
            )
        if self.names is None or table.names is None:
            return
        if not np.array_equal(self.names, table.names):
            raise ValueError(
                f"{table.argument} does not have the feature names of fit, or has them in another "
                "order. Pass the same columns in the same order."
            )


def _learn_categories(table: Table, feature: int) -> Categories:
    categories = Categories.learn(table.column(feature))
    if categories.kind == "numbers" and not np.isfinite(categories.values).all():
        raise ValueError(_infinity_in(table, feature))
    check_few(categories, table.label(feature))
    return categories


def check_few(categories: Categories, label: str) -> None:
    """Raise if a column has more categories than the engine has codes."""
    if len(categories) > MOST_CATEGORIES:
        raise ValueError(
            f"{label} has {len(categories)} categories, but at most {MOST_CATEGORIES} are "
            "possible. Merge rare categories, or drop the column."
        )


def _numbers(table: Table, feature: int) -> NDArray[Any]:
    """Return a numeric column; raise if it does not contain numbers."""
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
            f"{label} contains a value of type {type(odd).__name__}, which is neither a number nor "
            "of a category dtype. Convert the column to numbers, or to categories (pandas: "
            ".astype('category'), polars: .cast(pl.Categorical), pyarrow: .dictionary_encode()), "
            "or list it in categorical_features."
        )
    try:
        return column.astype(np.float64)
    except TypeError as error:
        raise TypeError(
            f"{label} contains values that are not numbers: {error}. Convert the column."
        ) from error


def _is_text_or_time(value: Any) -> bool:
    return (
        isinstance(value, str | bytes | np.datetime64 | np.timedelta64)
        or hasattr(value, "isoformat")
        or hasattr(value, "total_seconds")
    )


def _check_finite(matrix: AnyTable, table: Table) -> None:
    """Raise if a value is infinite.

    The extremes are computed first, because isinf needs a temporary array; fmin and fmax ignore
    NaN.
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
        f"{table.label(feature)} contains infinity. Replace it by NaN for a missing value, or by a "
        "large finite number."
    )


def find_categorical(table: Table, categorical_features: Any) -> list[int]:
    """Return the columns that the parameter `categorical_features` selects."""
    if categorical_features is None:
        return []
    if isinstance(categorical_features, str):
        # "from_dtype": the columns of a matrix never have a category dtype.
        columns = table.columns if isinstance(table.columns, list) else []
        return [feature for feature, column in enumerate(columns) if isinstance(column, Coded)]
    asked = np.asarray(categorical_features)
    if asked.dtype == bool:
        if asked.shape != (table.n_features,):
            raise ValueError(
                f"categorical_features is a mask of shape {asked.shape}, but X has "
                f"{table.n_features} features. Pass one boolean per feature."
            )
        return [int(feature) for feature in np.flatnonzero(asked)]
    found = {find_feature(feature, table, "categorical_features") for feature in asked.tolist()}
    return sorted(found)
