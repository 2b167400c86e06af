"""Stores with modified files."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import Store, StoreError

REFUSALS = (InvalidFileError, StoreError)  # all errors that may be raised
KINDS = ["two classes", "three classes", "weighted regression", "sparse", "deferred"]
NAMES = {"model": "model-*", "journal": "journal-*", "receipts": "receipts*"}
N_ROWS, N_COLUMNS = 60, 4
SMALL: dict[str, Any] = {
    "n_estimators": 2,
    "max_leaf_nodes": 4,
    "min_samples_leaf": 4,
    "n_jobs": 1,
}


def make_rows(kind: str, seed: int, n_rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X: Any = rng.normal(size=(n_rows, N_COLUMNS))
    X[:, 1][rng.random(n_rows) < 0.1] = np.nan
    y: Any = np.where(X[:, 0] > 0, "yes", "no")
    if kind == "three classes":
        y = np.digitize(X[:, 0], [-0.5, 0.5])
    if kind == "weighted regression":
        y = X[:, 0] * 10
    if kind == "sparse":
        X = scipy.sparse.csr_matrix(np.where(rng.random(X.shape) < 0.5, np.nan_to_num(X), 0.0))
    weight = rng.uniform(0.5, 2, n_rows) if kind == "weighted regression" else None
    attributes = {
        "customer": [f"customer {i}" for i in rng.integers(0, 9, n_rows)],
        "age": rng.integers(20, 60, n_rows),
    }
    return {"X": X, "y": y, "sample_weight": weight, "attributes": attributes}


def _make_store(kind: str, path: Path) -> None:
    rows = make_rows(kind, 0, N_ROWS)
    attributes = rows.pop("attributes")
    Estimator = GraftBoostRegressor if kind == "weighted regression" else GraftBoostClassifier
    model = Estimator(**SMALL).fit(**rows)
    with Store.create(path, model, attributes=attributes, notes={"note": [1]}) as store:
        store.remove([3], request="before", regrow=kind != "deferred")
        store.compact()
        if kind == "deferred":
            _defer_and_regrow(store)
            return
        store.add(**make_rows(kind, 1, 3), request="add")
        store.update(**make_rows(kind, 2, 2), remove=[5, 6], request="update")
        store.refresh(request="refresh")
        if kind == "two classes":
            store.add(**{**make_rows(kind, 3, 6), "y": ["new"] * 6}, request="new class")
        else:
            store.remove([9], request="remove")


def _defer_and_regrow(store: Store) -> None:
    store.remove([4, 5], request="remove later", regrow=False)
    store.add(**make_rows("deferred", 1, 3), request="add later", regrow=False)
    store.regrow(0.2, request="regrow")
    store.remove([9], request="remove later again", regrow=False)


@dataclass(frozen=True)
class Files:
    """The files of a store by their role.

    Attributes
    ----------
    kind : str
        The kind of its model.
    names, contents : dict of str
        Names and contents of "model", "journal" and "receipts".
    requests : list of str
        The requests since the store was created.
    """

    kind: str
    names: dict[str, str]
    contents: dict[str, bytes]
    requests: list[str]

    @classmethod
    def of(cls, kind: str, folder: Path) -> Files:
        """Create a store in an empty folder, with four changes in its journal."""
        path = folder / "store"
        _make_store(kind, path)
        found = {what: next(path.glob(name)) for what, name in NAMES.items()}
        with Store.open(path, read_only=True) as store:
            requests = [receipt.request for receipt in store.history()][1:]
        return cls(
            kind,
            {what: file.name for what, file in found.items()},
            {what: file.read_bytes() for what, file in found.items()},
            requests,
        )

    def write(self, folder: Path, **changed: bytes) -> Path:
        """Write the store to a folder, with other contents for some files; returns its path."""
        path = folder / "store"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for what, content in {**self.contents, **changed}.items():
            (path / self.names[what]).write_bytes(content)
        return path
