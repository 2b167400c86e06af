"""The files of one shard: its rows after an operation, and the messages of those since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost._engine import ShardServer
from graftboost.distributed.folder import Folder
from graftboost.distributed.operation import Operation
from graftboost.persistence.model_file import engine_contents
from graftboost.persistence.pieces import Pieces

ROWS = "rows-"
OPERATION = "operation-"
EPOCH = "epoch"


@dataclass(frozen=True)
class Recorded:
    """An operation as it is on file.

    Attributes
    ----------
    operation, follows : Operation
        The operation, and the one before it.
    messages : list of bytes
        Its messages.
    seconds : float
        How long the shard took to fulfil them.
    """

    operation: Operation
    follows: Operation
    messages: Sequence[bytes]
    seconds: float


@dataclass(frozen=True)
class ShardFiles:
    """What a shard needs to be restored.

    ``rows-<operation>`` has the rows and what they recorded, as of an operation that was decided.
    ``operation-<operation>`` has the messages of an operation, and names the one before it. It is
    written before the operation is decided, so some belong to attempts that were undone. Whoever
    knows the last operation that was decided finds those that led to it, back to a file with rows.
    Rows that were removed are in these files until `write_rows` is called again.

    ``epoch`` has a number that grows with each process that becomes the node half.
    """

    folder: Folder

    # --- rows -------------------------------------------------------------------------------------

    def write_rows(self, done: Operation, server: ShardServer, about: Mapping[str, Any]) -> int:
        """Write the rows after an operation that was decided; return the number of bytes."""
        summary, arrays = engine_contents(server, state=True, room=False)
        header = {
            "kind": "shard",
            "engine_model": summary,
            "about": {**about, "packed": server.packed},
        }
        self.folder.write(f"{ROWS}{done}", header, arrays)
        return sum(pieces.size * pieces.dtype.itemsize for pieces in arrays.values())

    def remove_before(self, done: Operation) -> None:
        """Remove the files that the rows after an operation make obsolete."""
        for name in self.folder.names():
            if name.startswith(ROWS):
                obsolete = _operation_of(name, ROWS).number < done.number
            elif name.startswith(OPERATION):
                obsolete = _operation_of(name, OPERATION).number <= done.number
            else:
                obsolete = False
            if obsolete:
                self.folder.remove(name)

    def read_rows(
        self, done: Operation, n_threads: int, index: int, n_shards: int
    ) -> tuple[ShardServer, int]:
        """Return the shard with the rows after an operation, and the size of the file in bytes."""
        found = self.folder.read(f"{ROWS}{done}")
        found.verify()
        about = found.header["about"]
        if (about["index"], about["n_shards"]) != (index, n_shards):
            raise OSError(
                f"{found.source} has the rows of shard {about['index']} of {about['n_shards']}, "
                f"but those of shard {index} of {n_shards} are expected. Restore it from a backup."
            )
        server = ShardServer.from_arrays(
            found.header["engine_model"],
            found.arrays,
            about["packed"],
            index,
            n_shards,
            n_threads,
        )
        return server, found.size

    # --- operations -------------------------------------------------------------------------------

    def write_operation(self, recorded: Recorded) -> None:
        """Write the messages of an operation."""
        messages = recorded.messages
        header = {
            "kind": "operation",
            "follows": str(recorded.follows),
            "seconds": recorded.seconds,
        }
        arrays = {
            "lengths": Pieces.of(np.array([len(message) for message in messages], np.uint64)),
            "messages": Pieces.of(np.frombuffer(b"".join(messages), np.uint8)),
        }
        self.folder.write(f"{OPERATION}{recorded.operation}", header, arrays)

    def remove_operation(self, operation: Operation) -> None:
        """Remove the messages of an operation that was undone."""
        self.folder.remove(f"{OPERATION}{operation}")

    def read_until(self, done: Operation) -> tuple[Operation, list[Recorded]]:
        """Return an operation with a file of rows, and all operations after it until `done`."""
        names = set(self.folder.names())
        since: list[Recorded] = []
        operation = done
        while f"{ROWS}{operation}" not in names:
            if f"{OPERATION}{operation}" not in names:
                raise OSError(
                    f"the files of a shard in {self.folder} lack operation {operation.number}, "
                    f"although operation {done.number} was completed. Restore them from a backup."
                )
            since.append(self._read_operation(operation))
            operation = since[-1].follows
        return operation, since[::-1]

    def _read_operation(self, operation: Operation) -> Recorded:
        found = self.folder.read(f"{OPERATION}{operation}")
        found.verify()
        messages = _divided(found.arrays["messages"], found.arrays["lengths"])
        follows = Operation.parse(found.header["follows"])
        return Recorded(operation, follows, messages, found.header["seconds"])

    # --- epochs -----------------------------------------------------------------------------------

    def write_epoch(self, epoch: int) -> None:
        """Write the epoch of the present node half."""
        self.folder.write(EPOCH, {"kind": "epoch", "epoch": epoch}, {})

    def read_epoch(self) -> int:
        """Return the latest epoch of a node half."""
        if EPOCH not in self.folder.names():
            return 0
        return int(self.folder.read(EPOCH).header["epoch"])


def _operation_of(name: str, prefix: str) -> Operation:
    return Operation.parse(name.removeprefix(prefix))


def _divided(data: NDArray[np.uint8], lengths: NDArray[np.uint64]) -> list[bytes]:
    ends = np.cumsum(lengths).tolist()
    return [data[end - int(n) : end].tobytes() for end, n in zip(ends, lengths, strict=True)]
