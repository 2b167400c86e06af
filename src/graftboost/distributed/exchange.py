"""The exchange of messages between the node half and its shards, through the loss of shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from graftboost.distributed.errors import (
    InterruptedCallError,
    OutcomeUnknownError,
    ReplacedError,
    ShardError,
    ShardLostError,
)
from graftboost.distributed.operation import Operation
from graftboost.distributed.shards import Answers, Shards

READ, WORK, PREPARE, COMMIT, UNDO = range(5)  # the phases of messages, as the engine numbers them
MOST_RESTARTS = 5  # of one shard, in one operation
REPLACED = (
    "Another process has become the node half of this model, because this one did not answer. It "
    "is not known whether this call has changed the model. Compare row_ids_ before you call again."
)

Result = TypeVar("Result")


@dataclass(frozen=True)
class Traffic:
    """What the node half has exchanged with its shards.

    Attributes
    ----------
    n_rounds : int
        Messages that all shards have answered.
    n_bytes_sent, n_bytes_received : int
        The bytes of messages, each counted once, and of all answers that have reached the node
        half.
    """

    n_rounds: int = 0
    n_bytes_sent: int = 0
    n_bytes_received: int = 0

    def after(self, n_bytes_sent: int, n_bytes_received: int) -> Traffic:
        """Return the traffic after one more round."""
        return Traffic(
            self.n_rounds + 1,
            self.n_bytes_sent + n_bytes_sent,
            self.n_bytes_received + n_bytes_received,
        )


class ShardExchange:
    """Sends the messages of operations to all shards.

    A shard that is lost is restarted, restores its rows from its files, and fulfils the messages
    of the operation under way again. So an operation completes unless a shard is lost again and
    again; then the engine undoes it.

    Parameters
    ----------
    shards : Shards
        The shards.
    epoch : int
        A number that grows with each process that becomes the node half.
    done : Operation
        The last operation that was decided.
    decide : callable
        Called with an operation and the node half that results from it, when all shards can
        complete it. When it returns, the operation is done; if it raises, it is undone.

    Attributes
    ----------
    is_interrupted : bool
        Whether the operation under way is to fail at its next message. Set by another thread.
    traffic : Traffic
        What was exchanged so far.
    """

    def __init__(
        self,
        shards: Shards,
        epoch: int,
        done: Operation,
        decide: Callable[[Operation, bytes], None],
    ) -> None:
        self.shards = shards
        self.epoch = epoch
        self.done = done
        self._decide = decide
        self._begun: Operation | None = None
        self._messages: list[bytes] = []
        self._restarts: Counter[int] = Counter()
        self._failure: str | None = None  # why this exchange cannot be used any more
        self.is_interrupted = False
        self.traffic = Traffic()

    def __call__(self, message: bytes, phase: int, node_half: bytes) -> Answers:
        """Exchange a message with all shards, as the engine asks for."""
        self.check()
        if phase == READ:
            self._restarts.clear()
            answers = self.ask("answer", message)
        elif phase in (COMMIT, UNDO):
            answers = self.settle()
        else:
            answers = self._work(message)
            if phase == PREPARE:
                self._prepare(node_half)
        self.traffic = self.traffic.after(len(message), sum(map(len, (*answers[0], *answers[1]))))
        return answers

    def check(self) -> None:
        """Raise if the shards answer another node half now, or may have to."""
        if self._failure is not None:
            raise OutcomeUnknownError(self._failure)

    def give_up(self, why: str = REPLACED) -> None:
        """Let all further calls fail: the files tell what the model is."""
        self._failure = why

    # --- operations -------------------------------------------------------------------------------

    def _work(self, message: bytes) -> Answers:
        if self._begun is None:
            self._begun = self.done.next()
            self._restarts.clear()
        if self.is_interrupted:
            raise InterruptedCallError("The call was interrupted, and nothing has changed.")
        answers = self.ask("execute", self._begun, len(self._messages), message)
        self._messages.append(message)
        return answers

    def _prepare(self, node_half: bytes) -> None:
        assert self._begun is not None
        self.call_all("prepare", self._begun)
        try:
            self._decide(self._begun, node_half)
        except OutcomeUnknownError as error:
            self.give_up(str(error))
            raise
        self.done = self._begun

    def settle(self) -> Answers:
        """Bring all shards to the last operation that was decided; return the facts about rows."""
        self._begun = None
        self._messages = []
        self._restarts.clear()
        return self.ask("settle")

    # --- calls ------------------------------------------------------------------------------------

    def ask(self, method: str, *arguments: Any) -> Answers:
        """Call a method that answers a message; return the combined answers of all shards."""
        return self._persist(
            lambda: self.shards.answer_all(method, self.epoch, self.done, *arguments)
        )

    def call_all(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all shards, with the epoch and the last operation."""
        return self._persist(
            lambda: self.shards.call_all(method, self.epoch, self.done, *arguments)
        )

    def call_each(self, method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Call a method of all shards, each with its own arguments."""
        mine = [(self.epoch, self.done, *of_shard) for of_shard in arguments]
        return self._persist(lambda: self.shards.call_each(method, mine))

    def _persist(self, ask: Callable[[], Result]) -> Result:
        """Ask all shards, and restore those that are lost until all have answered."""
        try:
            while True:
                try:
                    return ask()
                except ShardLostError as lost:
                    self._restore(lost)
        except ReplacedError as error:
            self.give_up()
            raise OutcomeUnknownError(REPLACED) from error

    def _restore(self, lost: ShardLostError) -> None:
        """Restore a shard: its rows as of the last operation, and the messages since."""
        while True:
            self._restarts[lost.index] += 1
            if self._restarts[lost.index] > MOST_RESTARTS:
                raise ShardError(
                    f"shard {lost.index} was lost {MOST_RESTARTS} times in one operation, which "
                    f"was undone. The last cause: {lost.why}. Check the memory and the logs of its "
                    "machine, then call again."
                ) from lost
            try:
                self.shards.restart(lost.index)
                self.shards.call(lost.index, "recover", self.epoch, self.done)
                if self._begun is not None:
                    arguments = (self.epoch, self.done, self._begun, self._messages)
                    self.shards.call(lost.index, "replay", *arguments)
                return
            except ShardLostError as again:
                lost = again
