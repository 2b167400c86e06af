"""The file of receipts, a line for each change: what proves that a change was made.

A change is first written to the journal, then its receipt to this file, and only then does the call
return. So whoever opens the store can tell two things apart that look alike in the journal alone:

- a change that is not whole in the journal and has no receipt here was under way when the power
  failed, or the writer was killed. It was not made;
- a change that has a receipt here, but is not whole in the journal, was made and is lost. That is
  damage, and is reported.

A change that is whole in the journal and has no receipt here yet was made: its receipt follows when
the store is next opened for writing.

Each line is on the disk before the next one is written. So a power cut can garble the last one
only, and a garbled line that others follow is damage.
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

    It is read line by line, so the memory it takes does not grow with the number of changes.

    Parameters
    ----------
    path : Path
        The file.
    begin, size : int
        Where the last receipt that is known begins and ends.

    Attributes
    ----------
    begin, size : int
        The same, as of now.
    """

    def __init__(self, path: Path, begin: int, size: int) -> None:
        self.path = path
        self.begin, self.size = begin, size

    def end(self) -> int:
        """Return where the file ends now; raises InvalidFileError if it lacks what is known."""
        with self._opened() as file:
            end = os.fstat(file.fileno()).st_size
            file.seek(self.size - 1)
            if end < self.size or file.read(1) != b"\n":
                raise self.damaged("it does not have the receipt that the model names")
            return end

    def read_on(self, number: int, previous: str, end: int) -> Iterator[Receipt]:
        """Yield the receipts after the last known one, each of which is known from then on.

        Parameters
        ----------
        number, previous : int, str
            Number and hash of the last known receipt.
        end : int
            Where the file ends. It may have grown since.

        Yields
        ------
        Receipt
            The next one. What a crash may have left of a last one is not among them.

        Raises
        ------
        InvalidFileError
            If one is damaged or missing that is not the last.
        """
        torn = False
        for begin, line in self._lines(self.size, end):
            try:
                receipt = Receipt.from_line(line)
                if receipt.hash != receipt.computed_hash():
                    raise ValueError("its hash is wrong")
            except ValueError:
                torn = True
                continue
            number += 1
            if torn or receipt.number != number or receipt.previous != previous:
                raise self.damaged(f"receipt {number} is missing, or was changed")
            previous = receipt.hash
            self.begin, self.size = begin, begin + len(line)
            yield receipt

    def read(self) -> Iterator[Receipt]:
        """Yield all receipts that are known.

        Raises
        ------
        InvalidFileError
            If the file is missing or a line of it is no receipt.
        """
        number = 0
        for number, (_, line) in enumerate(self._lines(0, self.size), start=1):
            yield self._receipt(line, number)
        if number == 0:
            raise self.damaged("it has no receipt")

    def last(self) -> Receipt:
        """Return the last receipt that is known."""
        with self._opened() as file:
            file.seek(self.begin)
            return self._receipt(file.read(self.size - self.begin))

    def _receipt(self, line: bytes, number: int | None = None) -> Receipt:
        try:
            return Receipt.from_line(line)
        except ValueError as error:
            where = f"its last line, at byte {self.begin}," if number is None else f"line {number}"
            raise self.damaged(f"{where} is no receipt: {error}") from error

    def append(self, receipt: Receipt) -> None:
        """Append a receipt and flush it to the disk; raises what `atomic_file.append` raises."""
        line = receipt.to_line()
        atomic_file.append(self.path, line, self.size)
        self.begin, self.size = self.size, self.size + len(line)

    def take_back(self, begin: int, size: int) -> None:
        """Cut off what was written since the log ended there; fails as `atomic_file.cut` does."""
        atomic_file.cut(self.path, size)
        self.begin, self.size = begin, size

    def _lines(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines between two places, and where each begins."""
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
                f"{self.path} is missing: the receipts of all changes are lost. Take it from a "
                "backup."
            ) from None

    def damaged(self, what: str) -> InvalidFileError:
        """An error that says what is wrong with the file."""
        return InvalidFileError(
            f"{self.path} is damaged, or was changed: {what}. Take the store from a backup."
        )
