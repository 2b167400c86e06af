"""Files that are whole or not there: what is done so that a power cut leaves nothing in between."""

from __future__ import annotations

import contextlib
import os
import tempfile
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
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(number, "w+b") as file:
            os.fchmod(file.fileno(), _mode_for(path))
            yield file
            flush(file)
        rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def _mode_for(path: Path) -> int:
    """Return the permissions of a file, or those that a new one would get."""
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def flush(file: IO[bytes]) -> None:
    """Have what was written to a file reach the disk."""
    file.flush()
    os.fsync(file.fileno())


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
