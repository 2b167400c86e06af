"""The lock that serialises the updates of one model."""

from __future__ import annotations

import os
import threading
import weakref
from typing import ClassVar


class UpdateLock:
    """The lock of one model; copies of the model have their own."""

    _all: ClassVar[weakref.WeakSet[UpdateLock]] = weakref.WeakSet()

    def __init__(self) -> None:
        self.lock = threading.Lock()
        UpdateLock._all.add(self)

    def __reduce__(self) -> tuple[type[UpdateLock], tuple[()]]:
        return UpdateLock, ()


def _release_in_child() -> None:
    """Renew all locks in a forked child, which lacks the threads that held them."""
    for each in UpdateLock._all:
        each.lock = threading.Lock()


os.register_at_fork(after_in_child=_release_in_child)
