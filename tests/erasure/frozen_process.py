"""The memory of this process at one moment.

A process that searches its own memory allocates some, and overwrites traces in freed memory before
it finds them. A forked process has the same memory, does not change it, and can be read from here.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Mapping(NamedTuple):
    """A part of the address space.

    `name` is the path of a file, ``[heap]``, ``[stack]`` or empty.
    """

    begin: int
    end: int
    name: str


@contextlib.contextmanager
def freeze() -> Iterator[FrozenProcess]:
    """Provide a copy of this process as it is now."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork, and threads
        child = os.fork()
    if child == 0:
        try:  # a signal may raise
            os.close(writing)
            os.read(reading, 1)  # returns only if the parent ends without killing this process
        finally:
            os._exit(0)
    os.close(reading)
    try:
        with io.FileIO(f"/proc/{child}/mem") as memory:
            yield FrozenProcess(Path(f"/proc/{child}"), memory)
    finally:
        os.close(writing)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


class FrozenProcess:
    """A process that does nothing; use `freeze`.

    Parameters
    ----------
    folder : Path
        What /proc tells about it.
    memory : FileIO
        Its memory.
    """

    def __init__(self, folder: Path, memory: io.FileIO) -> None:
        self._folder = folder
        self._memory = memory

    def mappings(self) -> Iterator[Mapping]:
        """List what can be read and written."""
        for line in (self._folder / "maps").read_text().splitlines():
            span, rights, _, _, _, *name = line.split(maxsplit=5)
            if rights.startswith("rw"):
                begin, end = (int(address, 16) for address in span.split("-"))
                yield Mapping(begin, end, "".join(name))

    def written(self, mapping: Mapping) -> Iterator[tuple[int, int]]:
        """Find where memory was written to; much is allocated that never was."""
        page = mmap.PAGESIZE
        with (self._folder / "pagemap").open("rb", buffering=0) as pages:
            pages.seek(mapping.begin // page * 8)
            content = pages.read((mapping.end - mapping.begin) // page * 8)
        # The two upper bits say that a page is in memory, or was swapped out.
        used = np.frombuffer(content, dtype="<u8") >> np.uint64(62) != 0
        steps = np.diff(np.concatenate([[0], used, [0]]).astype(np.int8))
        begins, ends = np.flatnonzero(steps > 0), np.flatnonzero(steps < 0)
        yield from zip(
            (mapping.begin + page * begins).tolist(),
            (mapping.begin + page * ends).tolist(),
            strict=True,
        )

    def read(self, address: int, into: np.ndarray) -> bool:
        """Fill an array with what is at an address; returns whether all of it could be read."""
        with contextlib.suppress(OSError):
            self._memory.seek(address)
            return self._memory.readinto(into.data) == len(into)
        return False
