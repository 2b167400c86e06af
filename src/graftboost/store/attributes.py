"""Attributes: columns that are kept beside the rows and are not features, such as the customer.

Requests use them to select rows ("all rows of customer 17") without knowing ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.input.row_ids import NO_IDS
from graftboost.persistence.pieces import Pieces

ARRAY = "attribute"
MOST_EXACT = 2**53  # larger integers may not be exact as floats


class Attributes:
    """The attributes of each row, by its id.

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
        """Return the validated columns of rows to be added, with one value per row."""
        given = {} if values is None else {str(name): values[name] for name in values}
        if set(given) != set(self.columns):
            raise ValueError(
                f"attributes has the columns {sorted(given)}, but the store keeps "
                f"{sorted(self.columns)}. Pass one value of each of these columns per row."
            )
        checked = {name: as_column(given[name], name) for name in self.columns}
        for name, column in checked.items():
            if len(column) != n_rows:
                raise ValueError(
                    f"attributes: column {name!r} has {len(column)} values, but there are {n_rows} "
                    "rows. Pass one value per row."
                )
            # A column must not mix numbers and text: a condition would match only one of them.
            _joined(self.columns[name], column, name)
        return checked

    def add(self, ids: NDArray[np.int64], values: Mapping[str, Any]) -> None:
        """Add rows with validated values."""
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
        """Return the names and kinds of the columns for the header of a file, and their arrays."""
        if not self.columns:
            return {}, {}
        kinds, arrays = {}, {f"{ARRAY}_ids": Pieces.of(self.ids)}
        for position, (name, column) in enumerate(self.columns.items()):
            kinds[name] = "text" if column.dtype == object else str(column.dtype)
            values = column
            if column.dtype == object:
                texts = [None if value is None else value.encode() for value in column]
                lengths = [-1 if text is None else len(text) for text in texts]
                joined = b"".join(text for text in texts if text is not None)
                arrays[f"{ARRAY}_{position}_lengths"] = Pieces.of(np.array(lengths, dtype=np.int64))
                values = np.frombuffer(joined, dtype=np.uint8)
            arrays[f"{ARRAY}_{position}"] = Pieces.of(values)
        return kinds, arrays

    @classmethod
    def restore(cls, kinds: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]) -> Attributes:
        """Return the attributes for a result of `contents`; raises ValueError if it is invalid."""
        attributes = cls(list(kinds))
        if not kinds:
            return attributes
        attributes.ids = np.array(_typed(arrays, f"{ARRAY}_ids", "int64"))
        for position, (name, kind) in enumerate(kinds.items()):
            if kind not in KINDS:
                raise ValueError(f"the attribute column {name!r} is of an unknown kind")
            array = f"{ARRAY}_{position}"
            column = np.array(_typed(arrays, array, KINDS[kind]))
            if kind == "text":
                lengths = _typed(arrays, f"{array}_lengths", "int64")
                column = _texts(column.tobytes(), lengths)
            if len(column) != len(attributes.ids):
                raise ValueError(f"the attribute column {name!r} does not have one value per row")
            attributes.columns[name] = column
        return attributes


# The kinds of columns in the header of a file, and the types of their arrays.
KINDS = {"text": "uint8", "int64": "int64", "float64": "float64"}


def _typed(arrays: Mapping[str, NDArray[Any]], name: str, dtype: str) -> NDArray[Any]:
    if name not in arrays or arrays[name].dtype != dtype:
        raise ValueError(f"{name} is missing or has the wrong type")
    return arrays[name]


def _texts(data: bytes, lengths: NDArray[np.int64]) -> NDArray[Any]:
    column, at = np.empty(len(lengths), dtype=object), 0
    if len(lengths) and (lengths.min() < -1 or lengths.max() > len(data)):
        raise ValueError("a text of the attributes has an invalid length")
    for i, length in enumerate(lengths.tolist()):
        if length >= 0:
            column[i] = data[at : at + length].decode()
            at += length
    if at != len(data):
        raise ValueError("the texts of the attributes do not have their stated length")
    return column


def as_column(values: Any, name: str) -> NDArray[Any]:
    """Return values as int64, float64, or an object array of text and None."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(
            f"attributes: column {name!r} has shape {array.shape}. Pass a one-dimensional array."
        )
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
        raise ValueError(
            f"attributes: column {name!r} contains an integer that does not fit into 64 bits. Pass "
            "the column as text."
        )
    return array.astype(np.int64)


def _with_missing(values: list[Any], name: str) -> NDArray[np.float64]:
    """Return numbers and missing values as floats; raises if a number is not exact as float."""
    for value in values:
        if isinstance(value, int) and abs(value) > MOST_EXACT:
            raise ValueError(
                f"attributes: column {name!r} contains missing values and an integer above 2**53, "
                "which cannot be stored exactly. Pass the column as text."
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
            f"attributes: column {name!r} contains text that is not valid Unicode. Correct it."
        ) from error
    return text


def _joined(first: NDArray[Any], second: NDArray[Any], name: str) -> NDArray[Any]:
    """Concatenate two columns. A column without any value takes the kind of the other."""
    for one, other in ((first, second), (second, first)):
        if one.dtype == object and not any(value is not None for value in one):
            if other.dtype == object:
                break
            blank = _with_missing([None] * len(one), name) if len(one) else other[:0]
            joined = [blank, other] if one is first else [other, blank]
            return _numbers(joined, name)
    if (first.dtype == object) != (second.dtype == object):
        held, came = ("text", "numbers") if first.dtype == object else ("numbers", "text")
        raise ValueError(
            f"attributes: column {name!r} contains {held} so far, but {came} were passed. Pass "
            f"{held}."
        )
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
