"""A small store and all kinds of changes, each with a request that its receipt names."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from graftboost import GraftBoostClassifier
from graftboost.store import Store

WANTED = "wanted"  # the request whose outcome is checked
N_ROWS = 60
COMPACT_EVERY = 4  # changes, of which the store has two in its journal


def make_rows(seed: int, n_rows: int) -> tuple[Any, Any, dict[str, Any]]:
    """Rows, and their owners."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    who = [f"customer {number}" for number in rng.integers(0, 20, n_rows)]
    return X, np.where(X[:, 0] > 0, "yes", "no"), {"customer": who}


@cache
def make_model() -> GraftBoostClassifier:
    X, y, _ = make_rows(0, N_ROWS)
    return GraftBoostClassifier(n_estimators=3, max_leaf_nodes=4, min_samples_leaf=5, n_jobs=1).fit(
        X, y
    )


def create(path: Path) -> Store:
    attributes = make_rows(0, N_ROWS)[2]
    return Store.create(path, make_model(), attributes=attributes, request=WANTED)


def make_store(path: Path) -> None:
    """Make a store that has been compacted once and has changes in its journal, one deferred."""
    with create(path) as store:
        store.remove([3])
        store.compact()
        X, y, attributes = make_rows(1, 2)
        store.add(X, y, attributes=attributes, request="first")
        store.remove([5], request="second", regrow=False)


def copy_store(base: Path, path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(base, path)
    return path


def _add(store: Store) -> Any:
    X, y, attributes = make_rows(2, 3)
    return store.add(X, y, attributes=attributes, request=WANTED)


def _add_new_class(store: Store) -> Any:
    X, _, attributes = make_rows(2, 8)
    return store.add(X, ["new"] * 8, attributes=attributes, request=WANTED)


def _update(store: Store) -> Any:
    X, y, attributes = make_rows(3, 2)
    return store.update(X, y, remove=[8, 9], attributes=attributes, request=WANTED)


CHANGES: dict[str, Callable[[Store], Any]] = {
    "add": _add,
    "add new class": _add_new_class,
    "remove": lambda store: store.remove([10, 11], request=WANTED),
    "remove later": lambda store: store.remove([10, 11], request=WANTED, regrow=False),
    "regrow": lambda store: store.regrow(request=WANTED),
    "update": _update,
    "refit": lambda store: store.refit(request=WANTED),
    "refresh": lambda store: store.refresh(request=WANTED),
    "compact": lambda store: store.compact(),
}


def change_at_random(store: Store, rng: random.Random, request: str) -> None:
    """Make some change, and perhaps compact the store."""
    held = sorted(store.row_ids.tolist())
    kinds = ["add", "remove", "update", "refit", "refresh", "new class", "compact"]
    kinds += ["remove later", "regrow"]
    kind = rng.choices(kinds, [3, 4, 3, 1, 1, 1, 1, 3, 2])[0]
    if kind == "regrow" and not store.summary()["rows_not_yet_regrown"]:
        kind = "remove later"  # nothing to regrow has no receipt
    if kind.startswith("remove") and len(held) < N_ROWS // 2:
        kind = "add"
    out = rng.sample(held, 2)
    X, y, attributes = make_rows(rng.getrandbits(30), rng.randrange(1, 6))
    match kind:
        case "add":
            store.add(X, y, attributes=attributes, request=request)
        case "remove":
            store.remove(out, request=request)
        case "remove later":
            store.remove(out, request=request, regrow=False)
        case "regrow":
            store.regrow(rng.choice([None, 0.1]), request=request)
        case "update":
            store.update(X, y, remove=out, attributes=attributes, request=request)
        case "refit":
            store.refit(request=request)
        case "refresh":
            store.refresh(request=request)
        case "new class":
            labels = [f"class {rng.randrange(2)}"] * len(y)
            store.add(X, labels, attributes=attributes, request=request)
        case "compact":
            store.remove(out[:1], request=request)
            store.compact()


def requests(store: Store) -> list[str]:
    return [receipt.request for receipt in store.history()]


def is_closed(store: Store) -> bool:
    return "closed" in repr(store)


def left_behind(path: Path) -> list[str]:
    """Return the files in a store's directory that should not be there."""
    names = sorted(file.name for file in path.iterdir())
    models = [name for name in names if name.startswith("model-")]
    journals = [name for name in names if name.startswith("journal-")]
    return [
        *(name for name in names if name.startswith(".") or name.endswith(".tmp")),
        *models[:-1],
        *journals[:-1],
    ]
