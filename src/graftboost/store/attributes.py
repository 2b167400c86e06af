"""Columns kept beside the rows and out of the features, such as whose the rows are.

They are what a request names ("all rows of customer 17") when it does not know ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.input.row_ids import NO_IDS
from graftboost.persistence.file_format import Pieces

ARRAY = "attribute"
MOST_EXACT = 2**53  # beyond, not every whole number is a float


class Attributes:
    """Some values for each row, by the row's id.

    Parameters
    ----------
    names : list of str
        Names of the columns.

    Examples
    --------
    >>> attributes = Attributes(["customer"])
    >>> attributes.add(np.array([0, 1, 2]), {"customer": ["ann", "bob", "ann"]})
    >>> attributes.remove(np.array([0]))
    >>> attributes.columns["customer"].tolist(), attributes.ids.tolist()
    (['bob', 'ann'], [1, 2])
    """

    def __init__(self, names: list[str]) -> None:
        self.ids: NDArray[np.int64] = NO_IDS
        self.columns: dict[str, NDArray[Any]] = {name: np.empty(0, dtype=object) for name in names}

    def __bool__(self) -> bool:
        return bool(self.columns)

    def check(self, values: Mapping[str, Any] | None, n_rows: int) -> dict[str, NDArray[Any]]:
        """Return the columns of rows to be added, a value a row; raises if one is amiss."""
        given = {} if values is None else {str(name): values[name] for name in values}
        if set(given) != set(self.columns):
            raise ValueError(
                f"attributes has the columns {sorted(given)}, but the store keeps "
                f"{sorted(self.columns)}. Pass a value of each of these for every row."
            )
        checked = {name: as_column(given[name], name) for name in self.columns}
        for name, column in checked.items():
            if len(column) != n_rows:
                raise ValueError(
                    f"attributes: column {name!r} has {len(column)} values, but there are {n_rows} "
                    "rows. Give one value for each."
                )
            # Numbers and text do not mix: a condition would find one of them only.
            _joined(self.columns[name], column, name)
        return checked

    def add(self, ids: NDArray[np.int64], values: Mapping[str, Any]) -> None:
        """Add rows, whose values have been checked."""
        self.ids = np.concatenate([self.ids, ids])
        for name, column in self.columns.items():
            self.columns[name] = _joined(column, as_column(values[name], name), name)

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Remove rows."""
        if not self.columns or not len(ids):
            return
        left = ~np.isin(self.ids, ids)
        self.ids = self.ids[left]
        self.columns = {name: column[left] for name, column in self.columns.items()}

    # --- in files ---------------------------------------------------------------------------------

    def contents(self) -> tuple[dict[str, str], dict[str, Pieces]]:
        """Return what a file's header says of the columns (name and kind), and their arrays."""
        if not self.columns:
            return {}, {}
        kinds, arrays = {}, {f"{ARRAY}_ids": Pieces.of(self.ids)}
        for place, (name, column) in enumerate(self.columns.items()):
            kinds[name] = "text" if column.dtype == object else str(column.dtype)
            values = column
            if column.dtype == object:
                texts = [None if value is None else value.encode() for value in column]
                lengths = [-1 if text is None else len(text) for text in texts]
                joined = b"".join(text for text in texts if text is not None)
                arrays[f"{ARRAY}_{place}_lengths"] = Pieces.of(np.array(lengths, dtype=np.int64))
                values = np.frombuffer(joined, dtype=np.uint8)
            arrays[f"{ARRAY}_{place}"] = Pieces.of(values)
        return kinds, arrays

    @classmethod
    def restore(cls, kinds: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]) -> Attributes:
        """Return what `contents` was called on; raises ValueError if this cannot be."""
        attributes = cls(list(kinds))
        if not kinds:
            return attributes
        attributes.ids = np.array(_typed(arrays, f"{ARRAY}_ids", "int64"))
        for place, (name, kind) in enumerate(kinds.items()):
            if kind not in KINDS:
                raise ValueError(f"the column {name!r} of attributes is of an unknown kind")
            array = f"{ARRAY}_{place}"
            column = np.array(_typed(arrays, array, KINDS[kind]))
            if kind == "text":
                lengths = _typed(arrays, f"{array}_lengths", "int64")
                column = _texts(column.tobytes(), lengths)
            if len(column) != len(attributes.ids):
                raise ValueError(f"the column {name!r} of attributes does not have a value a row")
            attributes.columns[name] = column
        return attributes


# What a file's header calls a column, and the type of its numbers in the file.
KINDS = {"text": "uint8", "int64": "int64", "float64": "float64"}


def _typed(arrays: Mapping[str, NDArray[Any]], name: str, dtype: str) -> NDArray[Any]:
    if name not in arrays or arrays[name].dtype != dtype:
        raise ValueError(f"{name} is missing, or of another type")
    return arrays[name]


def _texts(data: bytes, lengths: NDArray[np.int64]) -> NDArray[Any]:
    column, at = np.empty(len(lengths), dtype=object), 0
    if len(lengths) and (lengths.min() < -1 or lengths.max() > len(data)):
        raise ValueError("a text of the attributes has a length that cannot be")
    for i, length in enumerate(lengths.tolist()):
        if length >= 0:
            column[i] = data[at : at + length].decode()
            at += length
    if at != len(data):
        raise ValueError("the texts of the attributes are longer or shorter than they say")
    return column


def as_column(values: Any, name: str) -> NDArray[Any]:
    """Return values as int64, float64, or an object array of text and None."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"attributes: column {name!r} has shape {array.shape}. Pass a flat list.")
    if array.dtype.kind in "mM":
        missing = np.isnat(array)
        array = array.astype(str).astype(object)
        array[missing] = None
    if array.dtype.kind not in "biufUSO":
        raise ValueError(
            f"attributes: column {name!r} has dtype {array.dtype}. Use numbers, text or dates."
        )
    if array.dtype.kind in "biu":
        return _as_integers(array, name)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    found = [None if _is_missing(value) else value for value in array.tolist()]
    if all(value is None or isinstance(value, int | float) for value in found) and any(
        value is not None for value in found
    ):
        return _with_missing(found, name)
    column = np.empty(len(found), dtype=object)
    column[:] = [None if value is None else _as_text(value, name) for value in found]
    return column


def _as_integers(array: NDArray[Any], name: str) -> NDArray[np.int64]:
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"attributes: column {name!r} holds {array.max()}, which is too large.")
    return array.astype(np.int64)


def _with_missing(values: list[Any], name: str) -> NDArray[np.float64]:
    """Return numbers, some of them missing, as floats; raises if one would become another."""
    for value in values:
        if isinstance(value, int) and abs(value) > MOST_EXACT:
            raise ValueError(
                f"attributes: column {name!r} holds {value} beside missing values, which is too "
                "large to be kept exactly. Pass the column as text."
            )
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)  # NaN


def _as_text(value: Any, name: str) -> str:
    text = value if isinstance(value, str) else str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"attributes: column {name!r} holds {text!r}, which is no valid text."
        ) from error
    return text


def _joined(first: NDArray[Any], second: NDArray[Any], name: str) -> NDArray[Any]:
    """Put two columns together. One without any value is of whatever kind the other is."""
    for one, other in ((first, second), (second, first)):
        if one.dtype == object and not any(value is not None for value in one):
            if other.dtype == object:
                break
            blank = _with_missing([None] * len(one), name) if len(one) else other[:0]
            joined = [blank, other] if one is first else [other, blank]
            return _numbers(joined, name)
    if (first.dtype == object) != (second.dtype == object):
        held, came = ("text", "numbers") if first.dtype == object else ("numbers", "text")
        raise ValueError(f"attributes: column {name!r} holds {held}, but {came} came. Pass {held}.")
    if first.dtype == object:
        return np.concatenate([first, second])
    return _numbers([first, second], name)


def _numbers(columns: list[NDArray[Any]], name: str) -> NDArray[Any]:
    if len({column.dtype for column in columns}) > 1:
        columns = [
            _with_missing(column.tolist(), name) if column.dtype == np.int64 else column
            for column in columns
        ]
    return np.concatenate(columns)
