"""Receipts: which rows a change added and removed, when, and what it did to the model."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.estimators.forgetting import Forgetting
from graftboost.persistence.json_values import read_json
from graftboost.store.printable import printable

FIRST = "0" * 64  # the hash before the first receipt

Range = list[int]  # the first id, and the id after the last

EDGES = {
    "supplied": "supplied, so they depend on no row",
    "computed before": "computed before these rows were added",
    "computed with": "computed with these rows and unchanged",
}
REFITTED = {
    True: "yes; the trees are those of a model trained without these rows, with the same bins",
    False: "no; some splits these rows influenced may remain until a refit",
}
ACTIONS = ("create", "update", "regrow", "refit", "refresh")
STRATEGIES = ("in-place", "refit")
HASH = re.compile("[0-9a-f]{64}")
LEAST_ID, LARGEST_ID = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Receipt:
    """The receipt of one change.

    Attributes
    ----------
    number : int
        The number of the change; 0 is the creation of the store.
    request : str
        The id of the request; unique unless the caller has reused it.
    time : str
        The time in UTC.
    action : {"create", "update", "regrow", "refit", "refresh"}
        What was requested.
    removed, added : list of [first, end]
        Ids of the rows, as half-open ranges.
    before, after : str
        Digests of the model before and after the change.
    strategy : {"in-place", "refit"}
        Whether only the affected nodes were regrown, or all trees were refitted.
    nodes_regrown, rows_regrown : int
        The number of nodes regrown, and the sum of their row counts.
    forgetting : dict or None
        The attributes of `UpdateReport.forgetting`: what was achieved and what is left, estimated.
    deferred : bool
        Whether the rows were only booked, with ``regrow=False``.
    rows_deferred : int
        Rows of this and earlier changes that were only booked and are not yet regrown.
    edges : {"supplied", "computed before", "computed with", ""}
        Whether the bin edges were supplied, computed before the removed rows were added, or
        computed with at least one of them. Empty if no row was removed.
    previous : str
        The hash of the previous receipt.
    hash : str
        The hash of this receipt and, through `previous`, of all earlier ones.
    """

    number: int
    request: str
    time: str
    action: str
    removed: list[Range]
    added: list[Range]
    before: str
    after: str
    strategy: str
    nodes_regrown: int
    rows_regrown: int
    forgetting: dict[str, float | None] | None
    deferred: bool
    rows_deferred: int
    edges: str
    previous: str
    hash: str = ""

    def sealed(self) -> Receipt:
        """Return the receipt with its hash."""
        return Receipt(**{**asdict(self), "hash": self.computed_hash()})

    def computed_hash(self) -> str:
        """Return the hash of the content."""
        content = {name: value for name, value in self._content().items() if name != "hash"}
        return hashlib.sha256(_as_json(content)).hexdigest()

    def _content(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_removed(self) -> int:
        """The number of rows removed."""
        return sum(end - first for first, end in self.removed)

    @property
    def n_added(self) -> int:
        """The number of rows added."""
        return sum(end - first for first, end in self.added)

    def removes(self, row_id: int) -> bool:
        """Tell whether this change removed the row with this id."""
        return any(first <= row_id < end for first, end in self.removed)

    def in_words(
        self, refitted_since: bool | None = None, regrown_by: Receipt | None = None
    ) -> str:
        """Return a description for people, with control characters escaped.

        Parameters
        ----------
        refitted_since : bool, default=None
            The result of `Store.refitted_since` for this receipt. Default: omitted.
        regrown_by : Receipt, default=None
            The result of `Store.regrown_by` for this receipt.

        Returns
        -------
        str
            Several lines.
        """
        facts = {"action": self.action}
        for name, ranges in (("removed", self.removed), ("added", self.added)):
            if ranges:
                facts[name] = _ranges_in_words(ranges)
        facts["model before"] = self.before or "none"
        facts["model after"] = self.after
        if self.action in ("update", "regrow"):
            done = f"{self.strategy}, {self.nodes_regrown:,} nodes regrown"
            facts["done"] = "in-place, rows booked" if self.deferred else done
            if self.forgetting is not None:
                forgetting = Forgetting(**self.forgetting)  # type: ignore[arg-type]
                facts["forgetting"] = forgetting.in_words(self.n_removed, self.n_added)
        if self.deferred:
            facts["regrown"] = "not yet"
            if regrown_by is not None:
                facts["regrown"] = f"{regrown_by.time}, by change {regrown_by.number}"
        elif self.rows_deferred:
            facts["not yet regrown"] = f"{self.rows_deferred:,} rows"
        if self.removed:
            if refitted_since is not None:
                facts["refitted since"] = REFITTED[refitted_since]
            facts["bin edges"] = EDGES[self.edges]
        facts["hash"] = self.hash
        head = f"Receipt {self.number}, request {self.request}, {self.time}"
        lines = [f"  {name:<16} {printable(fact)}" for name, fact in facts.items()]
        return "\n".join([printable(head), *lines])

    __str__ = in_words

    def to_line(self) -> bytes:
        """Return the receipt as a line of JSON."""
        return _as_json(self._content()) + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Receipt:
        """Return the receipt of a line; raises ValueError if it is not valid."""
        if not line.endswith(b"\n"):
            raise ValueError("the line is incomplete")
        try:
            content = read_json(line)
        except ValueError as error:
            raise ValueError("the line is not valid JSON, or is nested too deeply") from error
        return cls.from_json(content)

    @classmethod
    def from_json(cls, content: Any) -> Receipt:
        """Return the receipt for decoded JSON; raises ValueError if it is not valid."""
        names = {field.name for field in fields(cls)}
        if not isinstance(content, dict) or set(content) != names:
            raise ValueError("it does not have the fields of a receipt")
        receipt = cls(**content)
        for name, is_valid in _CHECKS.items():
            if not is_valid(content[name]):
                raise ValueError(f"its {name!r} is not valid")
        if bool(receipt.removed) != bool(receipt.edges):
            raise ValueError("its 'edges' and 'removed' are inconsistent")
        return receipt


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_forgetting(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or set(value) != {field.name for field in fields(Forgetting)}:
        return False
    counts = ("rows_remembered", "rows_still_remembered")
    of_rows = ("most_memory_left", *counts)
    if all(value[name] is None for name in of_rows):
        value = {name: number for name, number in value.items() if name not in of_rows}
    return all(
        _is_count(number) if name in counts else type(number) is float and math.isfinite(number)
        for name, number in value.items()
    )


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and HASH.fullmatch(value) is not None


def _is_time(value: Any) -> bool:
    try:
        datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


def _are_ranges(value: Any) -> bool:
    """Tell whether these are ascending ranges of ids with gaps between them."""
    if not isinstance(value, list):
        return False
    last = LEAST_ID - 1
    for pair in value:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(i) is int for i in pair)):
            return False
        first, end = pair
        if not last < first < end <= LARGEST_ID + 1:
            return False
        last = end
    return True


_CHECKS = {
    "number": _is_count,
    "request": lambda value: isinstance(value, str),
    "time": _is_time,
    "action": lambda value: value in ACTIONS,
    "removed": _are_ranges,
    "added": _are_ranges,
    "before": lambda value: value == "" or _is_hash(value),
    "after": _is_hash,
    "strategy": lambda value: value in STRATEGIES,
    "nodes_regrown": _is_count,
    "rows_regrown": _is_count,
    "forgetting": _is_forgetting,
    "deferred": lambda value: isinstance(value, bool),
    "rows_deferred": _is_count,
    "edges": lambda value: value == "" or (isinstance(value, str) and value in EDGES),
    "previous": _is_hash,
    "hash": _is_hash,
}


def _ranges_in_words(ranges: list[Range]) -> str:
    n = sum(end - first for first, end in ranges)
    texts = [str(first) if end == first + 1 else f"{first}-{end - 1}" for first, end in ranges[:8]]
    more = ", ..." if len(ranges) > len(texts) else ""
    return f"{n:,} row{'s' if n > 1 else ''}: {', '.join(texts)}{more}"


def _as_json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def find_break(receipts: Iterable[Receipt]) -> str | None:
    """Return what is wrong with the chain of all receipts, or None."""
    previous = FIRST
    for expected, receipt in enumerate(receipts):
        if receipt.number != expected:
            return f"receipt {expected} is missing"
        if receipt.previous != previous:
            return f"receipt {expected} does not contain the hash of the previous one"
        if receipt.hash != receipt.computed_hash():
            return f"receipt {expected} was modified"
        previous = receipt.hash
    return None


def as_ranges(ids: NDArray[np.int64]) -> list[Range]:
    """Return ids as ranges.

    Examples
    --------
    >>> as_ranges(np.array([7, 3, 4, 5]))
    [[3, 6], [7, 8]]
    """
    if not len(ids):
        return []
    ordered = np.sort(ids)
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    parts: Sequence[NDArray[np.int64]] = np.split(ordered, breaks)
    return [[int(part[0]), int(part[-1]) + 1] for part in parts]


def request_id(request: Any) -> str:
    """Return the caller's id for a request, or a new one if it is None or empty."""
    if request is not None and not isinstance(request, str):
        raise TypeError(
            f"request is of type {type(request).__name__}, but a request id is text. Pass a str, "
            "or leave it out to get a new id."
        )
    return request or uuid.uuid4().hex


def now() -> str:
    """Return the time in UTC, as receipts record it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
