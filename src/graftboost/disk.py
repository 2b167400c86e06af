"""Files that are whole or not there: what is done so that a power cut leaves nothing in between."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write to, which takes the place of the one at `path` when it is complete.

    Parameters
    ----------
    path : Path
        Where it is to be. A link is followed, and the permissions of a file that was there stay.

    Yields
    ------
    binary file
        Beside the path, under another name. It is gone again if writing fails.
    """
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory. Give the path of a file.")
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a file, but a device or the like. Give the path of a file.")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    number = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(number, "w+b") as file:
            if path.exists():
                os.fchmod(number, path.stat().st_mode & 0o7777)
            yield file
            file.flush()
            flush(file.fileno())
        rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def append(path: Path, data: bytes, at: int) -> None:
    """Write to the end of a file, which is at `at`, so that it is on the disk when this returns.

    What comes after that place is cut off. If this raises, the file ends there, or, should not even
    that be possible, with a part of the data.
    """
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.ftruncate(number, at)
        try:
            write(number, data, at)
            flush(number)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(number, at)
                os.fsync(number)
            raise
    finally:
        os.close(number)
    if at == 0:  # its name may be new
        flush_directory(path.parent)


def write(number: int, data: bytes, at: int) -> None:
    """Write all of some bytes to an open file, from a place on."""
    view = memoryview(data)
    while view:
        written = os.pwrite(number, view, at)
        view, at = view[written:], at + written


def flush(number: int) -> None:
    """Have what was written to an open file reach the disk."""
    os.fsync(number)


def rename(old: Path, new: Path) -> None:
    """Give a file another name, in place of a file that has it."""
    old.replace(new)


def flush_directory(directory: Path) -> None:
    """Have the names in a directory reach the disk."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def remove(path: Path) -> None:
    """Take a file away, if it is there."""
    path.unlink(missing_ok=True)
