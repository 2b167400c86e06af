"""All shards of a model, as the node half reaches them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from graftboost.distributed.errors import OutOfStepError, ShardLostError
from graftboost.distributed.folder import Folder
from graftboost.distributed.shard import Answer, Shard

# The answers of all shards: packed sums, which may have been added up on their way, and bytes about
# rows, of each shard.
Answers = tuple[list[bytes], list[bytes]]


class Shards(Protocol):
    """Shards in processes of any kind.

    A shard whose process has ended, that makes no progress, or that is out of step counts as lost.
    """

    n_shards: int

    def call(self, index: int, method: str, *arguments: Any) -> Any:
        """Call a method of one shard. Raises `ShardLostError` if it does not answer."""
        ...

    def call_all(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all shards side by side.

        If shards do not answer, raises `ShardLostError` for one of them, when all others have
        answered.
        """
        ...

    def call_each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all shards side by side, each with its own arguments."""
        ...

    def answer_all(self, method: str, *arguments: Any) -> Answers:
        """Call a method that answers a message; return the answers of all shards."""
        ...

    def restart(self, index: int) -> None:
        """Start a shard that was lost once more, without rows. Raises `ShardLostError`."""
        ...

    def close(self) -> None:
        """End all shards. Their files stay."""
        ...


class ShardHost(Protocol):
    """Whatever can run shards."""

    def open(self, n_shards: int, generation: str) -> Shards:
        """Return shards, new ones or those that were there before.

        A generation is a set of shards that was started together. Its name is also that of the
        folder of their files.
        """
        ...

    def close_others(self, generation: str) -> None:
        """End the shards of all other generations of the model."""
        ...


def combine(answers: Sequence[Answer]) -> Answers:
    """Return the sums and the bytes of several shards, each as a list."""
    return [sums for sums, _ in answers], [rows for _, rows in answers]


class ShardsInProcess:
    """Shards in this process, one after the other: for tests, and to see what is exchanged.

    Parameters
    ----------
    n_shards : int
        The number of shards.
    folder : Folder
        Where their files are.
    n_threads : int, default=1
        The number of threads for one message.
    """

    def __init__(self, n_shards: int, folder: Folder, n_threads: int = 1) -> None:
        self.n_shards = n_shards
        self.folder = folder
        self.n_threads = n_threads
        self.shards: list[Shard | None] = [self._new(index) for index in range(n_shards)]

    def _new(self, index: int) -> Shard:
        return Shard(index, self.n_shards, self.folder.inside(f"shard-{index}"), self.n_threads)

    def call(self, index: int, method: str, *arguments: Any) -> Any:
        """See `Shards`."""
        shard = self.shards[index]
        if shard is None:
            raise ShardLostError(index, "its process has ended")
        try:
            return getattr(shard, method)(*arguments)
        except OutOfStepError as error:
            raise ShardLostError(index, str(error)) from error

    def call_all(self, method: str, *arguments: Any) -> list[Any]:
        """See `Shards`."""
        return self.call_each(method, [arguments] * self.n_shards)

    def call_each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """See `Shards`."""
        results, lost = [], None
        for index in range(self.n_shards):
            try:
                results.append(self.call(index, method, *arguments[index]))
            except ShardLostError as error:
                lost = error
        if lost is not None:
            raise lost
        return results

    def answer_all(self, method: str, *arguments: Any) -> Answers:
        """See `Shards`."""
        return combine(self.call_all(method, *arguments))

    def restart(self, index: int) -> None:
        """See `Shards`."""
        self.shards[index] = self._new(index)

    def kill(self, index: int) -> None:
        """Lose a shard, as if its process had ended."""
        self.shards[index] = None

    def close(self) -> None:
        """See `Shards`."""
        self.shards = [None] * self.n_shards
