"""Operations: the changes of a distributed model, one after the other."""

from __future__ import annotations

import uuid
from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """One attempt to change a model.

    Attributes
    ----------
    number : int
        Operations that are done have consecutive numbers.
    attempt : str
        Tells apart several attempts at the operation with this number. At most one of them is
        decided; the others leave no trace.
    """

    number: int
    attempt: str

    def next(self) -> Operation:
        """Return a new attempt at the operation after this one."""
        return Operation(self.number + 1, uuid.uuid4().hex)

    def __str__(self) -> str:
        return f"{self.number:012d}-{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> Operation:
        """Return the operation that `str` gave this text for."""
        number, attempt = text.split("-")
        return cls(int(number), attempt)
