"""Sparse tables of every format give the same model as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from .sparse_tables import N_ROWS, TARGETS, X, assert_same, assert_same_report, make_model

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_model_as_the_array(form: str, kind: str) -> None:
    make: Callable[[Any], Any] = getattr(scipy.sparse, f"{form}_{kind}")
    y = TARGETS["two classes"]
    dense = make_model().fit(X[:200], y[:200])
    model = make_model().fit(make(X[:200]), y[:200])
    assert_same(model, dense)
    for other in (model, dense):
        assert np.array_equal(other.predict_proba(make(X)), dense.predict_proba(X))
    report = model.update(make(X[200:]), y[200:], remove=[3, 77])
    assert_same_report(report, dense.update(X[200:], y[200:], remove=[3, 77]))
    assert_same(model, dense)


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]
)
def test_whole_numbers_of_every_width(dtype: Any) -> None:
    cells = np.nan_to_num(X).astype(int).clip(0, 100).astype(dtype)
    y = TARGETS["regression"]
    model = make_model("regression").fit(scipy.sparse.csr_array(cells), y)
    other = make_model("regression").fit(cells, y)
    assert_same(model, other, cells.astype(float))
    assert np.array_equal(model.predict(scipy.sparse.csc_matrix(cells)), other.predict(cells))
    model.add(scipy.sparse.csr_matrix(cells[:9]), y[:9])
    other.add(cells[:9].astype(float), y[:9])
    assert_same(model, other, cells.astype(float))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_floats_of_every_width(dtype: Any) -> None:
    cells = X.astype(dtype)
    y = TARGETS["regression"]
    model = make_model("regression").fit(scipy.sparse.csr_array(cells), y)
    assert_same(model, make_model("regression").fit(cells, y), cells)


def test_large_indices() -> None:
    table = scipy.sparse.csr_matrix(X)
    table.indices, table.indptr = table.indices.astype(np.int64), table.indptr.astype(np.int64)
    y = TARGETS["two classes"]
    model = make_model().fit(table, y)
    assert_same(model, make_model().fit(X, y))
    assert table.indices.dtype == np.int64


def messy() -> Any:
    """X with unsorted columns, cells stored in two parts, and stored zeros."""
    rng = np.random.default_rng(3)
    data, columns, begin = [], [], [0]
    for row in X:
        has = np.flatnonzero(row)
        zeros = rng.choice(np.flatnonzero(row == 0), 3)
        cells = [(f, row[f] / 2) for f in has] * 2 + [(f, 0.0) for f in zeros] + [(zeros[0], -0.0)]
        order = rng.permutation(len(cells))
        columns += [cells[i][0] for i in order]
        data += [cells[i][1] for i in order]
        begin.append(len(data))
    return scipy.sparse.csr_matrix((np.array(data), np.array(columns), begin), shape=X.shape)


def test_messy_tables_are_read_and_not_modified() -> None:
    table, y = messy(), TARGETS["two classes"]
    before = [table.data.copy(), table.indices.copy(), table.indptr.copy()]
    dense = make_model().fit(X, y)
    model = make_model().fit(table, y, X_val=table, y_val=y)
    assert_same(model, dense)
    model.add(table, y, row_ids=np.arange(1_000, 1_000 + N_ROWS))
    dense.add(X, y, row_ids=np.arange(1_000, 1_000 + N_ROWS))
    assert_same(model, dense)
    assert np.array_equal(model.predict_proba(table), dense.predict_proba(X))
    assert np.array_equal(model.apply(table), dense.apply(X))
    for found, expected in zip([table.data, table.indices, table.indptr], before, strict=True):
        assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")


def test_tables_are_not_modified_and_may_be_read_only() -> None:
    table, y = scipy.sparse.csr_array(X), TARGETS["two classes"]
    for part in (table.data, table.indices, table.indptr):
        part.flags.writeable = False
    model, dense = (make_model(categorical_features=[1, 3]).fit(X, y) for X in (table, X))
    for n in (7, len(y)):
        model.add(table[:n], y[:n])
        dense.add(X[:n], y[:n])
    assert_same(model, dense)
    assert np.array_equal(table.toarray(), X, equal_nan=True)


def test_stored_zeros_are_zeros() -> None:
    rows, columns = np.indices(X.shape)
    full = scipy.sparse.csr_array((X.ravel(), (rows.ravel(), columns.ravel())), shape=X.shape)
    assert full.nnz == X.size
    y = TARGETS["three classes"]
    assert_same(make_model().fit(full, y), make_model().fit(scipy.sparse.csr_array(X), y))


def test_duplicates_that_cancel() -> None:
    """The parts of a cell are added: to zero, or to NaN if one of them is missing."""
    y = np.arange(60.0) % 7
    cells = np.column_stack([np.arange(60) % 7 == 3, np.arange(60) % 2, np.zeros(60)]).astype(float)
    cells[::9, 1] = np.nan
    columns = np.tile([2, 0, 1, 2, 1, 0], 60)
    parts = np.column_stack(
        [np.full(60, 5.0), cells[:, 0] - 3, np.ones(60), np.full(60, -5.0), cells[:, 1] - 1]
    )
    values = np.column_stack([parts, np.full(60, 3.0)]).ravel()
    table = scipy.sparse.csr_matrix((values, columns, np.arange(0, 361, 6)), shape=(60, 3))
    assert np.array_equal(table.toarray(), cells, equal_nan=True)
    model = make_model("regression").fit(table, y)
    assert_same(model, make_model("regression").fit(cells, y), cells)
