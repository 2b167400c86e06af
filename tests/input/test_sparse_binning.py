"""Bins of sparse tables equal those of arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from .sparse_tables import N_COLUMNS, TARGETS, X, assert_same, assert_same_report, make_model


@pytest.mark.parametrize("binning", ["quantile", "width"])
@pytest.mark.parametrize(("max_bins", "split_sample"), [(4, 1.0), (16, 0.3), (1024, 0.1)])
def test_every_way_to_cut(binning: str, max_bins: int, split_sample: float) -> None:
    parameters = {"binning": binning, "max_bins": max_bins, "split_sample": split_sample}
    y = TARGETS["regression"]
    model = make_model("regression", **parameters).fit(scipy.sparse.csr_matrix(X), y)
    assert_same(model, make_model("regression", **parameters).fit(X, y))


@pytest.mark.parametrize("weighted", [False, True])
def test_more_rows_than_are_sampled_for_bins(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    n = 300_000
    cells = np.zeros((n, 4), dtype=np.float32)
    cells[:, 0] = np.where(rng.random(n) < 0.2, rng.normal(size=n), 0)
    cells[:, 1] = rng.random(n) < 1e-3
    cells[rng.choice(n, 30, replace=False), 2] = -1.5
    cells[rng.choice(n, 5, replace=False), 3] = 2.5
    y = cells[:, 0] + 3 * cells[:, 1] + rng.normal(scale=0.1, size=n)
    weight = (rng.random(n) < 0.97) * 1.5 if weighted else None
    model, dense = (make_model("regression", n_estimators=1, n_jobs=2) for _ in range(2))
    model.fit(scipy.sparse.csr_array(cells), y, weight)
    dense.fit(cells, y, weight)
    assert np.array_equal(model.predict(cells), dense.predict(cells))
    for f in range(4):
        assert np.array_equal(model._engine_model.bins.edges(f), dense._engine_model.bins.edges(f))


@pytest.mark.parametrize("edges", [{2: [-0.5, 0.5], 3: [1.5]}, {3: []}, {0: [0.0]}])
def test_given_edges(edges: dict[int, list[float]]) -> None:
    """Also for columns that are empty or nearly empty."""
    y = TARGETS["two classes"]
    model = make_model(bin_edges=edges).fit(scipy.sparse.csr_array(X), y)
    dense = make_model(bin_edges=edges).fit(X, y)
    assert_same(model, dense)
    for column, given in edges.items():
        assert model._engine_model.bins.edges(column).tolist() == given
    rows = np.zeros((30, N_COLUMNS))
    rows[:, 3] = np.arange(30) % 4
    labels = np.where(rows[:, 3] > 1.5, "yes", "no")
    for _ in range(4):
        report = model.add(scipy.sparse.csr_array(rows), labels)
        assert_same_report(report, dense.add(rows, labels))
        assert_same(model, dense)
