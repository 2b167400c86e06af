"""The files of the node half: what the model learned, and the last operation that was decided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graftboost._engine import EngineModel
from graftboost.distributed.folder import Folder
from graftboost.persistence import model_file
from graftboost.persistence.json_values import decode, encode
from graftboost.persistence.model_file import Saved
from graftboost.persistence.pieces import Pieces

MODEL = "model"
DECIDED = "decided"


def folder_of(generation: int) -> str:
    """Return the name of the folder with the files of shards."""
    return f"shards-{generation}"


@dataclass(frozen=True)
class Decision:
    """An operation that is done, and what the node half was afterwards.

    Attributes
    ----------
    operation : int
        Its number.
    generation : int
        The operation with which the present shards began.
    n_shards : int
        The number of shards.
    next_id : int
        The smallest id that is larger than all ids ever used.
    classes : ndarray or None
        The classes; None for a regression.
    node_half : bytes
        The node half.
    request : str
        What the caller called the operation, so that it is not done twice.
    """

    operation: int
    generation: int
    n_shards: int
    next_id: int
    classes: Any
    node_half: bytes
    request: str


@dataclass(frozen=True)
class ModelFiles:
    """``model`` has the bins, the columns and the parameters; ``decided`` the rest."""

    folder: Folder

    def write_model(self, saved: Saved) -> None:
        """Write what does not change with every operation."""
        header, arrays = model_file.contents(saved, state=False)
        self.folder.write(MODEL, header, arrays)

    def write_decision(self, decision: Decision) -> None:
        """Write the decision; the operation is done when this returns."""
        header = {
            "kind": "decision",
            "operation": decision.operation,
            "generation": decision.generation,
            "n_shards": decision.n_shards,
            "next_id": decision.next_id,
            "classes": encode(decision.classes, "classes_"),
            "request": decision.request,
        }
        node_half = Pieces.of(np.frombuffer(decision.node_half, np.uint8))
        self.folder.write(DECIDED, header, {"node_half": node_half})

    def read_decision(self) -> Decision:
        """Return the last decision."""
        found = self.folder.read(DECIDED)
        found.verify()
        header = found.header
        return Decision(
            header["operation"],
            header["generation"],
            header["n_shards"],
            header["next_id"],
            decode(header["classes"]),
            found.arrays["node_half"].tobytes(),
            header["request"],
        )

    def clear(self) -> None:
        """Remove the model."""
        self.folder.remove(DECIDED)
        self.folder.remove(MODEL)

    def remove_generation(self, generation: int, n_shards: int) -> None:
        """Remove the files of shards that are not needed any more."""
        for index in range(n_shards):
            files = self.folder.inside(folder_of(generation)).inside(f"shard-{index}")
            for name in files.names():
                files.remove(name)

    def exists(self) -> bool:
        """Tell whether there is a model."""
        return {MODEL, DECIDED} <= set(self.folder.names())

    def read(self) -> tuple[Saved, Decision]:
        """Return the model without rows, as of the last decision, and the decision."""
        decision = self.read_decision()
        saved = model_file.restore(self.folder.read(MODEL))
        engine_model = EngineModel.from_node_half(saved.engine_model.bins, decision.node_half)
        classes = saved.classes
        if decision.classes is not None:
            classes = {**classes, len(decision.classes): decision.classes}
        return (
            replace(saved, engine_model=engine_model, classes=classes, next_id=decision.next_id),
            decision,
        )
