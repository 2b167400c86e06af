"""Changes, one after the other, in a file that only grows.

Each is a container of its own (see `graftboost.container`), so each has its length and checksums. A
crash can leave half of the last one behind; whoever writes next cuts it off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graftboost import container, disk
from graftboost.container import Arrays, Container, InvalidFileError, NewerFileError


class Journal:
    """The changes since a model was written.

    Parameters
    ----------
    path : Path
        The file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0  # of all changes that are whole

    def read(self) -> Iterator[Container]:
        """Yield the changes that are whole, from the beginning.

        Raises
        ------
        InvalidFileError
            If one that is not the last is damaged: that is no crash's doing.
        """
        self.size = 0
        try:
            data = np.fromfile(self.path, dtype=np.uint8)
        except FileNotFoundError:
            return
        while self.size < len(data):
            rest = data[self.size :]
            try:
                found = container.loads(rest[: _size_of(rest, self.path)].data, str(self.path))
                found.verify()
            except NewerFileError:
                raise
            except InvalidFileError:
                if _is_followed(rest):
                    raise
                return
            yield found
            self.size += found.size

    def append(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        """Write a change, which is on the disk when this returns."""
        data = container.dumps(header, arrays)
        disk.append(self.path, data, self.size)
        self.size += len(data)


def _size_of(data: np.ndarray[Any, np.dtype[np.uint8]], path: Path) -> int:
    if len(data) < container.PREFIX.size:
        raise container.damaged(str(path), "it ends in the middle of a change")
    return container.size_of(data, str(path))


def _is_followed(data: np.ndarray[Any, np.dtype[np.uint8]]) -> bool:
    """Tell whether another change begins somewhere after the one that is damaged."""
    return container.MAGIC in data[len(container.MAGIC) :].tobytes()
