"""Models with one row whose stored values can all be recognised, and ways to remove it."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .frozen_process import FrozenProcess, freeze
from .memory_scan import Found, Secret, find_in_memory

N_ROWS, N_FEATURES = 1_500, 12
N_COLUMNS, N_FREQUENT = 200_000, 300  # of a sparse table
N_CLASSES = 3
IN_ALL_TREES = "gradients of the row"
KINDS = ["regression", "three classes", "sparse"]  # the last is a regression too
TRIES, CERTAIN = 12, 4  # a secret of four bytes is left if 4 of 12 tries find it


@dataclass
class Rows:
    """The arrays that a caller passes to the model, with one planted row.

    `secrets` are the id, weight and so on of that row. No other memory of this process contains
    them.
    """

    kind: str
    X: Any
    y: np.ndarray
    weight: np.ndarray
    ids: np.ndarray
    planted: int
    secrets: dict[str, Secret] = field(default_factory=dict)

    def wipe(self) -> None:
        """Overwrite the caller's arrays."""
        for array in (self.y, self.weight, self.ids):
            array[:] = 0
        for array in [self.X] if self.kind != "sparse" else [self.X.data, self.X.indices]:
            array[:] = 0


def make_rows(kind: str, n_rows: int, planted: int | None, seed: int) -> Rows:
    """Make rows; if `planted` is None, none of them is planted."""
    rng = np.random.default_rng(seed)
    ids = np.arange(n_rows) + n_rows * seed
    weight = 0.75 + 0.25 * rng.random(n_rows)  # unlike the planted one, and so are their sums
    if kind == "sparse":
        X = _sparse_table(rng, n_rows)
        signal = np.asarray(X[:, :20].sum(axis=1)).ravel()
    else:
        X = rng.normal(size=(n_rows, N_FEATURES))
        signal = X[:, 0] + X[:, 1]
    y = signal + rng.normal(scale=0.3, size=n_rows)
    if kind == "three classes":
        y = np.digitize(y, np.quantile(y, [0.4, 0.8])).astype(np.float64)
    rows = Rows(kind, X, y, weight, ids, planted or 0)
    if planted is not None:
        _plant(rows, planted)
    return rows


def _sparse_table(rng: np.random.Generator, n_rows: int) -> Any:
    """Ten frequent columns in each row; the last cell of a row is left for a rare column."""
    columns = np.sort(rng.permuted(np.tile(np.arange(N_FREQUENT), (n_rows, 1)), axis=1)[:, :10])
    cells = np.hstack([columns, N_FREQUENT + rng.integers(0, 1000, size=(n_rows, 1))])
    values = rng.normal(size=(n_rows, 11)).ravel()
    begin = 11 * np.arange(n_rows + 1, dtype=np.int32)
    shape = (n_rows, N_COLUMNS)
    return scipy.sparse.csr_array((values, cells.astype(np.int32).ravel(), begin), shape=shape)


def _plant(rows: Rows, planted: int) -> None:
    """Write unique values into a row, similar to those of other rows."""
    place = slice(planted, planted + 1)
    drawn = [("id", rows.ids, 0x0123), ("weight", rows.weight, 0x3FF1)]
    # Targets that are larger than the model expects, so that gradients are long negative numbers.
    if rows.kind == "three classes":
        rows.y[place] = 2.0
        rows.X[place] = -np.abs(rows.X[place])
    else:
        drawn.append(("target", rows.y, 0x4021))
    for name, values, high in drawn:
        rows.secrets[name] = Secret.draw(8, high)
        rows.secrets[name].write(values[place])
    if rows.kind == "sparse":
        rare = Secret.draw(4, 0x0002)  # from column 2 * 65,536 on
        rare.write(rows.X.indices[11 * planted + 10 : 11 * planted + 11])
        for code in (1, 2, 3):
            rows.secrets[f"rare cell with code {code}"] = rare.derive(2, 1 << 31 | code)


def new_model(kind: str, **parameters: Any) -> Any:
    settings = {"n_estimators": 4, "max_leaf_nodes": 8, "n_jobs": 1, **parameters}
    Estimator = GraftBoostClassifier if kind == "three classes" else GraftBoostRegressor
    return Estimator(**settings)


@dataclass
class Planted:
    """A model that holds a planted row; all other copies of the row are overwritten."""

    kind: str
    model: Any
    secrets: dict[str, Secret]
    file: Path | None = None  # that the model was loaded from

    def add_secrets_of_the_engine(self) -> None:
        """Add the values that the engine computed from the row to the secrets."""
        parts = {name: pieces for name, _, pieces in self.model._engine_model.arrays(True, False)}
        [ids], [weights], [cells] = parts["row_ids"], parts["row_weight"], parts["row_cells"]
        slot = self.secrets["id"].find(ids)
        place = slice(slot, slot + 1)
        self.secrets["integer weight"] = Secret.hide(weights[place])
        if self.kind != "sparse":
            self.secrets["codes"] = Secret.hide(cells.reshape(len(ids), -1)[slot], step=1)
        if self.kind == "three classes":
            self._add_short_gradients(parts["tree_recorded"], slot)
            return
        for tree, recorded in enumerate(parts["tree_recorded"]):
            # Not as a Python number, which would be a copy.
            is_unique = np.count_nonzero(recorded == recorded[place]) == 1
            if is_unique and bool((recorded[place] < -(1 << 16)).all()):
                self.secrets[f"gradient in tree {tree}"] = Secret.hide(recorded[place])

    def _add_short_gradients(self, of_trees: list[np.ndarray], slot: int) -> None:
        """Add runs of gradients of two bytes, which could be anywhere by chance if alone.

        Gradients of a tree lie in the order of the rows, wherever many are copied: a run has the
        row's own and those of three rows beside it. Gradients of one row that is changed alone lie
        in the order of the trees: another run has them all. In the first iteration the rows of a
        class record nearly the same, so another row that takes the place may complete a run again.
        """
        place = slice(slot, slot + 1)
        for tree, recorded in enumerate(of_trees):
            is_unique = np.count_nonzero(recorded == recorded[place]) == 1
            if tree >= N_CLASSES and is_unique and bool((recorded[place] < -(1 << 11)).all()):
                first = min(max(slot - 2, 0), len(recorded) - 4)
                run = Secret.hide(recorded[first : first + 4])
                self.secrets[f"gradient in tree {tree}"] = run
        of_row = np.zeros(len(of_trees), dtype=np.int16)
        for tree, recorded in enumerate(of_trees):
            of_row[tree : tree + 1] = recorded[place]
        self.secrets[IN_ALL_TREES] = Secret.hide(of_row)
        of_row[:] = 0

    def remove(self, n_others: int, *, regrow: bool = True) -> Any:
        """Remove the row together with others; returns the strategy of the update."""
        gone = np.zeros(1 + n_others, dtype=np.int64)
        gone[1:] = self.some_ids(n_others)
        self.secrets["id"].write(gone[:1])
        report = self.model.remove(gone, regrow=regrow)
        strategy = report.strategy
        gone[:] = 0
        del report
        return strategy

    def some_ids(self, n: int) -> np.ndarray:
        """Ids of rows that are not planted."""
        ids = self.model.row_ids_
        found = ids[ids < 1 << 32][:n].copy()
        ids[:] = 0
        return found

    def missing(self) -> list[str]:
        """Secrets that are not found; before a removal there should be none."""
        cells = {name for name in self.secrets if "rare cell" in name}
        found = self.find()
        others = cells | {IN_ALL_TREES}  # the latter lie together only while the row is changed
        missing = [name for name in self.secrets if name not in found and name not in others]
        if cells and not cells & found.keys():  # it has one of the codes
            missing.append("rare cell")
        return missing

    def find(self, before: FrozenProcess | None = None) -> Found:
        """Secrets that are found, and where: after a removal, there should be none."""
        return find_left(self.secrets, before, self.file)


def find_left(
    wanted: dict[str, Secret], before: FrozenProcess | None, also: Path | None = None
) -> Found:
    gc.collect()
    found = find_in_memory(wanted, also, before)
    return {name: places for name, places in found.items() if places}


def plant_at_fit(kind: str, planted: int = 700, **parameters: Any) -> Planted:
    rows = make_rows(kind, N_ROWS, planted, seed=1)
    model = new_model(kind, **parameters).fit(rows.X, rows.y, rows.weight, row_ids=rows.ids)
    return _planted(rows, model)


def plant_later(
    kind: str,
    n_rows: int = N_ROWS,
    n_added: int = 5,
    *,
    regrow: bool = True,
    **parameters: Any,
) -> Planted:
    others, rows = make_rows(kind, n_rows, None, seed=1), make_rows(kind, n_added, 2, seed=1_000)
    model = new_model(kind, **parameters)
    model.fit(others.X, others.y, others.weight, row_ids=others.ids)
    model.add(rows.X, rows.y, rows.weight, row_ids=rows.ids, regrow=regrow)
    return _planted(rows, model)


def _planted(rows: Rows, model: Any) -> Planted:
    rows.wipe()
    planted = Planted(rows.kind, model, rows.secrets)
    planted.add_secrets_of_the_engine()
    return planted


def assert_erased(make: Callable[[], Planted], remove: Callable[[Planted], Any]) -> None:
    """Check that a removal leaves nothing of the planted row in memory, which first was there."""

    def attempt(before: FrozenProcess) -> Found:
        planted = make()
        assert planted.missing() == []
        assert any("gradient in" in name for name in planted.secrets)
        remove(planted)
        left = planted.find(before)
        planted.model.check_state()
        return left

    assert_nothing_left(attempt)


def assert_nothing_left(attempt: Callable[[FrozenProcess], Found]) -> None:
    """Check that `attempt` leaves nothing in memory of the secrets that it draws.

    It is passed the process as it was before, and returns what it finds in the end.

    Where no trace is left, a try still finds up to one in a thousand secrets of four bytes, because
    an equal number was written since. So if a try finds one, others follow with other secrets. With
    4 of 12, chance fails less than one in a million runs of all tests; a trace that only half of
    the tries leave passes one in thirty times after it was found.
    """
    tries_with: Counter[str] = Counter()
    for n_tries in range(1, TRIES + 1):
        gc.collect()
        with freeze() as before:
            left = attempt(before)
        tries_with.update({family(name) for name in left})
        most = max(tries_with.values(), default=0)
        is_certain = any(not place.is_short for places in left.values() for place in places)
        if is_certain or most == CERTAIN:
            raise AssertionError(f"left in {n_tries} tries: {dict(tries_with)}, now {left}")
        if most == 0 or most + TRIES - n_tries < CERTAIN:
            return


def family(name: str) -> str:
    """Return the name of a secret without its tree or code."""
    return re.sub(r" (in tree|with code) \d+", "", name)
