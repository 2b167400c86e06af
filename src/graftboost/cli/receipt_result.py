"""The content of a receipt for the output of commands."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from graftboost.store import Receipt, Store


def as_result(store: Store, receipt: Receipt) -> dict[str, Any]:
    """Return the content of a receipt, and what was done about its rows since."""
    content = {**asdict(receipt), "refitted_since": store.refitted_since(receipt)}
    if receipt.deferred:
        regrown_by = store.regrown_by(receipt)
        content["regrown_by"] = None if regrown_by is None else regrown_by.number
    return content
