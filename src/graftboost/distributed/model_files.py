"""The files of the node half: what the model learned, and the last operation that was decided."""

from __future__ import annotations

import contextlib
import re
import uuid
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost._engine import EngineModel
from graftboost.distributed.folder import Folder, open_folder
from graftboost.distributed.operation import Operation
from graftboost.input.row_ids import NO_IDS
from graftboost.persistence import model_file
from graftboost.persistence.json_values import decode, encode
from graftboost.persistence.model_file import Saved
from graftboost.persistence.pieces import Pieces

MODEL = "model-"
DECIDED = "decided-"
SHARDS = "shards-"


def check_name(name: str) -> None:
    """Raise unless a model can have this name, which is also that of its folder."""
    if not re.fullmatch(r"[^./\\:\x00-\x1f][^/\\:\x00-\x1f]{0,99}", name):
        raise ValueError(
            f"name is {name!r}, but must have 1 to 100 characters other than '/', '\\' and ':', "
            "and not begin with '.'."
        )


def generation_of(attempt: str) -> str:
    """Return the name of the shards that an attempt to begin has started, and of their folder."""
    return f"{SHARDS}{attempt}"


def has_model(storage: str) -> bool:
    """Tell whether there are the files of a model."""
    return ModelFiles(open_folder(storage)).latest() > 0


def shard_folder(folder: Folder, generation: str, index: int) -> Folder:
    """Return the folder with the files of one shard."""
    return folder.inside(generation).inside(f"shard-{index}")


@dataclass(frozen=True)
class Request:
    """What a caller asked for, so that it is not done twice.

    Attributes
    ----------
    name : str
        The name that the caller gave it.
    added_ids, removed_ids : ndarray of int64
        The rows that it added and removed.
    """

    name: str
    added_ids: NDArray[np.int64]
    removed_ids: NDArray[np.int64]


@dataclass(frozen=True)
class Decision:
    """An operation that is done, and what the node half was afterwards.

    Attributes
    ----------
    number : int
        Decisions have increasing numbers, of which each is used once.
    operation : Operation
        The operation.
    generation : str
        The shards that hold the rows.
    n_shards : int
        Their number; 0 if the model holds no rows.
    model : str
        The file with the bins, the columns and the parameters.
    next_id : int
        The smallest id that is larger than all ids ever used.
    classes : ndarray or None
        The classes; None for a regression.
    node_half : bytes
        The node half.
    request : Request or None
        What the operation was asked for with.
    earlier : tuple of str
        The names of requests before it.
    """

    number: int
    operation: Operation
    generation: str
    n_shards: int
    model: str
    next_id: int
    classes: Any
    node_half: bytes
    request: Request | None = None
    earlier: tuple[str, ...] = ()

    def about_request(self, name: str) -> Request | None:
        """Return what was done for a request, or None if it is not known."""
        if not name:
            return None
        if self.request is not None and self.request.name == name:
            return self.request
        return Request(name, NO_IDS, NO_IDS) if name in self.earlier else None

    def next(self, **changes: Any) -> Decision:
        """Return the decision that follows this one."""
        return replace(self, number=self.number + 1, **changes)

    def without_ids(self) -> Decision:
        """Return a decision that follows this one and does not tell which rows were changed."""
        request = self.request
        if request is not None:
            request = Request(request.name, NO_IDS, NO_IDS)
        return self.next(request=request)


@dataclass(frozen=True)
class ModelFiles:
    """The files of the node half.

    ``model-<name>`` has what does not change with every operation: bins, columns, parameters.
    ``decided-<number>`` has the rest. An operation is done when such a file has been created. Each
    process that becomes the node half begins by creating one, too. Only one process can create the
    file with a given number, so a former node half that is still running cannot decide anything
    after its successor has begun.
    """

    folder: Folder

    # --- the model --------------------------------------------------------------------------------

    def write_model(self, saved: Saved) -> str:
        """Write what does not change with every operation; return the name of the file."""
        name = f"{MODEL}{uuid.uuid4().hex[:16]}"
        header, arrays = model_file.contents(saved, state=False)
        self.folder.write(name, header, arrays)
        return name

    def read_model(self, decision: Decision) -> Saved:
        """Return the model without rows, as of a decision."""
        saved = model_file.restore(self.folder.read(decision.model))
        engine_model = EngineModel.from_node_half(saved.engine_model.bins, decision.node_half)
        classes = saved.classes
        if decision.classes is not None:
            classes = {**classes, len(decision.classes): decision.classes}
        return replace(saved, engine_model=engine_model, classes=classes, next_id=decision.next_id)

    # --- decisions --------------------------------------------------------------------------------

    def latest(self) -> int:
        """Return the number of the latest decision, or 0 if there is no model."""
        names = [name for name in self.folder.names() if name.startswith(DECIDED)]
        return max((int(name.removeprefix(DECIDED)) for name in names), default=0)

    def write_decision(self, decision: Decision) -> None:
        """Write a decision. Raises `FileExistsError` if its number has been used."""
        request = decision.request
        header = {
            "kind": "decision",
            "operation": str(decision.operation),
            "generation": decision.generation,
            "n_shards": decision.n_shards,
            "model": decision.model,
            "next_id": decision.next_id,
            "classes": encode(decision.classes, "classes_"),
            "request": None if request is None else request.name,
            "earlier": list(decision.earlier),
        }
        arrays = {"node_half": Pieces.of(np.frombuffer(decision.node_half, np.uint8))}
        if request is not None:
            arrays["added_ids"] = Pieces.of(request.added_ids)
            arrays["removed_ids"] = Pieces.of(request.removed_ids)
        self.folder.create(_decided(decision.number), header, arrays)

    def read_decision(self, number: int) -> Decision:
        """Return the decision with a number."""
        found = self.folder.read(_decided(number))
        found.verify()
        header, request = found.header, None
        if header["request"] is not None:
            ids = (found.arrays[name].copy() for name in ("added_ids", "removed_ids"))
            request = Request(header["request"], *ids)
        return Decision(
            number,
            Operation.parse(header["operation"]),
            header["generation"],
            header["n_shards"],
            header["model"],
            header["next_id"],
            decode(header["classes"]),
            found.arrays["node_half"].tobytes(),
            request,
            tuple(header["earlier"]),
        )

    # --- cleaning up ------------------------------------------------------------------------------

    def check_own(self) -> None:
        """Raise if the folder has files that are not those of a model."""
        if self.latest():
            return
        others = [name for name in self.folder.names() if not name.startswith((MODEL, DECIDED))]
        others += [name for name in self.folder.folders() if not name.startswith(SHARDS)]
        if others:
            raise FileExistsError(
                f"{self.folder} has files that are not those of a model. Choose another folder."
            )

    def remove_beginning(self) -> None:
        """Remove what a model that was never complete has left, unless there is another one."""
        with contextlib.suppress(Exception):
            if self.latest():
                return
            for name in self.folder.names():
                if name.startswith(MODEL):
                    self.folder.remove(name)
            for name in self.folder.folders():
                if name.startswith(SHARDS):
                    self.folder.inside(name).clear()
            self.folder.remove_if_empty()

    def remove(self, decision: Decision) -> None:
        """Remove a decision."""
        self.folder.remove(_decided(decision.number))

    def remove_before(self, decision: Decision) -> None:
        """Remove the decisions before one."""
        for name in self.folder.names():
            if name.startswith(DECIDED) and int(name.removeprefix(DECIDED)) < decision.number:
                self.folder.remove(name)

    def remove_others(self, decision: Decision) -> None:
        """Remove all files that a decision has made obsolete."""
        self.folder.remove_left_overs()
        self.remove_before(decision)
        for name in self.folder.names():
            if name.startswith(MODEL) and name != decision.model:
                self.folder.remove(name)
        for name in self.folder.folders():
            if name.startswith(SHARDS) and name != decision.generation:
                self.folder.inside(name).clear()


def _decided(number: int) -> str:
    return f"{DECIDED}{number:012d}"
