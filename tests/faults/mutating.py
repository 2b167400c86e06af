"""Mutations of the files of a store.

A resealed mutation has valid checksums, as an attacker who knows the format can make it. A damaged
file has the previous checksums, as after a disk error.
"""

from __future__ import annotations

import copy
import json
import random
import struct
import zlib
from typing import Any

import numpy as np

from graftboost.persistence import file_format
from graftboost.persistence.file_format import InvalidFileError
from graftboost.persistence.pieces import Pieces
from graftboost.store import Receipt

NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 3, 7, 127, 255, 256, 2**15, 2**16, 2**31 - 1, -(2**31), 2**32, 2**53, 2**62),
    *(2**63 - 1, -(2**63), 2**64, 10**30, 1e308, -1e308, 1e-308, 0.5, -0.0),
]
TEXTS = ["", "a", "0", "update", "refit", "create", "\x00", "\ud800", "x" * 5000, "nan", "uint8"]
VALUES: list[Any] = [*NUMBERS, *TEXTS, None, True, False, [], {}, [[]], [None], {"array": 3}]
FLOATS = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, -1.0, 0.0, 0.5, 7.0, 1e9]
# Text that JSON parsers may fail on, inserted as it is.
RAW = [
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 5000,
    b"[" * 3000,
    b'{"a":' * 3000,
    b'"\xff"',
    b"\x00",
]
SHORT_RAW = 20_000


# --- headers --------------------------------------------------------------------------------------


def change_json(value: Any, rng: random.Random) -> Any:
    """Return a copy with one changed value, at any depth."""
    value = copy.deepcopy(value)
    holder: dict[str, Any] = {"": value}
    parent, key = holder, ""
    while isinstance(parent[key], dict | list) and parent[key] and rng.random() < 0.85:
        parent = parent[key]
        key = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))  # type: ignore[assignment]
    parent[key] = _changed(parent[key], rng)
    return holder[""]


def _changed(value: Any, rng: random.Random) -> Any:
    if rng.random() < 0.5:
        return rng.choice(VALUES)
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return rng.choice([value + 1, value - 1, -value, value * 1000, float(value), str(value)])
    if isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return rng.choice([value[:at], value + value, value[:at] + "0" + value[at + 1 :], [value]])
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        kept = value[:at] + value[at + 1 :]
        return rng.choice([kept, [*value, value[at]], value[::-1], [*value, rng.choice(VALUES)]])
    if isinstance(value, dict) and value:
        name = rng.choice(list(value))
        others = {key: item for key, item in value.items() if key != name}
        return rng.choice([others, {**value, "more": 1}, {**others, f"{name}x": value[name]}])
    return [value] * rng.randrange(1, 400)


# --- arrays ---------------------------------------------------------------------------------------


def change_arrays(arrays: dict[str, Any], rng: random.Random) -> None:
    """Change, add or remove an array."""
    if not arrays:
        arrays["more"] = np.zeros(3)
        return
    name, other = rng.choice(list(arrays)), rng.choice(list(arrays))
    array = np.array(arrays[name])
    match rng.randrange(8):
        case 0:
            del arrays[name]
        case 1:
            arrays[name], arrays[other] = arrays[other], arrays[name]
        case 2:
            arrays[name] = array[: rng.randrange(len(array) + 1)]
        case 3:
            arrays[name] = np.concatenate([array, array[: rng.randrange(1, 5)]])
        case 4:
            dtype = np.dtype(rng.choice(file_format.DTYPES))
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(dtype)
        case _:
            for _ in range(rng.randrange(1, 4)):
                _change_element(array, rng)
            arrays[name] = array


def _change_element(array: np.ndarray, rng: random.Random) -> None:
    if not len(array):
        return
    at = rng.randrange(len(array))
    size = array.dtype.itemsize
    cell = array.view(np.uint8)[at * size : (at + 1) * size]
    match rng.randrange(4):
        case 0:
            array[at] = array[rng.randrange(len(array))]
        case 1:
            cell[rng.randrange(size)] ^= np.uint8(1 << rng.randrange(8))
        case 2:
            cell[:] = np.frombuffer(rng.randbytes(size), dtype=np.uint8)
        case 3 if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array[at] = rng.choice(FLOATS)
        case 3:
            number = int(rng.choice([n for n in NUMBERS if isinstance(n, int)]))
            cell[:] = np.frombuffer((number % 256**size).to_bytes(size, "little"), dtype=np.uint8)


# --- containers -----------------------------------------------------------------------------------


def resealed(data: bytes, rng: random.Random) -> bytes:
    """Return a changed container with valid checksums."""
    try:
        found = file_format.loads(data, "the file")
    except InvalidFileError:  # it has been mutated before
        return flipped(data, rng) if data else data
    header, arrays = found.header, dict(found.arrays)
    kind = rng.randrange(10)
    if kind == 0:
        return _with_raw(header, arrays, rng)
    if kind <= 4:
        header = change_json(header, rng)
    elif kind == 5 and isinstance(header.get("receipt"), dict):
        header["receipt"] = _resealed_receipt(header["receipt"], rng)
    else:
        change_arrays(arrays, rng)
    if rng.random() < 0.2:
        change_arrays(arrays, rng)
    if not isinstance(header, dict):
        header = {"header": header}
    try:
        return _packed(header, arrays)
    except (ValueError, TypeError, OverflowError):  # values that cannot be stored in a file
        return data[: rng.randrange(len(data))]


def _packed(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    return file_format.dumps(header, {name: Pieces.of(array) for name, array in arrays.items()})


def _resealed_receipt(receipt: dict[str, Any], rng: random.Random) -> Any:
    """Return a changed receipt with a valid hash."""
    changed = change_json(receipt, rng)
    try:
        return {**changed, "hash": Receipt(**changed).computed_hash()}
    except (TypeError, AttributeError, ValueError):
        return changed


def _with_raw(header: dict[str, Any], arrays: dict[str, Any], rng: random.Random) -> bytes:
    """Return a container whose header contains invalid or extreme JSON."""
    raw = rng.choice(RAW)
    place = "#" * len(raw)
    name = rng.choice([*header, "more"])
    data = bytearray(_packed({**header, name: place}, arrays))
    text = json.dumps(place).encode()
    at = data.index(text)
    data[at : at + len(text)] = raw.ljust(len(text))
    magic, version, _, header_size, size = file_format.PREFIX.unpack_from(data)
    checksum = zlib.crc32(data[file_format.PREFIX.size : file_format.PREFIX.size + header_size])
    file_format.PREFIX.pack_into(data, 0, magic, version, checksum, header_size, size)
    return bytes(data)


def records_of(journal: bytes) -> list[bytes]:
    """Return the records of a journal."""
    records = []
    while journal:
        size = file_format.PREFIX.unpack_from(journal)[-1]
        records.append(journal[:size])
        journal = journal[size:]
    return records


# --- damage ---------------------------------------------------------------------------------------


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Return the content with a few bits flipped."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    """Return the beginning of the content."""
    return data[: rng.randrange(len(data))]


def overwritten(data: bytes, rng: random.Random) -> bytes:
    """Return the content with some bytes replaced by zeros or random bytes."""
    begin = rng.randrange(len(data))
    size = min(rng.choice([1, 8, 64, 512, 4096]), len(data) - begin)
    other = bytes(size) if rng.random() < 0.5 else rng.randbytes(size)
    return data[:begin] + other + data[begin + size :]


def with_lying_length(data: bytes, rng: random.Random) -> bytes:
    """Return a container with a wrong size of itself or of its header."""
    changed = bytearray(data)
    at = file_format.PREFIX.size - rng.choice([8, 16])
    size = struct.unpack_from("<Q", data, at)[0]
    other = rng.choice([0, 1, size - 1, size + 1, size * 2, 2**31, 2**40, 2**63, 2**64 - 1])
    struct.pack_into("<Q", changed, at, other)
    return bytes(changed)


def change_lines(data: bytes, rng: random.Random) -> bytes:
    """Return a file of receipts with a changed, additional or missing line."""
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        case 2:
            lines[at] = rng.choice(RAW) + b"\n"
        case 3:
            lines[at] = json.dumps(change_json(json.loads(lines[at]), rng)).encode() + b"\n"
        case 4:
            lines[at] = json.dumps(_resealed_receipt(json.loads(lines[at]), rng)).encode() + b"\n"
        case 5:
            lines[at:] = [lines[at].replace(b"\n", b"\r"), *lines[at:]]
    return b"".join(lines)
