"""Digests of the models of a case, one after the fit and one after each step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.builds.cases import Case
from benchmarks.builds.tables import target
from benchmarks.libraries import LIBRARIES, OURS
from datasets import Task

FIRST_ADDED_ID = 10_000_000
PREDICTED_ROWS = 50
CANDIDATE = ("feature", "low", "span", "gain")  # arrays of a tree that describe a split
NEW_CLASSES, NEW_CLASS_ROWS = (99, -5), 40

Tree = dict[str, NDArray[Any]]


def digests_of(case: Case) -> list[dict[str, str]]:
    """Digests of the fitted model, then the strategy and the digests of each step.

    The state of the model is checked after each step.
    """
    sequence = _Sequence(case)
    result = [{"strategy": "fit", **sequence.digests()}]
    for step in case.steps:
        result.append({"strategy": sequence.take(step), **sequence.digests()})
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

    def digests(self) -> dict[str, str]:
        """Digests of the parts of a model that are not its strategy."""
        engine_model = _engine_model(self.model)
        n_trees, order = engine_model.n_trees, np.argsort(engine_model.row_ids)
        trees = [engine_model.tree(t) for t in range(n_trees)]
        rows = [engine_model.row_ids, *map(engine_model.recorded, range(n_trees))]
        rows += map(engine_model.leaf_ids, range(n_trees))
        scores = getattr(self.model, "decision_function", self.model.predict)
        return {
            "trees": _digest(engine_model.base_scores, *_tree_arrays(trees)),
            "leaf candidates": _digest(*_leaf_candidates(trees)),
            "rows": _digest(*(values[order] for values in rows)),
            "predictions": _digest(scores(self.X[:PREDICTED_ROWS])),
        }

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


def _tree_arrays(trees: Iterable[Tree]) -> Iterator[NDArray[Any]]:
    """What the nodes of each tree are, without the candidates of leaves."""
    for tree in trees:
        for name, values in sorted(tree.items()):
            yield np.where(tree["left"] < 0, 0, values) if name in CANDIDATE else values


def _leaf_candidates(trees: Iterable[Tree]) -> Iterator[NDArray[Any]]:
    """The best candidate of each leaf, which is used only if the leaf is split later."""
    for tree in trees:
        for name in CANDIDATE:
            yield tree[name][tree["left"] < 0]


def _digest(*arrays: NDArray[Any]) -> str:
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(f"{array.dtype} {array.shape}".encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()[:16]


def _engine_model(model: Any) -> Any:
    """The engine's model of an estimator; in builds before it had that name, the forest."""
    return model._engine_model if hasattr(model, "_engine_model") else model._forest
