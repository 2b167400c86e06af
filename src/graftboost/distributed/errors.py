"""What can go wrong between the node half and its shards."""

from __future__ import annotations


class ShardError(RuntimeError):
    """A process of a distributed model could not be restored. The operation was undone."""


class OutcomeUnknownError(RuntimeError):
    """It is not known whether an operation was done; the next call finds out."""


class ShardLostError(Exception):
    """A shard does not answer: its process has ended, or makes no progress.

    Attributes
    ----------
    index : int
        The number of the shard.
    why : str
        What is known about the cause.
    """

    def __init__(self, index: int, why: str) -> None:
        super().__init__(index, why)
        self.index = index
        self.why = why

    def __str__(self) -> str:
        return f"shard {self.index} is lost: {self.why}"


class OutOfStepError(Exception):
    """A shard is not where the message expects it to be: it was restarted, or a message failed."""


class ReplacedError(Exception):
    """Another process has become the node half of the model, because this one seemed to be lost."""


class ChangedError(Exception):
    """The model has changed while its rows were being read."""


class InterruptedCallError(RuntimeError):
    """The caller interrupted a call before its operation was decided."""
