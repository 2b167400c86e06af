"""Categories in sparse tables, where a cell that is not stored may be a category."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import graftboost

from .sparse_tables import (
    N_COLUMNS,
    N_ROWS,
    TARGETS,
    X,
    assert_same,
    assert_same_report,
    make_model,
)


def make_categories(shift: float = 0.0) -> np.ndarray:
    """Columns of categories; in most of them 0 is the most frequent."""
    rng = np.random.default_rng(5)
    cells = np.zeros((N_ROWS, 5))
    cells[:, 0] = rng.choice([0, 3, 7], N_ROWS, p=[0.8, 0.1, 0.1]) + shift
    cells[:, 1] = rng.choice([-2, 0, 5.5], N_ROWS)
    cells[:, 2] = rng.choice([4, 6], N_ROWS)  # 0 is not a category
    cells[:, 3] = np.where(rng.random(N_ROWS) < 0.05, rng.integers(1, 4, N_ROWS), 0)
    cells[:, 4] = np.where(rng.random(N_ROWS) < 0.3, rng.normal(size=N_ROWS), 0)
    cells[rng.random(cells.shape) < 0.05] = np.nan
    return cells


@pytest.mark.parametrize("categorical", [[0, 1, 2, 3], [3], [1, 2], [True] * 4 + [False]])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_categories_in_sparse_tables(categorical: list[Any], shift: float) -> None:
    cells = make_categories(shift)
    y = 3 * (cells[:, 0] == 3) + (cells[:, 1] == 0) + 2 * (cells[:, 2] == 6) + (cells[:, 3] == 2)
    y = y + np.random.default_rng(0).normal(scale=0.1, size=N_ROWS)
    parameters = {"categorical_features": categorical, "min_samples_leaf": 3}
    model, dense = (make_model("regression", **parameters) for _ in range(2))
    model.fit(scipy.sparse.csr_array(cells[:200]), y[:200])
    dense.fit(cells[:200], y[:200])
    assert_same(model, dense, cells)
    unseen = cells[200:].copy()
    unseen[::3, :4] = 99
    unseen[1::3, :4] = 0
    report = model.update(scipy.sparse.csc_matrix(unseen), y[200:], remove=range(10))
    assert_same_report(report, dense.update(unseen, y[200:], remove=range(10)))
    assert_same(model, dense, cells)
    assert_same(model, dense, unseen)
    model.refit()
    dense.refit()
    assert_same(model, dense, cells)


def test_unseen_categories() -> None:
    model = make_model(categorical_features=[N_COLUMNS])
    with pytest.raises(ValueError, match=f"categorical_features contains {N_COLUMNS}"):
        model.fit(scipy.sparse.csr_array(X), TARGETS["two classes"])


def test_empty_categorical_column(tmp_path: Path) -> None:
    cells = make_categories()
    cells[:, 3] = 0
    y = np.nan_to_num(cells[:, 4])
    models = [
        make_model("regression", categorical_features=[0, 3]).fit(table, y)
        for table in (scipy.sparse.csr_array(cells), cells)
    ]
    later = cells[:40].copy()
    later[:, 3] = 2
    models[0].add(scipy.sparse.csr_array(later), y[:40] + 9)
    models[1].add(later, y[:40] + 9)
    assert_same(*models, cells)
    assert_same(*models, later)
    models[0].save(tmp_path / "model")
    assert_same(graftboost.load(tmp_path / "model"), models[1], later)
