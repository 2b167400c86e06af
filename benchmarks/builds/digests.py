"""Digests of the models of a case, one after the fit and one after each step."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.builds.cases import Case
from benchmarks.builds.tables import target
from benchmarks.libraries import LIBRARIES, OURS
from datasets import Task

FIRST_ADDED_ID = 10_000_000
PREDICTED_ROWS = 50
NEW_CLASSES, NEW_CLASS_ROWS = (99, -5), 40


def digests_of(case: Case) -> list[str]:
    """Digest of the fitted model, then strategy and digest of each step.

    The state of the model is checked after each step.
    """
    sequence = _Sequence(case)
    result = [sequence.digest()]
    for step in case.steps:
        strategy = sequence.take(step)
        result.append(f"{strategy} {sequence.digest()}")
        sequence.model.check_state()
    return result


class _Sequence:
    """The rows of a case and its model, which `take` changes."""

    def __init__(self, case: Case) -> None:
        self.rng = np.random.default_rng(0)
        self.X, score = case.make(case.n_rows, self.rng)
        self.y = target(score, case.n_classes, self.rng)
        self.weight = np.round(4 * self.rng.random(case.n_rows), 2) if case.weighted else None
        self.n_added = 0
        self.next_row = case.n_fitted
        task: Task = "regression" if case.n_classes is None else "classification"
        self.model = LIBRARIES[OURS].estimator(task)(**case.parameters)
        fitted = np.arange(case.n_fitted)
        self.model.fit(**self._rows(fitted, 3 * fitted + 1))

    def take(self, step: str) -> str:
        """Take one step; returns its strategy, or its name if it has none."""
        kind, _, rows = step.partition(" ")
        if kind in ("refresh", "refit"):
            getattr(self.model, kind)()
            return kind
        if rows == "new classes":
            added = self._to_add(NEW_CLASS_ROWS)
            added["y"] = self.rng.choice(NEW_CLASSES, NEW_CLASS_ROWS)
            report = self.model.add(**added)
        elif kind == "add":
            report = self.model.add(**self._to_add(int(rows)))
        elif kind == "update":
            removed = self._to_remove(int(rows))
            report = self.model.update(**self._to_add(int(rows)), remove=removed)
        else:
            n_rows = self.model.n_rows_ // 12 if rows == "a twelfth" else int(rows)
            report = self.model.remove(self._to_remove(n_rows))
        return str(report.strategy)

    def digest(self) -> str:
        """Fingerprint of the trees, of what each row recorded in them, and of predictions."""
        engine_model, sha = _engine_model(self.model), hashlib.sha256()

        def put(values: ArrayLike) -> None:
            array = np.ascontiguousarray(values)
            sha.update(f"{array.dtype} {array.shape}".encode())
            sha.update(array.tobytes())

        order = np.argsort(engine_model.row_ids)
        put(engine_model.row_ids[order])
        put(engine_model.base_scores)
        for t in range(engine_model.n_trees):
            for _, values in sorted(engine_model.tree(t).items()):
                put(values)
            put(engine_model.recorded(t)[order])
            put(engine_model.leaf_ids(t)[order])
        scores = getattr(self.model, "decision_function", self.model.predict)
        put(scores(self.X[:PREDICTED_ROWS]))
        return sha.hexdigest()[:16]

    def _to_remove(self, n_rows: int) -> NDArray[np.int64]:
        return self.rng.choice(np.sort(self.model.row_ids_), n_rows, replace=False)

    def _to_add(self, n_rows: int) -> dict[str, Any]:
        rows = np.arange(self.next_row, self.next_row + n_rows) % len(self.y)
        ids = FIRST_ADDED_ID + self.n_added + np.arange(n_rows)
        self.next_row += n_rows
        self.n_added += n_rows
        return self._rows(rows, ids)

    def _rows(self, rows: NDArray[np.int64], ids: NDArray[np.int64]) -> dict[str, Any]:
        weight = None if self.weight is None else self.weight[rows]
        return {"X": self.X[rows], "y": self.y[rows], "sample_weight": weight, "row_ids": ids}


def _engine_model(model: Any) -> Any:
    """The engine's model of an estimator; in builds before it had that name, the forest."""
    return model._engine_model if hasattr(model, "_engine_model") else model._forest
