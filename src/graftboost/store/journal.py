"""Changes, one after the other, in a file that only grows.

Each is a container of its own (see `graftboost.container`), so each has its length and checksums. A
crash can leave a part of the last one behind; whoever writes next cuts it off. Whether what is not
whole was such a part, or a change that was made, only the receipts tell (see `receipt_log`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graftboost import container, disk
from graftboost.container import Arrays, Container, InvalidFileError, NewerFileError


class Journal:
    """The changes since a model was written.

    Parameters
    ----------
    path : Path
        The file; it need not be there.

    Attributes
    ----------
    size : int
        Bytes of all changes that are known.
    flaw : str
        Why the file could not be read further.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.flaw = ""

    def read(self) -> Iterator[Container]:
        """Yield the changes that are whole, from the beginning to the first that is not."""
        self.size, self.flaw = 0, f"{self.path} ends before it. Take it from a backup."
        try:
            number = container.open_regular(self.path)
        except FileNotFoundError:
            self.flaw = f"{self.path} is missing. Take it from a backup."
            return
        try:
            end = os.fstat(number).st_size
            while self.size < end:
                try:
                    found = container.load_at(number, self.size, end, str(self.path))
                    found.verify()
                except NewerFileError:
                    raise
                except InvalidFileError as error:
                    self.flaw = str(error)
                    return
                yield found
                self.size += found.size
        finally:
            os.close(number)

    def append(
        self, header: Mapping[str, Any], arrays: Arrays, permissions: disk.Permissions
    ) -> None:
        """Write a change, which is on the disk when this returns; fails as `disk.append` does."""
        with container.in_memory(header, arrays) as data:
            disk.append(self.path, data, self.size, permissions)
            self.size += len(data)

    def take_back(self, size: int) -> None:
        """Cut off what was written since the journal ended there; fails as `disk.cut` does."""
        disk.cut(self.path, size)
        self.size = size
