"""Nothing is left of removed rows, not even the columns they had."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from graftboost.store import Store
from tests.input.sparse_tables import make_model, make_wide

PLANTED = [987_654, 1_234_567, 1_777_771]


def plant(table: Any) -> Any:
    """A row for each of some columns that no other row has."""
    rows = table[: len(PLANTED)].tolil()
    for row, column in enumerate(PLANTED):
        rows[row, column] = [3.75, -2.5, np.nan][row]
    return rows.tocsr()


def traces(content: bytes) -> list[tuple[int, int]]:
    """Return which of the planted columns are in a file, alone or packed with a few bits."""
    words = [
        np.frombuffer(content[shift:], dtype="<u4", count=(len(content) - shift) // 4)
        for shift in range(4)
    ]
    return [
        (column, shift)
        for column in PLANTED
        for shift in range(4)
        for bits in range(4)
        if (words[shift] >> bits & (2**29 - 1) == column).any()
    ]


@pytest.mark.parametrize("arrived", ["at fit", "later"])
@pytest.mark.parametrize("memory", [None, 0])
def test_file_does_not_contain_columns_of_removed_rows(
    arrived: str, memory: float | None, tmp_path: Path
) -> None:
    table, y = make_wide(0, 600)
    planted, ids = plant(table), [5_000, 5_001, 5_002]
    path = tmp_path / "model"
    model = make_model(stats_memory=memory)
    if arrived == "at fit":
        every = scipy.sparse.vstack([table, planted]).tocsr()
        model.fit(every, [*y, 0, 1, 0], row_ids=[*range(600), *ids])
    else:
        model.fit(table, y)
        model.add(planted, [0, 1, 0], row_ids=ids)
    model.save(path)
    assert traces(path.read_bytes())
    model.remove(ids)
    model.save(path)
    assert not traces(path.read_bytes())
    assert not traces(pickle.dumps(model))
    other = make_model().fit(table, y).refit()
    model.refit()
    assert np.array_equal(model.predict_proba(planted), other.predict_proba(planted))
    assert np.array_equal(model.predict_proba(table), other.predict_proba(table))
    with Store.create(tmp_path / "one", model) as one, Store.create(tmp_path / "two", other) as two:
        assert one.digest == two.digest


@pytest.mark.parametrize("many", [1, 40])
@pytest.mark.parametrize("tolerance", [0.0, 3.0, np.inf, None])
def test_file_does_not_contain_columns_that_were_frequent_for_a_while(
    many: int, tolerance: float | None, tmp_path: Path
) -> None:
    """Added rows make a column frequent enough for splits, and are removed again.

    With a finite tolerance or the fidelity rule (None), new splits may remain until a refit. With
    tolerance 0 or infinity, no new split remains.
    """
    table, y = make_wide(0, 600)
    planted = scipy.sparse.vstack([plant(table)] * many).tocsr()
    labels = np.tile([0, 1, 0], many)
    rule = "fidelity" if tolerance is None else "regret"
    model = make_model(update_rule=rule, tolerance=tolerance).fit(table, y)
    path = tmp_path / "model"
    ids = []
    for begin in range(0, len(labels), 30):
        rows = slice(begin, begin + 30)
        ids += model.add(planted[rows], labels[rows]).added_ids.tolist()
    model.check_state()
    model.save(path)
    assert traces(path.read_bytes())
    for begin in range(0, len(ids), 30):
        model.remove(ids[begin : begin + 30])
    model.check_state()
    if tolerance in (3.0, None):
        model.refit()
    model.save(path)
    assert not traces(path.read_bytes())
    assert not traces(pickle.dumps(model))


@pytest.mark.parametrize("many", [1, 40])
def test_store_does_not_contain_columns_of_removed_rows(many: int, tmp_path: Path) -> None:
    table, y = make_wide(0, 600)
    planted = scipy.sparse.vstack([plant(table)] * many).tocsr()
    labels = np.tile([0, 1, 0], many)
    values = [struct.pack("<f", 3.75), struct.pack("<d", 3.75)]
    path = tmp_path / "store"

    def found() -> list[Any]:
        contents = [file.read_bytes() for file in path.iterdir()]
        return [
            *(trace for content in contents for trace in traces(content)),
            *(value for content in contents for value in values if value in content),
        ]

    model = make_model(update_rule="regret", tolerance=0.0).fit(table, y)
    with Store.create(path, model) as store:
        assert not found()
        ids = np.concatenate(
            [
                store.add(planted[begin : begin + 30], labels[begin : begin + 30]).added_ids
                for begin in range(0, len(labels), 30)
            ]
        )
        assert found()
        for begin in range(0, len(ids), 30):
            store.remove(ids[begin : begin + 30])
        store.compact()
        assert not found()
        store.verify()
    assert not found()
    with Store.open(path) as store:
        store.remove([3])
        store.compact()
    assert not found()


def test_adding_and_removing_rows_restores_the_model(tmp_path: Path) -> None:
    """The rows have columns that no other row has."""
    table, y = make_wide(0, 600)
    model = make_model(fidelity=0.0).fit(table, y)
    before = model.predict_proba(table)
    reports = [model.add(plant(table), [0, 1, 0])]
    assert not np.array_equal(model.predict_proba(table), before)
    reports.append(model.remove(reports[0].added_ids))
    assert [report.nodes_regrown for report in reports] == [0, 0]
    assert np.array_equal(model.predict_proba(table), before)
    model.check_state()
