"""Small models in stores, and numbered changes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.persistence import file_format, model_file
from graftboost.persistence.pieces import Pieces
from graftboost.store import Store

N_ROWS, N_FEATURES = 200, 4
SMALL = {"n_estimators": 4, "max_leaf_nodes": 5, "min_samples_leaf": 5, "n_jobs": 1}


def make_rows(seed: int, n_rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES))
    return X, X[:, 0] + rng.normal(scale=0.3, size=n_rows)


def make_model(kind: str = "classifier", **parameters: Any) -> Any:
    X, y = make_rows(0, N_ROWS)
    if kind == "classifier":
        return GraftBoostClassifier(**SMALL, **parameters).fit(X, np.where(y > 0, "yes", "no"))
    return GraftBoostRegressor(**SMALL, **parameters).fit(X, y)


def change(updated: Any, number: int) -> None:
    """Make the change with this number, to a store or to an estimator."""
    held = updated.row_ids if isinstance(updated, Store) else updated.row_ids_
    rng = np.random.default_rng(number)
    out = rng.choice(np.sort(held), 3, replace=False)
    X, y = make_rows(number, 2)
    if isinstance(updated, Store):
        model = updated._state.saved.estimator == "GraftBoostClassifier"
    else:
        model = isinstance(updated, GraftBoostClassifier)
    target = np.where(y > 0, "yes", "no") if model else y
    match number % 7:
        case 0:
            updated.remove(out)
        case 1:
            updated.add(X, target)
        case 2:
            updated.update(X, target, remove=out)
        case 3:
            updated.refit() if number % 2 else updated.remove(out[:1])
        case 4:
            updated.remove(out, regrow=False)
        case 5:
            updated.update(X, target, remove=out[:1], regrow=False)
        case 6:
            updated.regrow(0.1 if number % 2 else None)


def state(owner: Any) -> bytes:
    """Everything that a file stores of the model of a store or of an estimator."""
    saved = owner._state.saved if isinstance(owner, Store) else owner
    return model_file.pack_engine_model(getattr(saved, "_engine_model", None) or saved.engine_model)


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


def write_files(path: Path, contents: dict[str, bytes]) -> None:
    """Write what `files` returned."""
    for name, content in contents.items():
        (path / name).write_bytes(content)


def drop_last_receipt(path: Path) -> None:
    """Remove the receipt of the last change, as if its writer had been killed before writing it."""
    log = path / "receipts.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


def journal_of(path: Path) -> Path:
    [journal] = path.glob("journal-*.graft")
    return journal


def records(path: Path) -> list[bytes]:
    """Return the changes in a store's journal as bytes."""
    data, found = journal_of(path).read_bytes(), []
    while data:
        size = file_format.PREFIX.unpack_from(data)[4]
        found.append(data[:size])
        data = data[size:]
    return found


def reseal_journal(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
    """Change header and arrays of the last record of a journal, with valid checksums."""
    *before, last = records(path)
    journal_of(path).write_bytes(b"".join([*before, _resealed(last, change)]))


def reseal_model(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
    """Change header and arrays of a store's model, with valid checksums."""
    [model] = path.glob("model-*.graft")
    model.write_bytes(_resealed(model.read_bytes(), change))


def _resealed(data: bytes, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> bytes:
    found = file_format.loads(data, "a file")
    header, arrays = dict(found.header), {name: a.copy() for name, a in found.arrays.items()}
    change(header, arrays)
    return file_format.dumps(header, {name: Pieces.of(np.asarray(a)) for name, a in arrays.items()})
