"""What can go wrong between the node half and its shards."""

from __future__ import annotations


class ShardError(RuntimeError):
    """A shard could not be restored, so the operation was undone."""


class ShardLostError(Exception):
    """A shard does not answer: its process ended, or took too long.

    Attributes
    ----------
    index : int
        The number of the shard.
    """

    def __init__(self, index: int, why: str) -> None:
        super().__init__(index, why)
        self.index = index
        self.why = why

    def __str__(self) -> str:
        return f"shard {self.index} is lost: {self.why}"


class OutOfStepError(Exception):
    """A shard got a message that does not follow the one before it: it was restarted."""
