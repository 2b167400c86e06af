"""Errors of stores."""

from __future__ import annotations


class StoreError(RuntimeError):
    """A store is damaged, or cannot do what was requested."""


class OutcomeUnknownError(StoreError):
    """The disk failed, and it is not known whether a change was made.

    The store is closed. Open it again to find out: its history contains the change or does not.
    """
