"""The content of a receipt for the output of commands."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from graftboost.store import Receipt, Store


def as_result(store: Store, receipt: Receipt) -> dict[str, Any]:
    """Return the content of a receipt, and whether the model was refitted since."""
    return {**asdict(receipt), "refitted_since": store.refitted_since(receipt)}
