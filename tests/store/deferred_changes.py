"""Changes of a store or an estimator that can be deferred."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graftboost.store import Store

from .stores import make_rows

X, _ = make_rows(5, 2)
LABELS = ["yes", "no"]
OUT = list(range(0, 60, 4))
CHANGES: dict[str, Callable[..., Any]] = {
    "remove": lambda owner, **how: owner.remove([1, 2, 3], **how),
    "update": lambda owner, **how: owner.update(remove=[1, 2, 3], **how),
    "add": lambda owner, **how: owner.add(X, LABELS, **how),
    "both": lambda owner, **how: owner.update(X, LABELS, remove=[1, 2, 3], **how),
}


def defer(owner: Any, ids: list[int] = OUT) -> None:
    for row in ids:
        owner.remove([row], regrow=False)


def n_pending(store: Store) -> int:
    return int(store.summary()["rows_not_yet_regrown"])
