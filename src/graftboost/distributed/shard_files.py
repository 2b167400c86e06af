"""The files of one shard: its rows at some operation, and the messages of the operations since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost._engine import ShardServer
from graftboost.distributed.folder import Folder
from graftboost.persistence.model_file import engine_contents
from graftboost.persistence.pieces import Pieces

ROWS = "rows-"
OPERATION = "operation-"


def _number(name: str, prefix: str) -> int:
    return int(name.removeprefix(prefix))


@dataclass(frozen=True)
class ShardFiles:
    """What a shard needs to be restored.

    ``rows-<n>`` has the rows and what they recorded after operation n. ``operation-<n>`` has the
    messages of operation n. It is written before the operation is decided, so the last ones may
    have to be ignored. Rows that were removed are in these files until `write_rows` is called
    again.
    """

    folder: Folder

    def write_rows(self, operation: int, server: ShardServer, about: Mapping[str, Any]) -> None:
        """Write the rows after an operation, and remove the files that it makes obsolete."""
        summary, arrays = engine_contents(server, state=True, room=False)
        header = {
            "kind": "shard",
            "engine_model": summary,
            "about": {**about, "packed": server.packed},
        }
        self.folder.write(f"{ROWS}{operation:012d}", header, arrays)
        for name in self.folder.names():
            if name.startswith(ROWS) and _number(name, ROWS) < operation:
                self.folder.remove(name)
            if name.startswith(OPERATION) and _number(name, OPERATION) <= operation:
                self.folder.remove(name)

    def read_rows(self, n_threads: int) -> tuple[int, ShardServer, dict[str, Any]]:
        """Return the last operation whose rows were written, the shard, and what was said of it."""
        name = max(name for name in self.folder.names() if name.startswith(ROWS))
        found = self.folder.read(name)
        found.verify()
        about = found.header["about"]
        server = ShardServer.from_arrays(
            found.header["engine_model"],
            found.arrays,
            about["packed"],
            about["index"],
            about["n_shards"],
            n_threads,
        )
        return _number(name, ROWS), server, about

    def write_operation(self, operation: int, messages: Sequence[bytes]) -> None:
        """Write the messages of an operation."""
        arrays = {
            "lengths": Pieces.of(np.array([len(message) for message in messages], np.uint64)),
            "messages": Pieces.of(np.frombuffer(b"".join(messages), np.uint8)),
        }
        self.folder.write(f"{OPERATION}{operation:012d}", {"kind": "operation"}, arrays)

    def read_operations(self) -> dict[int, list[bytes]]:
        """Return the messages of all operations that are on file, in order."""
        operations = {}
        for name in self.folder.names():
            if not name.startswith(OPERATION):
                continue
            found = self.folder.read(name)
            found.verify()
            operations[_number(name, OPERATION)] = _divided(
                found.arrays["messages"], found.arrays["lengths"]
            )
        return dict(sorted(operations.items()))

    def remove_operation(self, operation: int) -> None:
        """Remove the messages of an operation that was not decided."""
        self.folder.remove(f"{OPERATION}{operation:012d}")


def _divided(data: NDArray[np.uint8], lengths: NDArray[np.uint64]) -> list[bytes]:
    ends = np.cumsum(lengths).tolist()
    return [data[end - int(n) : end].tobytes() for end, n in zip(ends, lengths, strict=True)]
