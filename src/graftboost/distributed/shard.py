"""One shard: some of a model's rows, which answer the messages of the node half."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost._engine import BinMap, ShardServer, TableToBin, return_memory
from graftboost.distributed.errors import OutOfStepError, ReplacedError
from graftboost.distributed.folder import Folder
from graftboost.distributed.operation import Operation
from graftboost.distributed.part import Part, PartFacts, PartPlan, PlannedFacts
from graftboost.distributed.shard_files import Recorded, ShardFiles
from graftboost.distributed.sources import Source
from graftboost.input.sparse import for_engine

# What a shard answers to a message: packed sums, and bytes about rows.
Answer = tuple[bytes, bytes]

# The rows are written after this many operations, or earlier if fulfilling their messages again
# would take longer than writing the rows at this many bytes per second.
COMPACT_EVERY = 100
BYTES_PER_SECOND = 2.5e8
# After operations that take longer, memory is given back to the system.
LONG = 0.05  # seconds


@dataclass
class Shard:
    """A shard and its files. It knows nothing of how messages reach it.

    An operation is a sequence of messages with numbers from 0 on. `execute` fulfils them, `prepare`
    writes them to a file, and `settle` completes or undoes the operation. Each call says which
    operation was done last, so a shard that has missed the end of one catches up. All calls can be
    made again with the same arguments, and then answer as before. What the shard holds follows from
    its files and from the messages, so a shard that is lost is restored by `recover` and `replay`.

    A shard that cannot do what it is asked, because it was restarted or a message failed, raises
    `OutOfStepError`: it has to be restored. It answers one node half only, the one with the largest
    epoch, and others get a `ReplacedError`.

    Attributes
    ----------
    index, n_shards : int
        The number of this shard, and how many there are.
    folder : Folder
        Where its files are.
    n_threads : int
        The number of threads for one message.
    """

    index: int
    n_shards: int
    folder: Folder
    n_threads: int = 1
    _part: Part | None = None
    _n_taken: int = 0  # messages that brought rows
    _table: TableToBin | None = None
    _server: ShardServer | None = None
    _epoch: int = 0
    _done: Operation | None = None
    _begun: Operation | None = None
    _messages: list[bytes] = field(default_factory=list)  # of the operation that is under way
    _seconds: float = 0.0  # what they took
    _answer: Answer | None = None  # to the last one
    _n_since: int = 0  # operations since the rows were written
    _seconds_since: float = 0.0  # what they took
    _size: int = 0  # of the file with the rows, in bytes

    # --- rows to train on -------------------------------------------------------------------------

    def read(self, source: Source, options: Mapping[str, Any]) -> PartFacts:
        """Read the rows of this shard, and say what is in them."""
        self._part = Part.read(source, options)
        return self._part.facts()

    def plan(self, plan: PartPlan) -> PlannedFacts:
        """Encode the rows as the plan for all shards says."""
        return self._known_part().encode(plan)

    def hold_out_least(self, plan: PartPlan) -> PlannedFacts:
        """Hold out the row with the least hash, because no shard has drawn one."""
        return self._known_part().hold_out_least(plan)

    def duplicates(self, pieces: Sequence[NDArray[np.int64]]) -> int | None:
        """Return an id that occurs more than once in these pieces."""
        ids = np.sort(np.concatenate(pieces))
        twice = np.flatnonzero(ids[1:] == ids[:-1])
        return int(ids[twice[0]]) if len(twice) else None

    def ids_for(self, n_shards: int) -> list[NDArray[np.int64]]:
        """Return the ids of the rows in so many pieces: equal ids are in the same piece."""
        ids = self._known_part().rows.ids
        assert ids is not None
        piece = ids.astype(np.uint64) % np.uint64(n_shards)
        return [ids[piece == k] for k in range(n_shards)]

    def begin_binning(self) -> None:
        """Prepare to answer messages about bins."""
        rows = self._known_part().rows.of_positive_weight()
        assert rows.ids is not None
        self._table = TableToBin(for_engine(rows.X), rows.ids, self.n_threads)

    def answer_binning(self, message: bytes) -> Answer:
        """Answer a message about bins."""
        if self._table is None:
            raise self._out_of_step()
        return self._table.execute(message)

    def _known_part(self) -> Part:
        if self._part is None:
            raise self._out_of_step()
        return self._part

    # --- beginning --------------------------------------------------------------------------------

    def begin_fit(
        self, epoch: int, done: Operation, bins: BinMap, loss: str, n_classes: int
    ) -> int:
        """Encode the rows by these bins and write them to a file; return their number."""
        rows = self._known_part().rows
        assert rows.ids is not None
        self._table = None
        server = ShardServer(bins, loss, n_classes, self.index, self.n_shards, self.n_threads)
        server.append(for_engine(rows.X), rows.y, rows.weight, rows.ids)
        self._part = None
        return self._begin(epoch, done, server)

    def begin_empty(self, bins: BinMap, node_half: bytes) -> None:
        """Begin without rows, with the trees of a model; `take` brings rows."""
        self._n_taken, self._answer = 0, None
        self._server = ShardServer.from_node_half(
            bins, node_half, self.index, self.n_shards, self.n_threads
        )

    def take(self, number: int, message: bytes) -> Answer:
        """Take rows of message `number`, unless it was taken before."""
        if number == self._n_taken:
            self._answer = self._known_server().execute(message)
            self._n_taken += 1
        if number != self._n_taken - 1 or self._answer is None:
            raise self._out_of_step()
        return self._answer

    def end_taking(self, epoch: int, done: Operation) -> int:
        """Write the rows that messages brought to a file; return their number."""
        return self._begin(epoch, done, self._known_server())

    def load(self, epoch: int, done: Operation, folder: Folder, saved: Operation) -> int:
        """Take the rows that `save` has written; return their number."""
        files = ShardFiles(folder)
        server, _ = files.read_rows(saved, self.n_threads, self.index, self.n_shards)
        return self._begin(epoch, done, server)

    def save(self, epoch: int, done: Operation, folder: Folder) -> None:
        """Write the rows to another folder."""
        self._align(epoch, done)
        ShardFiles(folder).write_rows(done, self._known_server(), self._about())

    def _begin(self, epoch: int, done: Operation, server: ShardServer) -> int:
        self._server = server
        self._done = done
        self._forget()
        self._raise_epoch(epoch)
        self._compact()
        return server.n_rows

    # --- operations -------------------------------------------------------------------------------

    def answer(self, epoch: int, done: Operation, message: bytes) -> Answer:
        """Answer a message that changes nothing."""
        self._align(epoch, done)
        return self._known_server().execute(message)

    def execute(
        self, epoch: int, done: Operation, operation: Operation, number: int, message: bytes
    ) -> Answer:
        """Fulfil message `number` of an operation."""
        self._check_epoch(epoch)
        if operation != self._begun:
            self._align(epoch, done)
            if number != 0:
                raise self._out_of_step()
            self._begun = operation
        if self._answer is not None and number == len(self._messages) - 1:
            return self._answer
        if number != len(self._messages):
            raise self._out_of_step()
        server, start = self._known_server(), time.perf_counter()
        try:
            self._answer = server.execute(message)
        except BaseException:
            self._server = None  # it may have done a part of the message
            raise
        self._seconds += time.perf_counter() - start
        self._messages.append(message)
        return self._answer

    def replay(
        self, epoch: int, done: Operation, operation: Operation, messages: Sequence[bytes]
    ) -> None:
        """Fulfil the messages of an operation that the shard had got before it was lost."""
        for number, message in enumerate(messages):
            self.execute(epoch, done, operation, number, message)

    def prepare(self, epoch: int, done: Operation, operation: Operation) -> None:
        """Write the messages of the operation, so that it can be completed whatever happens."""
        self._check_epoch(epoch)
        if operation != self._begun:
            raise self._out_of_step()
        files = ShardFiles(self.folder)
        self._check_files(files)
        files.write_operation(Recorded(operation, done, self._messages, self._seconds))

    def settle(self, epoch: int, done: Operation) -> Answer:
        """Complete the operation under way if it is this one, and undo it otherwise.

        Returns
        -------
        Answer
            The facts about the rows.
        """
        self._align(epoch, done)
        return self._known_server().facts()

    def _align(self, epoch: int, done: Operation) -> None:
        """End the operation under way as `settle` says, and see whether `done` is the last one."""
        self._raise_epoch(epoch)
        server = self._known_server()
        if self._begun == done:
            server.commit()
            self._done = done
            self._n_since += 1
            self._seconds_since += self._seconds
            is_long = self._seconds > LONG
            self._forget()
            self._compact_if_due()
            if is_long:
                return_memory()
        elif self._begun is not None:
            ShardFiles(self.folder).remove_operation(self._begun)
            self._forget()
            try:
                server.undo()
            except RuntimeError as error:  # what a refresh overwrote is in the files only
                self._server = None
                raise self._out_of_step() from error
        if self._done != done:
            raise self._out_of_step()

    def _known_server(self) -> ShardServer:
        if self._server is None:
            raise self._out_of_step()
        return self._server

    def _check_epoch(self, epoch: int) -> None:
        if epoch < self._epoch:
            raise ReplacedError

    def _check_files(self, files: ShardFiles) -> None:
        """Raise if a shard in another cluster uses the same files for a later node half."""
        if files.read_epoch() > self._epoch:
            raise ReplacedError

    def _raise_epoch(self, epoch: int) -> None:
        self._check_epoch(epoch)
        if epoch > self._epoch:
            ShardFiles(self.folder).write_epoch(epoch)
            self._epoch = epoch

    def _out_of_step(self) -> OutOfStepError:
        return OutOfStepError(f"shard {self.index} has to be restored")

    def _forget(self) -> None:
        self._begun = None
        self._messages = []
        self._seconds = 0.0
        self._answer = None

    # --- files ------------------------------------------------------------------------------------

    def compact(self, epoch: int, done: Operation) -> None:
        """Write the rows as they are now; files with rows that were removed are erased."""
        self._align(epoch, done)
        self._compact()

    def _compact(self) -> None:
        assert self._done is not None
        files = ShardFiles(self.folder)
        self._check_files(files)
        self._size = files.write_rows(self._done, self._known_server(), self._about())
        files.remove_before(self._done)
        self._n_since, self._seconds_since = 0, 0.0

    def _compact_if_due(self) -> None:
        longest = 1 + self._size / BYTES_PER_SECOND
        if self._n_since < COMPACT_EVERY and self._seconds_since < longest:
            return
        try:
            self._compact()
        except OSError as error:
            # The operation itself is in a file, so the call must not fail.
            message = f"shard {self.index} was not compacted: {error}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _about(self) -> dict[str, Any]:
        return {"index": self.index, "n_shards": self.n_shards}

    def recover(self, epoch: int, done: Operation) -> None:
        """Restore the shard from its files, after an operation that was decided."""
        files = ShardFiles(self.folder)
        files.folder.remove_left_overs()
        self._epoch = max(self._epoch, files.read_epoch())
        self._raise_epoch(epoch)
        self._server = None
        self._forget()
        written, since = files.read_until(done)
        server, self._size = files.read_rows(written, self.n_threads, self.index, self.n_shards)
        for recorded in since:
            for message in recorded.messages:
                server.execute(message)
            server.commit()
        self._n_since = len(since)
        self._seconds_since = sum(recorded.seconds for recorded in since)
        self._server = server
        self._done = done
