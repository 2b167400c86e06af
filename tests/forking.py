"""Child processes that call a function."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable


def fork(function: Callable[[], object], seconds: int = 0) -> int:
    """Start a child that calls a function and exits with 0, or with 1 if it raises an error.

    A child that takes longer than `seconds` is killed; 0 means no limit. Returns its process id.
    """
    with warnings.catch_warnings():
        # Python warns of a fork while other threads run, which is what some tests are about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return child


def wait_for(child: int) -> int:
    """Wait for a child to end; returns its exit status."""
    return os.waitpid(child, 0)[1]
