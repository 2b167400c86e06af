"""The journal: an append-only file of the changes since the model was written.

Each change is stored in the format of `graftboost.persistence.file_format` and has its own length
and checksums. A crash can leave an incomplete change at the end, which the next writer removes. The
receipts tell whether an incomplete record is such a remainder or a damaged change (see
`receipt_log`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graftboost.persistence import atomic_file, file_format
from graftboost.persistence.file_format import Container, InvalidFileError, NewerFileError
from graftboost.persistence.pieces import Arrays


class Journal:
    """The changes since the model was written.

    Parameters
    ----------
    path : Path
        The file; it may be missing.

    Attributes
    ----------
    size : int
        The number of bytes of all known changes.
    flaw : str
        Why the file could not be read further.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.flaw = ""

    def read(self) -> Iterator[Container]:
        """Yield the changes from the beginning up to the first incomplete or damaged one."""
        self.size, self.flaw = 0, f"{self.path} ends before it. Restore the store from a backup."
        try:
            number = file_format.open_regular(self.path)
        except FileNotFoundError:
            self.flaw = f"{self.path} is missing. Restore the store from a backup."
            return
        try:
            end = os.fstat(number).st_size
            while self.size < end:
                try:
                    found = file_format.load_at(number, self.size, end, str(self.path))
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
        self, header: Mapping[str, Any], arrays: Arrays, permissions: atomic_file.Permissions
    ) -> None:
        """Append a change and flush it to the disk; raises what `atomic_file.append` raises."""
        with file_format.in_memory(header, arrays) as data:
            atomic_file.append(self.path, data, self.size, permissions)
            self.size += len(data)

    def take_back(self, size: int) -> None:
        """Truncate the journal to an earlier size; raises what `atomic_file.cut` raises."""
        atomic_file.cut(self.path, size)
        self.size = size
