"""Categorical columns: the categories of a feature, and the encoding of a column.

Categories are identified by their values and not by the codes of a data frame, because codes
depend on the frame, the order of its rows, and the library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from graftboost.input.distinct_values import code_integers
from graftboost.persistence.json_values import Forgotten, forget_unheld

if TYPE_CHECKING:
    from graftboost._engine import EngineModel

# The engine has 65,536 codes per feature; two of them are "missing" and "unseen".
MOST_CATEGORIES = 65_534


@dataclass(frozen=True)
class Coded:
    """A column with a category dtype: a code per row, -1 for missing, and the values of codes."""

    codes: NDArray[np.signedinteger[Any]]
    values: list[Any]

    @classmethod
    def read(cls, series: nw.Series[Any]) -> Coded:
        """Read the codes of a series, without converting them to values."""
        native = series.to_native()
        if nw.dependencies.is_polars_series(native):
            # The categories of an Enum are declared, so they depend on no row.
            declared = series.dtype.categories if isinstance(series.dtype, nw.Enum) else None
            return cls._read_polars(native, declared)
        if nw.dependencies.is_pyarrow_chunked_array(native):
            return cls._read_pyarrow(native)
        return cls(native.cat.codes.to_numpy(), native.cat.categories.tolist())

    @classmethod
    def _read_polars(cls, series: Any, declared: Sequence[str] | None) -> Coded:
        codes = series.to_physical().cast(int).fill_null(-1).to_numpy()
        if declared is not None:
            return cls(codes, list(declared))
        # The process shares the codes of all Categoricals; only codes in this column are used.
        present = series.drop_nulls().unique()
        values: list[Any] = [None] * (int(codes.max(initial=-1)) + 1)
        for code, value in zip(present.to_physical().to_list(), present.to_list(), strict=True):
            values[code] = value
        return cls(codes, values)

    @classmethod
    def _read_pyarrow(cls, chunked: Any) -> Coded:
        chunks = chunked.unify_dictionaries().chunks
        codes = [chunk.indices.cast("int64").fill_null(-1).to_numpy() for chunk in chunks]
        return cls(np.concatenate(codes), chunks[-1].dictionary.to_pylist())


# A column of X: numbers, objects (None where missing), or codes with their values.
Column = NDArray[Any] | Coded


class Categories:
    """The categories of one feature, in an order that depends only on their values.

    Parameters
    ----------
    values : list
        Distinct values without missing values. They are sorted.

    Examples
    --------
    >>> sizes = Categories.learn(np.array(["S", None, "L", "S"], dtype=object))
    >>> sizes.values
    ['L', 'S']
    >>> sizes.encode(np.array(["L", "XL", None], dtype=object), "size").tolist()
    [0.0, 2.0, nan]
    """

    def __init__(self, values: list[Any]) -> None:
        self.values = _sorted(values)

    @classmethod
    def restored(cls, values: list[Any]) -> Categories:
        """Return saved categories in their order; some may be fingerprints."""
        categories = cls([])
        categories.values = values
        return categories

    @classmethod
    def learn(cls, column: Column) -> Categories:
        """Return the categories that the dtype of a column declares, or else those that occur."""
        if isinstance(column, Coded):
            return cls(list(dict.fromkeys(v for v in column.values if not is_missing(v))))
        if column.dtype == object:
            return cls(list(dict.fromkeys(v for v in column.tolist() if not is_missing(v))))
        present = np.ascontiguousarray(column)
        if np.isnan(present.min(initial=0)):
            present = present[~np.isnan(present)]
        coded = code_integers(present)
        return cls((np.unique(present) if coded is None else coded[1]).tolist())

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> str:
        """The type of the values: "numbers", "text", "mixed", or "" if there are none."""
        return _kind(list(self._positions))

    @cached_property
    def are_own_codes(self) -> bool:
        """Whether the values are 0, 1, 2, ..., so that columns need no encoding."""
        return (
            not self._forgotten and self.kind == "numbers" and self.values == list(range(len(self)))
        )

    def encode(self, column: Column, label: str) -> NDArray[Any]:
        """Return the index of each row's category; len(self) if unseen, NaN if missing.

        Error messages call the column `label`.
        """
        if isinstance(column, Coded):
            self._check_kind(column.values, label)
            # The last entry is for code -1, which is a missing value.
            indices = np.array([*map(self._index, column.values), math.nan], dtype=np.float32)
            if not np.array_equal(indices[:-1], np.arange(len(column.values))):
                return indices.take(column.codes)
            # Most often, codes are indices already. Converting them is six times as fast.
            own = column.codes.astype(np.float32)
            if column.codes.min(initial=0) < 0:
                own[column.codes < 0] = math.nan
            return own
        if column.dtype == object:
            distinct = dict.fromkeys(column.tolist())
            self._check_kind(list(distinct), label)
            index = {value: self._index(value) for value in distinct}
            return np.array([index[value] for value in column.tolist()], dtype=np.float32)
        if self.kind != "numbers":
            self._check_kind(column[~np.isnan(column)][:1].tolist(), label)
        return column if self.are_own_codes else self._encode_numbers(column)

    def _encode_numbers(self, column: NDArray[Any]) -> NDArray[np.float32]:
        column = np.ascontiguousarray(column)
        if self._table is None:
            known = np.array(list(self._positions), dtype=np.float64)
            position = np.searchsorted(known, column)
            codes = np.append(list(self._positions.values()), 0).astype(np.float32)[position]
            unknown = np.append(known, np.nan)[position] != column
        else:
            low, table = self._table
            inside = (column >= low) & (column < low + len(table))
            position = np.where(inside, column, low).astype(np.intp)
            unknown = position != column  # out of range, or not an integer
            position -= low
            codes = table[position]
        if unknown.any():
            codes[unknown] = np.where(np.isnan(column[unknown]), np.nan, len(self))
        if self._forgotten:
            for value in np.unique(column[codes == len(self)]).tolist():
                codes[column == value] = self._index(value)
        return codes

    @cached_property
    def _table(self) -> tuple[int, NDArray[np.float32]] | None:
        """The smallest category and a table of codes up to the largest, if they are integers."""
        values = np.array(list(self._positions)) if self.kind == "numbers" else np.empty(0)
        if code_integers(values) is None:
            return None
        least = int(values[0])
        table = np.full(int(values[-1]) - least + 1, len(self), dtype=np.float32)
        table[values.astype(np.intp) - least] = list(self._positions.values())
        return least, table

    def _index(self, value: Any) -> float:
        if is_missing(value):
            return math.nan
        position = self._positions.get(value)
        if position is None and self._forgotten:
            position = self._forgotten.get(Forgotten.of(value))
        return len(self) if position is None else position

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {v: i for i, v in enumerate(self.values) if not isinstance(v, Forgotten)}

    @cached_property
    def _forgotten(self) -> dict[Forgotten, int]:
        return {v: i for i, v in enumerate(self.values) if isinstance(v, Forgotten)}

    def _check_kind(self, values: list[Any], label: str) -> None:
        """Raise if the column holds text and the categories are numbers, or the reverse."""
        kind = _kind([value for value in values if not is_missing(value)])
        if {self.kind, kind} == {"numbers", "text"}:
            raise ValueError(
                f"{label} contains {kind}, but its categories in fit were {self.kind}. Pass "
                f"{self.kind}."
            )

    def to_plain(self) -> dict[str, Any]:
        """Return the values, and the fingerprints of forgotten ones, as plain values."""
        return {
            "values": [None if isinstance(v, Forgotten) else v for v in self.values],
            "forgotten": {i: value.fingerprint for value, i in self._forgotten.items()},
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Categories:
        """Return the categories for a result of `to_plain`."""
        values = list(plain["values"])
        for position, fingerprint in plain["forgotten"].items():
            values[position] = Forgotten(fingerprint)
        return cls.restored(values)

    def held_by(self, engine_model: EngineModel, feature: int) -> Categories:
        """Return these categories; those that no row of an engine model has become fingerprints."""
        if not engine_model.updatable:
            return self  # it has no rows
        values = forget_unheld(self.values, engine_model.held_codes(feature)[1:])
        return self if values == self.values else Categories.restored(values)

    def __getstate__(self) -> list[Any]:
        return self.values

    def __setstate__(self, values: list[Any]) -> None:
        self.values = values


def is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, or the null value of a library."""
    if value is None:
        return True
    if isinstance(value, str | int):
        return False
    # NaN and NaT are unequal to themselves; comparisons with pandas' NA return NA.
    different = value != value
    return different is value or different is True or different is np.True_


def _kind(values: list[Any]) -> str:
    if not values:
        return ""
    if all(isinstance(value, str) for value in values):
        return "text"
    return "numbers" if all(isinstance(value, Real) for value in values) else "mixed"


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # values of different types cannot be compared
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
