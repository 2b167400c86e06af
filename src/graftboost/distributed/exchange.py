"""The exchange of messages between the node half and its shards, through the loss of shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graftboost.distributed.errors import ShardError, ShardLostError
from graftboost.distributed.shards import Shards

WORK, PREPARE, COMMIT, UNDO = range(4)  # the phases of an operation, as the engine numbers them
MOST_RESTARTS = 5  # of shards, in one operation

Result = TypeVar("Result")


class ShardExchange:
    """Sends the messages of operations to all shards.

    A shard that is lost is restarted, restores its rows from its files, and fulfils the messages
    of the operation under way again. So an operation completes unless shards are lost again and
    again; then the engine undoes it.

    Parameters
    ----------
    shards : Shards
        The shards.
    decided : int
        The last operation that was completed.
    decide : callable
        Called with the number of an operation and the node half that results from it, when all
        shards can complete it. When it returns, the operation is done; if it raises, it is undone.
    """

    def __init__(self, shards: Shards, decided: int, decide: Callable[[int, bytes], None]) -> None:
        self.shards = shards
        self.decided = decided
        self._decide = decide
        self._messages: list[bytes] = []
        self._n_restarts = 0
        self.n_rounds = 0
        self.n_bytes = 0

    def __call__(
        self, message: bytes, phase: int, node_half: bytes
    ) -> tuple[NDArray[np.uint64], list[bytes]]:
        """Exchange a message with all shards, as the engine asks for."""
        self.n_rounds += 1
        self.n_bytes += len(message)
        if phase == COMMIT:
            return self._commit()
        if phase == UNDO:
            return self._undo()
        answer = self._work(message)
        if phase == PREPARE:
            self._persist(lambda: self.shards.call_all("prepare", self._operation))
            self._decide(self._operation, node_half)
            self.decided = self._operation
        return answer

    @property
    def _operation(self) -> int:
        return self.decided + 1

    def _work(self, message: bytes) -> tuple[NDArray[np.uint64], list[bytes]]:
        number = len(self._messages)
        answer = self._persist(
            lambda: self.shards.answer_all("execute", self._operation, number, message)
        )
        self._messages.append(message)
        return answer

    def _commit(self) -> tuple[NDArray[np.uint64], list[bytes]]:
        """Complete the operation that was decided: it is `decided` itself now."""
        self._messages = []
        self._n_restarts = 0
        return self._persist(lambda: self.shards.answer_all("commit", self.decided))

    def _undo(self) -> tuple[NDArray[np.uint64], list[bytes]]:
        self._messages = []
        self._n_restarts = 0
        return self._persist(lambda: self.shards.answer_all("undo", self._operation))

    def _persist(self, ask: Callable[[], Result]) -> Result:
        """Ask all shards, and restore those that are lost until all have answered."""
        while True:
            try:
                return ask()
            except ShardLostError as lost:
                self.restore(lost)

    def restore(self, lost: ShardLostError) -> None:
        """Restore a shard: its rows as of the last operation, and the messages since."""
        while True:
            self._n_restarts += 1
            if self._n_restarts > MOST_RESTARTS:
                self._n_restarts = 0
                raise ShardError(
                    f"shard {lost.index} was lost {MOST_RESTARTS} times in one operation, which "
                    f"was undone. The last cause: {lost.why}. Check the memory and the logs of its "
                    "machine, then call again."
                ) from lost
            try:
                self.shards.restart(lost.index)
                self.shards.call(lost.index, "recover", self.decided)
                self.shards.call(lost.index, "replay", self._operation, self._messages)
                return
            except ShardLostError as again:
                lost = again

    def settle(self) -> None:
        """Bring all shards to the last operation that was decided, after the node half was lost."""

        def settle_all() -> list[Any]:
            return self.shards.call_all("settle", self.decided)

        self._persist(settle_all)
