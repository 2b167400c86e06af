"""One shard: some of a model's rows, which answer the messages of the node half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost._engine import BinMap, ShardServer, TableToBin
from graftboost.distributed.errors import OutOfStepError
from graftboost.distributed.folder import Folder
from graftboost.distributed.part import Part, PartFacts, PartPlan, PlannedFacts
from graftboost.distributed.shard_files import ShardFiles
from graftboost.distributed.sources import Source
from graftboost.input.rows import Rows
from graftboost.input.sparse import for_engine

# What a shard answers to a message: sums, and bytes about rows.
Answer = tuple[NDArray[np.uint64], bytes]


@dataclass
class Shard:
    """A shard and its files. It knows nothing of how messages reach it.

    An operation is a sequence of messages with numbers from 0 on. `execute` fulfils them, `prepare`
    writes them to a file, and `commit` or `undo` ends the operation. All of these can be called
    again with the same arguments, and then answer as before. What the shard holds follows from its
    files and from the messages, so one that is lost is restored by `recover` and `replay`.

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
    _table: TableToBin | None = None
    _server: ShardServer | None = None
    _committed: int = -1  # the last operation that is done
    _operation: int = -1  # the one under way
    _messages: list[bytes] = field(default_factory=list)
    _answer: Answer | None = None  # to the last message

    # --- rows to train on -------------------------------------------------------------------------

    def read(self, source: Source, options: Mapping[str, Any]) -> PartFacts:
        """Read the rows of this shard, and say what is in them."""
        self._part = Part.read(source, options)
        return self._part.facts()

    def plan(self, plan: PartPlan) -> PlannedFacts:
        """Encode the rows as the plan for all shards says."""
        assert self._part is not None
        return self._part.encode(plan)

    def hold_out_least(self, plan: PartPlan) -> PlannedFacts:
        """Hold out the row with the least hash, because no shard has drawn one."""
        assert self._part is not None
        return self._part.hold_out_least(plan)

    def duplicates(self, pieces: Sequence[NDArray[np.int64]]) -> int | None:
        """Return an id that occurs more than once in these pieces."""
        ids = np.sort(np.concatenate(pieces))
        twice = np.flatnonzero(ids[1:] == ids[:-1])
        return int(ids[twice[0]]) if len(twice) else None

    def ids_for(self, n_shards: int) -> list[NDArray[np.int64]]:
        """Return the ids of the rows in so many pieces: equal ids are in the same piece."""
        assert self._part is not None
        ids = self._part.rows.ids
        assert ids is not None
        piece = ids.astype(np.uint64) % np.uint64(n_shards)
        return [ids[piece == k] for k in range(n_shards)]

    def begin_binning(self) -> None:
        """Prepare to answer messages about bins."""
        rows = self._rows().of_positive_weight()
        assert rows.ids is not None
        self._table = TableToBin(for_engine(rows.X), rows.ids, self.n_threads)

    def answer_binning(self, message: bytes) -> Answer:
        """Answer a message about bins."""
        assert self._table is not None
        return self._table.execute(message)

    def begin_fit(self, bins: BinMap, loss: str, n_classes: int, operation: int) -> int:
        """Encode the rows by these bins and write them to a file; return their number."""
        rows = self._rows()
        assert rows.ids is not None
        self._table = None
        self._server = ShardServer(bins, loss, n_classes, self.index, self.n_shards, self.n_threads)
        self._server.append(for_engine(rows.X), rows.y, rows.weight, rows.ids)
        self._part = None
        self._begin_at(operation)
        return self._server.n_rows

    def begin_empty(self, bins: BinMap, node_half: bytes, operation: int) -> None:
        """Begin without rows, with the trees of a model; messages bring rows."""
        self._server = ShardServer.from_node_half(
            bins, node_half, self.index, self.n_shards, self.n_threads
        )
        self._committed = operation - 1

    def take(self, message: bytes) -> Answer:
        """Take rows of a message."""
        assert self._server is not None
        return self._server.execute(message)

    def end_taking(self, operation: int) -> int:
        """Write the rows that messages brought to a file; return their number."""
        assert self._server is not None
        self._begin_at(operation)
        return self._server.n_rows

    def _rows(self) -> Rows:
        assert self._part is not None
        return self._part.rows

    def _begin_at(self, operation: int) -> None:
        self._committed = operation
        self._forget()
        self.compact()

    # --- operations -------------------------------------------------------------------------------

    def execute(self, operation: int, number: int, message: bytes) -> Answer:
        """Fulfil message `number` of an operation."""
        if self._server is None or operation <= self._committed:
            raise OutOfStepError(f"operation {operation} comes after {self._committed}")
        if operation != self._operation:
            if number != 0 or self._messages:
                raise OutOfStepError(f"operation {operation} does not begin here")
            self._operation = operation
        is_last = number == len(self._messages) - 1
        if is_last and self._answer is not None and message == self._messages[-1]:
            return self._answer
        if number != len(self._messages):
            raise OutOfStepError(f"message {number} comes after {len(self._messages) - 1}")
        self._answer = self._server.execute(message)
        self._messages.append(message)
        return self._answer

    def replay(self, operation: int, messages: Sequence[bytes]) -> None:
        """Fulfil the messages of an operation that the shard had got before it was lost."""
        for number, message in enumerate(messages):
            self.execute(operation, number, message)

    def prepare(self, operation: int) -> None:
        """Write the messages of the operation, so that it can be completed whatever happens."""
        if operation != self._operation:
            raise OutOfStepError(f"operation {operation} has not begun")
        ShardFiles(self.folder).write_operation(operation, self._messages)

    def commit(self, operation: int) -> Answer:
        """Complete a prepared operation; return the facts about the rows."""
        assert self._server is not None
        if operation == self._operation:
            answer = self._server.commit()
            self._committed = operation
            self._forget()
            return answer
        if operation != self._committed:
            raise OutOfStepError(f"operation {operation} has not begun")
        return self._server.facts()

    def undo(self, operation: int) -> Answer:
        """Undo what an operation has done so far; return the facts about the rows."""
        assert self._server is not None
        if operation == self._operation:
            ShardFiles(self.folder).remove_operation(operation)
            self._forget()
            try:
                return self._server.undo()
            except RuntimeError:  # what a refresh overwrote is in the files only
                self.recover(self._committed)
        return self._server.facts()

    def settle(self, decided: int) -> Answer:
        """Complete the operation under way if it was decided, and undo it otherwise."""
        if self._server is None:
            self.recover(decided)
        if self._operation == decided:
            return self.commit(decided)
        if self._operation >= 0:
            return self.undo(self._operation)
        if self._committed != decided:
            self.recover(decided)
        assert self._server is not None
        return self._server.facts()

    def _forget(self) -> None:
        self._operation = -1
        self._messages = []
        self._answer = None

    # --- files ------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Write the rows as they are now; files with rows that were removed are erased."""
        assert self._server is not None
        about = {"index": self.index, "n_shards": self.n_shards}
        ShardFiles(self.folder).write_rows(self._committed, self._server, about)

    def recover(self, decided: int) -> int:
        """Restore the shard from its files, after the last operation that was decided.

        Returns
        -------
        int
            The number of rows.
        """
        files = ShardFiles(self.folder)
        self._committed, server, _ = files.read_rows(self.n_threads)
        self._forget()
        for operation, messages in files.read_operations().items():
            if operation > decided:
                files.remove_operation(operation)
            elif operation > self._committed:
                for message in messages:
                    server.execute(message)
                server.commit()
                self._committed = operation
        if self._committed != decided:
            raise OSError(
                f"the files of shard {self.index} end with operation {self._committed}, but "
                f"operation {decided} was completed. Restore them from a backup."
            )
        self._server = server
        return server.n_rows

    # --- reading ----------------------------------------------------------------------------------

    def row_ids(self) -> NDArray[np.int64]:
        """Return the ids of the rows."""
        assert self._server is not None
        return self._server.row_ids
