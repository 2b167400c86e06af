"""Columns with few values other than zero: their bins, and updates that change their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from tests.input.sparse_tables import assert_same, assert_same_report, make_model


def test_rare_columns_are_cut_only_at_zero() -> None:
    cells = np.zeros((200, 3))
    cells[:, 0] = np.arange(200)
    cells[:5, 1] = [1, 2, 3, -4, np.nan]  # five rows: one fewer than a leaf needs
    cells[:6, 2] = [1, 2, 3, -4, 5, 6]
    y = np.arange(200.0)
    for make in (scipy.sparse.csr_array, np.asarray):
        model = make_model("regression").fit(make(cells), y)
        bins = model._engine_model.bins
        assert [bins.n_codes(f) for f in range(3)] == [201, 4, 8]  # with that of missing values
        assert bins.encode(cells)[:5, 1].tolist() == [3, 3, 3, 1, 0]
        assert bins.encode(cells)[5:, 1].tolist() == [2] * 195


def test_one_row_in_eight_is_not_rare() -> None:
    cells = np.zeros((40, 2))
    cells[:5, 0] = [1, 2, 3, 4, 5]
    cells[:4, 1] = [1, 2, 3, 4]
    for make in (scipy.sparse.csr_array, np.asarray):
        bins = make_model("regression").fit(make(cells), np.arange(40.0))._engine_model.bins
        assert (bins.n_codes(0), bins.n_codes(1)) == (7, 4)


def test_rows_of_weight_zero_do_not_make_a_column_frequent() -> None:
    cells = np.zeros((200, 2))
    cells[:, 0] = np.arange(200)
    cells[:20, 1] = np.arange(20) + 1
    weight = np.ones(200)
    weight[3:20] = 0
    for make in (scipy.sparse.csr_array, np.asarray):
        model = make_model("regression").fit(make(cells), np.arange(200.0), weight)
        assert model._engine_model.bins.n_codes(1) == 4
        model.check_state()


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, np.asarray])
def test_column_that_only_added_rows_have(make: Any) -> None:
    """No fitted row has it, and it alone determines the class of the added rows."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((300, 8)) < 0.2, rng.normal(size=(300, 8)), 0)
    cells[:, 5] = 0
    y = rng.integers(0, 2, 300)
    model = make_model(n_estimators=10).fit(make(cells), y)
    assert model.feature_importances_[5] == 0
    later = cells.copy()
    later[:, 5] = rng.choice([-1.0, 0.0, 2.0], 300)
    label = (later[:, 5] > 0).astype(int)
    for begin in range(0, 300, 10):
        model.add(make(later[begin : begin + 10]), label[begin : begin + 10])
        model.check_state()
    assert model.feature_importances_[5] > 0
    assert model.feature_importances_.argmax() == 5
    assert model.score(make(later), label) > 0.8
    model.refit()
    assert model.feature_importances_.argmax() == 5
    assert model.score(make(later), label) > 0.8
    model.remove(slice(300, 600))
    model.refit()
    model.check_state()
    assert model.feature_importances_[5] == 0
    assert_same(model, make_model(n_estimators=10).fit(make(cells), y), cells)


@pytest.mark.parametrize("parameters", [{}, {"update_rule": "regret", "tolerance": 0.3}])
def test_columns_that_change_between_rare_and_frequent(parameters: dict[str, Any]) -> None:
    """Rows are added and removed one by one around the number that a leaf needs."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((200, 12)) < 0.1, 1.0, 0.0)
    cells[:, 7:] = 0
    y = (cells[:, 0] + rng.normal(scale=0.3, size=200) > 0.5).astype(int)
    models = [
        make_model(**parameters, stats_memory=memory).fit(make(cells), y)
        for make in (scipy.sparse.csr_array, np.asarray)
        for memory in (None, 0)
    ]
    reports: list[Any]
    for turn in range(60):
        column = 7 + turn % 5
        rows = np.zeros((1 + turn % 3, 12))
        rows[:, column] = -1.0 if turn % 7 == 0 else 1.0
        rows[0, 3] = 1.0
        if turn % 15 < 9:
            labels = np.full(len(rows), column % 2)
            reports = [model.add(scipy.sparse.csr_array(rows), labels) for model in models]
        else:
            out = models[0].row_ids_
            out = out[out >= 200]
            out = out[: len(out) // 3]
            reports = [model.remove(out) for model in models]
        for model, report in zip(models[1:], reports[1:], strict=True):
            assert_same_report(report, reports[0])
            assert_same(model, models[0], cells)
            assert_same(model, models[0], np.eye(12) - np.eye(12, k=1))


def test_rows_added_before_a_refit_are_removed_in_place() -> None:
    """The rows of a rare column are counted only when rows are added in place."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((120, 6)) < 0.3, 1.0, 0.0)
    wide = np.zeros((120, 5_000))
    wide[:, :6] = cells
    y = (cells[:, 0] > 0).astype(int)
    model = make_model(n_estimators=5, fidelity=0.0).fit(scipy.sparse.csr_array(wide), y)
    one, many = wide[:1].copy(), wide[:80].copy()
    one[0, 50], many[:, 4_000:4_900] = 1.0, 0.0
    many[np.arange(80), 4_000 + 10 * np.arange(80)] = 1.0
    model.add(scipy.sparse.csr_array(one), y[:1])
    model.add(scipy.sparse.csr_array(many), y[:80])
    model.refit()
    model.remove(slice(150, 170))
    model.check_state()
    model.add(scipy.sparse.csr_array(many[:20]), y[:20])
    model.check_state()
