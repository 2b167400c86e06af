r"""The format of all files: a header in JSON, and arrays of numbers.

::

    0    8 bytes    b"\x89GRAFT\r\n"
    8    uint32     version of the format
    12   uint32     CRC-32 of the header
    16   uint64     bytes of the header
    24   uint64     total bytes
    32   ...        the header: JSON, UTF-8
         ...        arrays, each aligned to 64 bytes, in the order of the header

Numbers are little-endian. The header's "arrays" maps the name of each array to its type, first
byte, length in elements, and CRC-32 as eight hexadecimal digits. Nothing in a file refers to code.
"""

from __future__ import annotations

import contextlib
import io
import json
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.persistence import atomic_file
from graftboost.persistence.json_values import read_json
from graftboost.persistence.pieces import Arrays

MAGIC = b"\x89GRAFT\r\n"
VERSION = 2
PREFIX = struct.Struct("<8sIIQQ")
ALIGNMENT = 64
DTYPES = ("uint8", "uint16", "uint32", "uint64", "int16", "int32", "int64", "float32", "float64")
ZEROS = bytes(1 << 20)
MOST_HEADER_BYTES = 1 << 30


class InvalidFileError(ValueError):
    """A file is not a graftboost file, is damaged, or has an unsupported version."""


class NewerFileError(InvalidFileError):
    """A file has a format that only other versions of graftboost support."""


def dump(file: IO[bytes], header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a header and arrays at the current position of a file.

    Parameters
    ----------
    file : binary file
        A seekable file.
    header : mapping
        Values that JSON supports, under any names except "arrays".
    arrays : mapping of str to Pieces
        The arrays.
    """
    _check_byte_order()
    table: dict[str, list[Any]] = {
        name: [str(a.dtype), 0, a.size, "0" * 8] for name, a in arrays.items()
    }
    # The positions and checksums are filled in later; the header already has its final length.
    room = len(_as_json(header, table)) + 20 * len(table)
    if room > MOST_HEADER_BYTES:
        raise ValueError(
            f"The header would have {room:,} bytes, but at most {MOST_HEADER_BYTES:,} are "
            "possible. Change fewer rows at once."
        )
    at = end = _aligned(PREFIX.size + room)
    for name, array in arrays.items():
        table[name][1] = at
        end = at + array.size * array.dtype.itemsize
        at = _aligned(end)
    start = file.tell()
    # Write the last byte first: zeros at the end of arrays are skipped, and a buffer that grows
    # would leave copies in memory.
    file.seek(start + end - 1)
    file.write(b"\0")
    for name, array in arrays.items():
        file.seek(start + table[name][1])
        table[name][3] = f"{_write_runs(file, array.runs()):08x}"
    text = _as_json(header, table).ljust(room)
    file.seek(start)
    file.write(PREFIX.pack(MAGIC, VERSION, zlib.crc32(text), len(text), end))
    file.write(text)
    file.seek(start + end)


def _as_json(header: Mapping[str, Any], table: Mapping[str, list[Any]]) -> bytes:
    text = json.dumps({**header, "arrays": table}, separators=(",", ":"), allow_nan=False)
    return text.encode()


def _aligned(at: int) -> int:
    return -(-at // ALIGNMENT) * ALIGNMENT


def _write_runs(file: IO[bytes], runs: Iterable[memoryview | int]) -> int:
    """Write bytes and skip zeros; return the checksum of both."""
    checksum = 0
    for run in runs:
        if isinstance(run, int):
            file.seek(run, os.SEEK_CUR)
            for begin in range(0, run, len(ZEROS)):
                checksum = zlib.crc32(ZEROS[: run - begin], checksum)
        else:
            file.write(run)
            checksum = zlib.crc32(run, checksum)
    return checksum


def dumps(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Return the bytes of a file."""
    file = io.BytesIO()
    dump(file, header, arrays)
    return file.getvalue()


@contextlib.contextmanager
def in_memory(header: Mapping[str, Any], arrays: Arrays) -> Iterator[memoryview]:
    """Provide the bytes of a file, which are overwritten afterwards because they may hold rows."""
    file = io.BytesIO()
    dump(file, header, arrays)
    with file.getbuffer() as data:
        try:
            yield data
        finally:
            np.frombuffer(data, dtype=np.uint8).fill(0)


def save(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Arrays,
    permissions: atomic_file.Permissions | None = None,
) -> None:
    """Write a file atomically: it has its old content or the new content, never a part of it.

    If `permissions` are given, a link at the path is replaced, not followed.
    """
    with atomic_file.replacing(Path(path), permissions) as file:
        dump(file, header, arrays)


@dataclass(frozen=True)
class Container:
    """The content of a file.

    Attributes
    ----------
    source : str
        The name of the file in error messages.
    header : dict
        The header, without the table of arrays.
    arrays : dict of str to ndarray
        The arrays, as views of the bytes that were read.
    checksums : dict of str to int
        The expected checksums of the arrays.
    size : int
        Its size in bytes.
    """

    source: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    checksums: dict[str, int]
    size: int

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Verify the checksums of the named arrays, or of all arrays."""
        for name in self.arrays if names is None else names:
            if zlib.crc32(self.arrays[name].data) != self.checksums[name]:
                raise self.invalid(f"the checksum of {name} does not match")

    def invalid(self, what: str) -> InvalidFileError:
        """Return an error that states what is wrong with this file."""
        return damaged(self.source, what)


def damaged(source: str, what: str) -> InvalidFileError:
    """Return an error for a damaged file."""
    return InvalidFileError(
        f"{source} is damaged or was modified: {what}. Restore it from a backup, or save the model "
        "again."
    )


def load(path: str | os.PathLike[str], *, links: bool = True) -> Container:
    """Map a file into memory. Pages are read when used, and changed only in memory.

    Parameters
    ----------
    path : path
        The file.
    links : bool, default=True
        Whether the path may be a symbolic link.

    Returns
    -------
    Container
        Its header and arrays.

    Raises
    ------
    InvalidFileError
        If it is not a graftboost file, or is damaged.
    """
    source = str(path)
    opener = None if links else open_regular
    with open(path, "rb", opener=opener) as file:
        size = os.fstat(file.fileno()).st_size
        if size < PREFIX.size:
            raise _too_short(source, file.read(len(MAGIC)), size)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return read(np.frombuffer(mapped, dtype=np.uint8), source)


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a regular file; links, pipes and the like raise `InvalidFileError`."""
    try:
        return atomic_file.open_regular(Path(path), flags)
    except atomic_file.NotRegularError as error:
        raise InvalidFileError(str(error)) from error


def loads(data: bytes | memoryview, source: str) -> Container:
    """Read the content of a file from bytes, which are copied."""
    if len(data) < PREFIX.size:
        raise _too_short(source, bytes(data[: len(MAGIC)]), len(data))
    aligned = _aligned_bytes(len(data))
    aligned[:] = np.frombuffer(data, dtype=np.uint8)
    return read(aligned, source)


def load_at(number: int, at: int, end: int, source: str) -> Container:
    """Read the content that begins at an offset of an open file and ends before `end`.

    Its stated length is used only after the header's checksum and the lengths of the arrays have
    been checked.
    """
    prefix = atomic_file.read(number, at, min(at + PREFIX.size, end))
    if len(prefix) < PREFIX.size:
        raise damaged(source, "it ends in the middle of a change")
    _, _, _, header_size, size = PREFIX.unpack(prefix)
    first = min(at + PREFIX.size + min(header_size, MOST_HEADER_BYTES), end)
    begins = np.frombuffer(atomic_file.read(number, at, first), dtype=np.uint8)
    _check_prefix(begins, end - at, source)
    _, table = _header(begins, source)
    if size != _end_of(table, PREFIX.size + header_size, source):
        raise damaged(source, f"its stated size of {size} bytes does not match its arrays")
    data = _aligned_bytes(size)
    data[:] = np.frombuffer(atomic_file.read(number, at, at + size), dtype=np.uint8)
    return read(data, source)


def _aligned_bytes(size: int) -> NDArray[np.uint8]:
    data = np.empty(size + ALIGNMENT, dtype=np.uint8)
    first = -data.ctypes.data % ALIGNMENT
    return data[first : first + size]


def read(data: NDArray[np.uint8], source: str) -> Container:
    """Read the content of a file from the beginning of an array of bytes."""
    _check_byte_order()
    _check_prefix(data, len(data), source)
    _, _, _, header_size, size = PREFIX.unpack(data[: PREFIX.size].tobytes())
    header, table = _header(data, source)
    arrays, checksums = {}, {}
    for name, entry in table.items():
        arrays[name], checksums[name] = _array(data[:size], name, entry, source)
    _check_apart(arrays, data, PREFIX.size + header_size, source)
    return Container(source, header, arrays, checksums, size)


def _header(data: NDArray[np.uint8], source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header, and its table of arrays."""
    _, _, checksum, header_size, _ = PREFIX.unpack(data[: PREFIX.size].tobytes())
    text = data[PREFIX.size : PREFIX.size + header_size].tobytes()
    if zlib.crc32(text) != checksum:
        raise damaged(source, "the checksum of the header does not match")
    try:
        header = read_json(text)
    except ValueError as error:
        raise damaged(source, "the header is not valid JSON, or is nested too deeply") from error
    if not isinstance(header, dict) or not isinstance(table := header.pop("arrays", None), dict):
        raise damaged(source, "the header has no arrays")
    return header, table


def _check_apart(
    arrays: dict[str, NDArray[Any]], data: NDArray[np.uint8], end: int, source: str
) -> None:
    """Raise if two arrays overlap, because writing to one would change the other."""
    start = data.ctypes.data
    for name, array in sorted(arrays.items(), key=lambda item: item[1].ctypes.data):
        if not array.size:
            continue
        if array.ctypes.data - start < end:
            raise damaged(source, f"{name} overlaps with what precedes it")
        end = array.ctypes.data - start + array.nbytes


def _check_prefix(data: NDArray[np.uint8], available: int, source: str) -> None:
    """Raise if the prefix is not valid for this number of bytes."""
    magic, version, checksum, header_size, size = PREFIX.unpack(data[: PREFIX.size].tobytes())
    if magic != MAGIC:
        raise InvalidFileError(f"{source} is not a graftboost file. Check the path.")
    text = data[PREFIX.size : PREFIX.size + min(header_size, len(data))]
    if version != VERSION and len(text) and zlib.crc32(text.tobytes()) == checksum:
        raise NewerFileError(
            f"{source} has version {version} of the format, but this graftboost supports only "
            f"version {VERSION}. Install the graftboost that wrote it, or a newer one."
        )
    if version != VERSION:
        raise damaged(source, f"its stated version is {version}")
    if size > available:
        raise damaged(source, f"it should have {size} bytes but has {available}")
    if header_size > min(size - PREFIX.size, MOST_HEADER_BYTES) or size < PREFIX.size:
        raise damaged(source, f"its stated header size is {header_size} bytes")


def _too_short(source: str, begins: bytes, size: int) -> InvalidFileError:
    if begins == MAGIC[: len(begins)]:
        return damaged(source, f"it has only {size} bytes")
    return InvalidFileError(f"{source} is not a graftboost file. Check the path.")


def _extent(name: str, entry: Any, source: str) -> tuple[np.dtype[Any], int, int, int]:
    """Return type, first byte, size in bytes and checksum of an array, from the table."""
    match entry:
        case [str(dtype), int(first), int(length), str(checksum)]:
            pass
        case _:
            raise damaged(source, f"the table of arrays has an invalid entry for {name}")
    if dtype not in DTYPES:
        raise damaged(source, f"{name} has the unsupported type {dtype!r}")
    if first < PREFIX.size or first % ALIGNMENT or length < 0:
        raise damaged(source, f"{name} has an invalid position or length: {first}, {length}")
    try:
        value = int(checksum, 16)
    except ValueError:
        raise damaged(source, f"{name} has an invalid checksum") from None
    number = np.dtype(dtype)
    return number, first, length * number.itemsize, value


def _array(data: NDArray[np.uint8], name: str, entry: Any, source: str) -> tuple[NDArray[Any], int]:
    dtype, first, n_bytes, checksum = _extent(name, entry, source)
    if first + n_bytes > len(data):
        raise damaged(source, f"{name} exceeds the file: {n_bytes} bytes from byte {first}")
    return data[first : first + n_bytes].view(dtype), checksum


def _end_of(table: dict[str, Any], header_end: int, source: str) -> int:
    """Return where the last array ends, or where the first would begin if there is none."""
    ends = [_aligned(header_end)]
    for name, entry in table.items():
        _, first, n_bytes, _ = _extent(name, entry, source)
        ends.append(first + n_bytes)
    return max(ends)


def _check_byte_order() -> None:
    if sys.byteorder != "little":
        raise OSError(
            "graftboost files contain little-endian numbers, but this machine is big-endian. Use a "
            "little-endian machine."
        )
