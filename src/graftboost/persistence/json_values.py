"""Encode Python values as JSON and decode them: labels, categories and parameters.

A value that JSON does not support is encoded as an object with one entry, named after its kind. No
other value becomes an object, so the encoding is unambiguous, and nothing that is read can refer to
code.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

DTYPE_KINDS = "biufUOmM"
# Numpy's notation of these types. Numpy accepts much else, some of which it evaluates as Python.
DTYPE = re.compile(rf"[<>|=][{DTYPE_KINDS}](0|[1-9]\d{{0,4}})?(\[\d*[a-zA-Z]+\])?")


@dataclass(frozen=True)
class Forgotten:
    """A fingerprint of a value that is no longer stored; it identifies the value if it returns."""

    fingerprint: str

    @classmethod
    def of(cls, value: Any) -> Forgotten:
        """Return the fingerprint of a value."""
        if isinstance(value, int | float | np.integer | np.floating) and value == value // 1:
            value = int(value)  # 1, 1.0 and True are equal
        text = json.dumps(encode(value, "a category"))
        return cls(hashlib.sha256(text.encode()).hexdigest())


def forget_unheld(values: Iterable[Any], held: Iterable[Any]) -> list[Any]:
    """Return values, with those that are not held replaced by their fingerprints.

    A value of a type that `encode` does not support has no fingerprint and is kept.

    Examples
    --------
    >>> forget_unheld(["Ulm", "Bonn"], held=[1, 0])  # doctest: +ELLIPSIS
    ['Ulm', Forgotten(fingerprint='...')]
    """
    return [
        value if is_held or isinstance(value, Forgotten) else _forgotten(value)
        for value, is_held in zip(values, held, strict=False)
    ]


def _forgotten(value: Any) -> Any:
    try:
        return Forgotten.of(value)
    except TypeError:
        return value


def read_json(text: bytes | str) -> Any:
    """Return the value of JSON text; raises ValueError for text that is not standard JSON.

    Python's own reader accepts NaN, infinities and numbers that overflow to infinity, none of which
    can be written again.

    Examples
    --------
    >>> read_json("[1, 2.5]")
    [1, 2.5]
    >>> read_json("1e999")
    Traceback (most recent call last):
    ValueError: a number is not finite
    """
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def encode(value: Any, what: str) -> Any:
    """Return a value in a form that JSON supports; error messages call it `what`.

    Examples
    --------
    >>> encode({"a": [1, float("inf")], 7: None}, "bin_edges")
    {'dict': [['a', [1, {'float': 'inf'}]], [7, None]]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list | tuple):
        return [encode(item, what) for item in value]
    if isinstance(value, Mapping):
        return {"dict": [[encode(k, what), encode(v, what)] for k, v in value.items()]}
    if isinstance(value, np.ndarray):
        return _encode_array(value, what)
    if getattr(value, "nanosecond", 0):
        raise TypeError(
            f"{what}: a time with nanoseconds cannot be stored in a file. Round it to microseconds."
        )
    for kind, (types, written, _) in KINDS.items():
        if isinstance(value, types):
            return {kind: written(value)}
    if isinstance(value, np.generic):
        return encode(value.item(), what)
    raise TypeError(
        f"{what}: a value of type {type(value).__name__} cannot be stored in a file. Use numbers, "
        "text or dates, or save the model with pickle."
    )


def decode(value: Any) -> Any:
    """Return the value for a result of `encode`; raises ValueError for anything else."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError("an encoded value does not have exactly one kind")
    [(kind, content)] = value.items()
    try:
        if kind == "dict":
            return {_hashable(decode(key)): decode(item) for key, item in content}
        if kind == "array":
            return _decode_array(content)
        if kind in KINDS:
            return KINDS[kind][2](content)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"an encoded value of kind {kind!r} is invalid") from error
    raise ValueError("an encoded value is of an unknown kind")


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def _encode_array(array: np.ndarray[Any, Any], what: str) -> Any:
    if array.dtype.kind not in DTYPE_KINDS:
        raise TypeError(
            f"{what}: an array of type {array.dtype} cannot be stored in a file. Use numbers, text "
            "or dates, or save the model with pickle."
        )
    values = array if array.dtype.kind in "mM" else array.tolist()
    if array.dtype.kind in "mM":
        values = array.astype(np.int64).tolist()
    return {"array": [array.dtype.str, encode(values, what)]}


def _decode_array(content: Any) -> np.ndarray[Any, Any]:
    name, values = content
    if not isinstance(name, str) or not DTYPE.fullmatch(name):
        raise ValueError("an array is of an unknown type")
    dtype = np.dtype(name)
    decoded = decode(values)
    if dtype.kind != "O":
        return np.array(decoded, dtype=np.int64 if dtype.kind in "mM" else dtype).astype(dtype)
    if not isinstance(decoded, list):
        raise ValueError("an array of objects is not a list")
    objects = np.empty(len(decoded), dtype=object)
    objects[:] = decoded
    return objects


def _write_datetime64(value: Any) -> list[Any]:
    unit, count = np.datetime_data(value.dtype)
    return [unit, count, int(value.astype(np.int64))]


# For each kind: its types, how it is encoded, and how it is decoded. A datetime is also a date, so
# it comes first.
KINDS: dict[str, tuple[tuple[type, ...], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "float": ((), repr, float),
    "forgotten": ((Forgotten,), lambda value: value.fingerprint, Forgotten),
    "bytes": ((bytes,), lambda value: value.hex(), bytes.fromhex),
    "decimal": ((Decimal,), str, Decimal),
    "datetime64": (
        (np.datetime64,),
        _write_datetime64,
        lambda content: np.datetime64(content[2], (content[0], content[1])),
    ),
    "timedelta64": (
        (np.timedelta64,),
        _write_datetime64,
        lambda content: np.timedelta64(content[2], (content[0], content[1])),
    ),
    "datetime": (
        (datetime.datetime,),
        lambda value: value.isoformat(),
        datetime.datetime.fromisoformat,
    ),
    "date": ((datetime.date,), lambda value: value.isoformat(), datetime.date.fromisoformat),
    "time": ((datetime.time,), lambda value: value.isoformat(), datetime.time.fromisoformat),
}
