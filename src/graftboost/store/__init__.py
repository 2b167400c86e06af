"""Durable models: a model in a directory, whose changes are on the disk when a call returns.

The files of a store are::

    lock                   held by the writer; marked while a change is being written
    model-000003.graft     the model as of an earlier change
    journal-000003.graft   the changes since then
    receipts.jsonl         one line per change, chained by hash
"""

from graftboost.store.digest import digest
from graftboost.store.errors import OutcomeUnknownError, StoreError
from graftboost.store.lock import StoreLockedError
from graftboost.store.receipts import Receipt
from graftboost.store.store import Store

__all__ = ["OutcomeUnknownError", "Receipt", "Store", "StoreError", "StoreLockedError", "digest"]
