"""A model that lives on disk: every change is durable when the call returns.

A store is a directory::

    lock                   held by the writer; marked while a change is being written
    model-000003.graft     the model as it was some changes ago
    journal-000003.graft   the changes since then
    receipts.jsonl         a line for every change, chained by hash
"""

from graftboost.store.digest import digest
from graftboost.store.lock import StoreLockedError
from graftboost.store.receipts import Receipt
from graftboost.store.state import OutcomeUnknownError, StoreError
from graftboost.store.store import Store

__all__ = ["OutcomeUnknownError", "Receipt", "Store", "StoreError", "StoreLockedError", "digest"]
