"""Operations on a model while something fails, and comparisons of models."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

import graftboost
from graftboost.store import digest

from .models import BY_REGRET, N_ROWS, N_SPARSE_COLUMNS, RARE, Specimen

# Takes a folder that it may write to, where the model was saved as "model". The result is compared.
Operation = Callable[[Specimen, Path], Any]


def _weight(specimen: Specimen, n_rows: int | None = None) -> Any:
    return specimen.added.weight[:n_rows] if specimen.weighted else None


def _add(specimen: Specimen, n_rows: int, *, regrow: bool = True) -> Any:
    added, weight = specimen.added, _weight(specimen, n_rows)
    return specimen.model.add(added.X[:n_rows], added.y[:n_rows], weight, regrow=regrow)


def _add_weighted(specimen: Specimen, folder: Path) -> Any:
    added = specimen.added
    return specimen.model.add(added.X[:3], added.y[:3], added.weight[:3])


def _add_new_class(specimen: Specimen, folder: Path) -> Any:
    added = specimen.added
    labels = added.y.astype("U9")
    labels[::2] = "new"
    return specimen.model.add(added.X, labels, _weight(specimen))


def _add_to_rare_columns(specimen: Specimen, folder: Path) -> Any:
    """Fill columns that had too few values to be cut."""
    added = specimen.added
    cells = np.zeros((len(added.y), N_SPARSE_COLUMNS))
    cells[:, RARE.start :] = np.random.default_rng(2).normal(size=(len(added.y), len(RARE)))
    return specimen.model.add(scipy.sparse.csr_matrix(cells), added.y, _weight(specimen))


def _update(specimen: Specimen, folder: Path) -> Any:
    added = specimen.added
    return specimen.model.update(added.X[:2], added.y[:2], _weight(specimen, 2), remove=[1, 140])


def _fit_again(specimen: Specimen, folder: Path) -> Any:
    fitted = specimen.fitted
    weight = fitted.weight if specimen.weighted else None
    specimen.model.fit(fitted.X[:100], fitted.y[:100], None if weight is None else weight[:100])


def _fit_another(specimen: Specimen, folder: Path) -> Any:
    fitted, added = specimen.fitted, specimen.added
    model = clone(specimen.model).set_params(early_stopping=True, n_iter_no_change=2)
    weight = fitted.weight if specimen.weighted else None
    return model.fit(fitted.X, fitted.y, weight, X_val=added.X, y_val=added.y)


def _save(specimen: Specimen, folder: Path) -> Any:
    path = folder / "saved"
    specimen.model.save(path)
    return path


OPERATIONS: dict[str, Operation] = {
    "fit another": _fit_another,
    "fit again": _fit_again,
    "add": lambda specimen, folder: _add(specimen, 2),
    "add many": lambda specimen, folder: _add(specimen, 12),
    "add weighted": _add_weighted,
    "add new class": _add_new_class,
    "add to rare columns": _add_to_rare_columns,
    "remove": lambda specimen, folder: specimen.model.remove([3]),
    "remove several": lambda specimen, folder: specimen.model.remove([3, 30, 31, 77, 120, 149]),
    "remove half": lambda specimen, folder: specimen.model.remove(np.arange(60, N_ROWS)),
    "remove later": lambda specimen, folder: specimen.model.remove([3, 30], regrow=False),
    "add later": lambda specimen, folder: _add(specimen, 2, regrow=False),
    "regrow": lambda specimen, folder: specimen.model.regrow(),
    "regrow a part": lambda specimen, folder: specimen.model.regrow(0.1),
    "pending": lambda specimen, folder: specimen.model.pending_,
    "update": _update,
    "refit": lambda specimen, folder: specimen.model.refit() and None,
    "refresh": lambda specimen, folder: specimen.model.refresh() and None,
    "predict": lambda specimen, folder: specimen.model.predict(specimen.added.X),
    "apply": lambda specimen, folder: specimen.model.apply(specimen.added.X),
    "check state": lambda specimen, folder: specimen.model.check_state(),
    "copy": lambda specimen, folder: copy.deepcopy(specimen.model),
    "pickle": lambda specimen, folder: pickle.loads(pickle.dumps(specimen.model)),
    "save": _save,
    "load": lambda specimen, folder: graftboost.load(folder / "model"),
}


def applies(operation: str, specimen_name: str) -> bool:
    """Whether the operation can be applied to the model."""
    if operation == "add new class":
        return "squared" not in specimen_name
    if operation == "add to rare columns":
        return "sparse" in specimen_name
    if operation == "add weighted":
        return "weighted" not in specimen_name  # the same as "add" there
    if operation.endswith("later"):
        return "rule" not in specimen_name and specimen_name not in BY_REGRET
    if operation.startswith(("regrow", "pending")):
        return "deferred" in specimen_name
    return True


def fingerprint(value: Any, specimen: Specimen) -> dict[str, str]:
    """Return values by name that must be the same, bit for bit."""
    if isinstance(value, os.PathLike):
        return fingerprint(graftboost.load(value), specimen)
    if hasattr(value, "check_state"):
        return _fingerprint_of_model(value, specimen)
    if is_dataclass(value):  # a report; seconds are not compared
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.name != "seconds"}
        return {name: _hash(part) for name, part in parts.items()}
    return {"result": _hash(value)}


def _fingerprint_of_model(model: Any, specimen: Specimen) -> dict[str, str]:
    return {
        "row ids": _hash(model.row_ids_),
        "predictions": _hash(model.predict(specimen.fitted.X)),
        "scores": _hash(model._raw_scores(specimen.fitted.X)),
        "leaves": _hash(model.apply(specimen.fitted.X)),
        "trees": digest(model._engine_model),
        "pending": repr(model.pending_),
        "classes": _hash(getattr(model, "classes_", None)),
        "parameters": repr(model.get_params()),
    }


def differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Return the names of fingerprints that differ."""
    return [name for name, value in expected.items() if found.get(name) != value]


def _hash(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype != object:
        content = f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    else:
        content = repr(value).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def go_on(specimen: Specimen) -> dict[str, str]:
    """Use the model in every way; returns fingerprints before, in between and afterwards."""
    model, added = specimen.model, specimen.added
    held = np.sort(model.row_ids_)
    before = fingerprint(model, specimen)
    reports = [
        model.remove(held[[7, 20]]),
        model.add(added.X[:4], added.y[:4], added.weight[:4] if specimen.weighted else None),
    ]
    model.check_state()
    updated = fingerprint(model, specimen)
    model.refit()
    model.check_state()
    parts = {
        "": before,
        "of what was removed later": fingerprint(reports[0], specimen),
        "of what was added later": fingerprint(reports[1], specimen),
        "after later updates": updated,
        "after a later refit": fingerprint(model, specimen),
    }
    return {
        f"{name} {when}".strip(): value
        for when, part in parts.items()
        for name, value in part.items()
    }
