"""The receipt log: a file with one line per change, which proves that the change was made.

A change is written to the journal first, then its receipt is written to this file, and then the
call returns. This distinguishes two cases that look the same in the journal:

- A change that is incomplete in the journal and has no receipt was interrupted by a power cut or a
  kill. It was not made.
- A change that is incomplete in the journal but has a receipt was made and is lost. This is damage
  and is reported.

A change that is complete in the journal but has no receipt was made. Its receipt is added when the
store is next opened for writing.

Each line is flushed to the disk before the next one is written. A power cut can therefore damage
only the last line; a damaged line before others is reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from graftboost.persistence import atomic_file
from graftboost.persistence.file_format import InvalidFileError, open_regular
from graftboost.store.receipts import Receipt

NAME = "receipts.jsonl"


class ReceiptLog:
    """The receipts of a store, from the first to the last.

    The file is read line by line, so memory use does not grow with the number of changes.

    Parameters
    ----------
    path : Path
        The file.
    begin, size : int
        The offsets of the last known receipt.

    Attributes
    ----------
    begin, size : int
        The current offsets.
    """

    def __init__(self, path: Path, begin: int, size: int) -> None:
        self.path = path
        self.begin, self.size = begin, size

    def end(self) -> int:
        """Return the current size; raises InvalidFileError if a known receipt is missing."""
        with self._opened() as file:
            end = os.fstat(file.fileno()).st_size
            file.seek(self.size - 1)
            if end < self.size or file.read(1) != b"\n":
                raise self.damaged("it lacks the receipt that the model names")
            return end

    def read_on(self, number: int, previous: str, end: int) -> Iterator[Receipt]:
        """Yield the receipts after the last known one; each then becomes the last known one.

        Parameters
        ----------
        number, previous : int, str
            Number and hash of the last known receipt.
        end : int
            The size of the file. It may have grown since.

        Yields
        ------
        Receipt
            The next receipt. An incomplete last line is ignored.

        Raises
        ------
        InvalidFileError
            If a receipt other than the last is damaged or missing.
        """
        torn = False
        for begin, line in self._lines(self.size, end):
            try:
                receipt = Receipt.from_line(line)
                if receipt.hash != receipt.computed_hash():
                    raise ValueError("its hash does not match")
            except ValueError:
                torn = True
                continue
            number += 1
            if torn or receipt.number != number or receipt.previous != previous:
                raise self.damaged(f"receipt {number} is missing or was modified")
            previous = receipt.hash
            self.begin, self.size = begin, begin + len(line)
            yield receipt

    def read(self) -> Iterator[Receipt]:
        """Yield all known receipts.

        Raises
        ------
        InvalidFileError
            If the file is missing or a line is not a receipt.
        """
        number = 0
        for number, (_, line) in enumerate(self._lines(0, self.size), start=1):
            yield self._receipt(line, number)
        if number == 0:
            raise self.damaged("it has no receipts")

    def last(self) -> Receipt:
        """Return the last known receipt."""
        with self._opened() as file:
            file.seek(self.begin)
            return self._receipt(file.read(self.size - self.begin))

    def _receipt(self, line: bytes, number: int | None = None) -> Receipt:
        try:
            return Receipt.from_line(line)
        except ValueError as error:
            where = f"its last line, at byte {self.begin}," if number is None else f"line {number}"
            raise self.damaged(f"{where} is not a receipt: {error}") from error

    def append(self, receipt: Receipt) -> None:
        """Append a receipt and flush it to the disk; raises what `atomic_file.append` raises."""
        line = receipt.to_line()
        atomic_file.append(self.path, line, self.size)
        self.begin, self.size = self.size, self.size + len(line)

    def take_back(self, begin: int, size: int) -> None:
        """Truncate the log to an earlier size; raises what `atomic_file.cut` raises."""
        atomic_file.cut(self.path, size)
        self.begin, self.size = begin, size

    def _lines(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines between two offsets, and the offset of each."""
        with self._opened() as file:
            file.seek(begin)
            while begin < end and (line := file.readline(end - begin)):
                yield begin, line
                begin += len(line)

    def _opened(self) -> BinaryIO:
        try:
            return os.fdopen(open_regular(self.path), "rb")
        except FileNotFoundError:
            raise InvalidFileError(
                f"{self.path} is missing: the receipts of all changes are lost. Restore it from a "
                "backup."
            ) from None

    def damaged(self, what: str) -> InvalidFileError:
        """Return an error that states what is wrong with the file."""
        return InvalidFileError(
            f"{self.path} is damaged or was modified: {what}. Restore the store from a backup."
        )
