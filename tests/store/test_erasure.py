"""Removed rows are erased from the disk, which is searched for their unique values."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.store import Store

from .stores import files

N, PLANTED = 400, [7, 123, 399]


def _rows(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            **{f"x{i}": rng.normal(size=n) for i in range(12)},
            "town": pd.Categorical([f"town-{i % 5}" for i in range(n)]),
        }
    )


def _plant(X: Any, rows: list[int]) -> Any:
    """Unique values, one in every column."""
    X = X.copy()
    X["town"] = X["town"].astype(str)
    for row in rows:
        for i in range(12):
            X.loc[row, f"x{i}"] = 1000 + 17.123456789 * (row + 1) + i
        X.loc[row, "town"] = f"PLANTED-TOWN-{row}"
    X["town"] = X["town"].astype("category")
    return X


def _patterns(model: Any, X: Any, y: Any, weight: Any, row: int, place: int) -> dict[str, bytes]:
    """Return the encodings of the values of a row that are long enough to be unique."""
    engine_model = model._engine_model
    found = {
        f"x{i}, {code}": struct.pack(f"<{code}", X.loc[place, f"x{i}"])
        for i in range(12)
        for code in "df"
    }
    found["text"] = str(X.loc[place, "town"]).encode()
    found["target"] = struct.pack("<d", y[place]) if isinstance(y[place], float) else b""
    found["weight"] = struct.pack("<d", weight[place])
    slot = int(np.flatnonzero(engine_model.row_ids == row)[0])
    size = len(engine_model.row_ids)
    cells = np.concatenate(
        next(p for n, _, p in engine_model.arrays(True, False) if n == "row_cells")
    )
    found["codes"] = cells.reshape(size, -1)[slot].tobytes()
    for t in range(engine_model.n_trees):
        recorded = engine_model.recorded(t)
        if (recorded == recorded[slot]).sum() == 1:
            # Two bytes are found by chance: those of a class are searched with three rows beside.
            first = min(max(slot - 2, 0), size - 4)
            run = recorded[first : first + 4].astype("<i2")
            is_class = not isinstance(y[place], float)
            alone = struct.pack("<i", recorded[slot])
            found[f"gradient in tree {t}"] = run.tobytes() if is_class else alone
    found["attribute"] = f"customer-{row:06}".encode()
    return {name: pattern for name, pattern in found.items() if pattern}


def _found_in(path: Path, patterns: dict[str, bytes]) -> set[tuple[str, str]]:
    return {
        (name, file)
        for file, content in files(path).items()
        for name, pattern in patterns.items()
        if pattern in content
    }


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
@pytest.mark.parametrize("arrived", ["at fit", "later"])
@pytest.mark.parametrize("by_itself", [False, True])
@pytest.mark.parametrize("regrow", [True, False])
def test_files_contain_nothing_of_removed_rows(
    tmp_path: Path, kind: str, arrived: str, by_itself: bool, regrow: bool
) -> None:
    rng = np.random.default_rng(0)
    X = _plant(_rows(N, 0), PLANTED)
    y: Any = X["x0"].to_numpy() + rng.normal(size=N)
    weight = 0.5 + rng.random(N)
    # Fewer bins than 255: twelve codes 0xff in a row are also three numbers -1.
    small = {"n_estimators": 5, "max_leaf_nodes": 6, "min_samples_leaf": 5, "max_bins": 200}
    if kind == "classifier":
        y = np.where(y > 0, 1, 0)
        model: Any = GraftBoostClassifier(**small)
    else:
        y[PLANTED] = [3.14159265358979, 2.71828182845904, 1.41421356237309]
        model = GraftBoostRegressor(**small)
    customers = np.array([f"customer-{i:06}" for i in range(N)])
    first = np.arange(N) if arrived == "at fit" else np.delete(np.arange(N), PLANTED)
    frame = X if arrived == "at fit" else _rows(N, 0)
    model.fit(frame.iloc[first], y[first], weight[first], row_ids=first)

    path = tmp_path / "store"
    compact_every = 6 if by_itself else 100
    with Store.create(
        path, model, attributes={"customer": customers[first]}, compact_every=compact_every
    ) as store:
        if arrived == "later":
            store.add(
                X.iloc[PLANTED],
                y[PLANTED],
                weight[PLANTED],
                row_ids=PLANTED,
                attributes={"customer": customers[PLANTED]},
            )
        patterns = {}
        for row in PLANTED:
            for name, pattern in _patterns(store.model, X, y, weight, row, row).items():
                patterns[f"row {row}: {name}"] = pattern
        there = {name.split(": ")[1] for name, _ in _found_in(path, patterns)}
        assert {"attribute", "weight"} <= there
        assert ("codes" in there) == (arrived == "at fit")
        assert ("x3, d" in there) == (arrived == "later")

        store.remove(PLANTED[:2], request="the first two", regrow=regrow)
        store.remove(PLANTED[2:], regrow=regrow)
        if by_itself:
            for row in range(200, 206):
                store.remove([row])
        else:
            store.compact()
        assert _found_in(path, patterns) == set()
        assert store.receipt("the first two").removed == [[7, 8], [123, 124]]
        assert store.summary()["rows_not_yet_regrown"] == (0 if regrow else len(PLANTED))
        store.verify()
    assert _found_in(path, patterns) == set()
    with Store.open(path) as store:
        store.remove([300])
        store.compact()
    assert _found_in(path, patterns) == set()
