"""Tables that are mostly zeros: what comes in, what it makes, and what stays of it."""

from __future__ import annotations

import copy
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import graftboost
from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.audit import audit_removal
from graftboost.inspection import held_rows, raw_scores
from graftboost.store import Store

N_ROWS, N_COLUMNS = 240, 30
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
SMALL: dict[str, Any] = {
    "n_estimators": 5,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 6,
    "learning_rate": 0.3,
    "n_jobs": 1,
}


def make_cells(seed: int = 0, missing: bool = True) -> np.ndarray:
    """Columns of counts, of numbers of either sign, of next to nothing, and one that is full."""
    rng = np.random.default_rng(seed)
    X = np.zeros((N_ROWS, N_COLUMNS))
    for f in range(N_COLUMNS):
        share = [0.3, 0.1, 0.02, 0.0, 1.0, 0.05][f % 6]
        values = rng.integers(1, 5, N_ROWS) if f % 2 else rng.normal(size=N_ROWS).round(2)
        X[:, f] = np.where(rng.random(N_ROWS) < share, values, 0)
    if missing:
        X[rng.random(X.shape) < 0.02] = np.nan
    return X


X = make_cells()
SIGNAL = 2 * np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) - np.nan_to_num(X[:, 4])
TARGETS: dict[str, np.ndarray] = {
    "regression": 20 * SIGNAL + 5,
    "two classes": np.where(SIGNAL > 0, "yes", "no"),
    "three classes": np.digitize(SIGNAL, [-0.5, 0.5]),
}
WEIGHT = np.random.default_rng(1).exponential(size=N_ROWS)
WEIGHT[::17] = 0


def make_model(target: str = "two classes", **parameters: Any) -> Any:
    """A small model that is not fitted."""
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    return Estimator(**{**SMALL, **parameters})


def assert_same(model: Any, other: Any, table: np.ndarray = X) -> None:
    """Compare what two models say of the same rows, to the last bit."""
    expected = other._raw_scores(table)
    assert np.array_equal(model._raw_scores(table), expected)
    assert np.array_equal(model._raw_scores(scipy.sparse.csr_matrix(table)), expected)
    assert model.feature_importances_.tolist() == other.feature_importances_.tolist()
    assert np.array_equal(np.sort(model.row_ids_), np.sort(other.row_ids_))
    model.check_state()
    other.check_state()


def assert_same_report(report: Any, other: Any) -> None:
    for field in fields(report):
        if field.name != "seconds":
            assert np.array_equal(getattr(report, field.name), getattr(other, field.name)), field


def some(values: np.ndarray | None, rows: Any) -> np.ndarray | None:
    return None if values is None else values[rows]


# --- what comes in ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_model_of_the_array(form: str, kind: str) -> None:
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
    """X with unsorted columns, cells that come in two parts, and zeros that are stored."""
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


def test_messy_tables_are_read_and_left_alone() -> None:
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


def test_a_table_is_not_changed_and_need_not_be_writable() -> None:
    table, y = scipy.sparse.csr_array(X), TARGETS["two classes"]
    for part in (table.data, table.indices, table.indptr):
        part.flags.writeable = False
    model = make_model(categorical_features=[1, 3]).fit(table, y)
    model.add(table[:7], y[:7])
    model.add(table, y)
    assert_same(model, model)
    assert np.array_equal(table.toarray(), X, equal_nan=True)


def test_stored_zeros_are_zeros() -> None:
    rows, columns = np.indices(X.shape)
    full = scipy.sparse.csr_array((X.ravel(), (rows.ravel(), columns.ravel())), shape=X.shape)
    assert full.nnz == X.size
    y = TARGETS["three classes"]
    assert_same(make_model().fit(full, y), make_model().fit(scipy.sparse.csr_array(X), y))


def test_cells_of_which_the_parts_cancel() -> None:
    """Parts of a cell add up: to zero, or to NaN where one of them is missing."""
    y = np.arange(60.0) % 7
    cells = np.column_stack([np.arange(60) % 7 == 3, np.arange(60) % 2, np.zeros(60)]).astype(float)
    cells[::9, 1] = np.nan
    rows = np.repeat(np.arange(60), 6)
    columns = np.tile([2, 0, 1, 2, 1, 0], 60)
    parts = np.column_stack(
        [np.full(60, 5.0), cells[:, 0] - 3, np.ones(60), np.full(60, -5.0), cells[:, 1] - 1]
    )
    values = np.column_stack([parts, np.full(60, 3.0)]).ravel()
    table = scipy.sparse.csr_matrix((values, columns, np.arange(0, 361, 6)), shape=(60, 3))
    assert len(rows) == table.nnz
    assert np.array_equal(table.toarray(), cells, equal_nan=True)
    model = make_model("regression").fit(table, y)
    assert_same(model, make_model("regression").fit(cells, y), cells)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_neither_threads_nor_the_order_of_rows_matter(n_jobs: int) -> None:
    order = np.random.default_rng(0).permutation(N_ROWS)
    y = TARGETS["three classes"]
    model = make_model(n_jobs=n_jobs, subsample=0.7)
    model.fit(scipy.sparse.csr_matrix(X[order]), y[order], WEIGHT[order], row_ids=order)
    assert_same(model, make_model(subsample=0.7).fit(X, y, WEIGHT))


@pytest.mark.parametrize("binning", ["quantile", "width"])
@pytest.mark.parametrize(("max_bins", "split_sample"), [(4, 1.0), (16, 0.3), (1024, 0.1)])
def test_every_way_to_cut(binning: str, max_bins: int, split_sample: float) -> None:
    parameters = {"binning": binning, "max_bins": max_bins, "split_sample": split_sample}
    y = TARGETS["regression"]
    model = make_model("regression", **parameters).fit(scipy.sparse.csr_matrix(X), y)
    assert_same(model, make_model("regression", **parameters).fit(X, y))


@pytest.mark.parametrize("weighted", [False, True])
def test_more_rows_than_are_looked_at_to_place_bins(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    n = 300_000
    cells = np.zeros((n, 4), dtype=np.float32)
    cells[:, 0] = np.where(rng.random(n) < 0.2, rng.normal(size=n), 0)
    cells[:, 1] = rng.random(n) < 1e-3
    cells[rng.choice(n, 30, replace=False), 2] = -1.5
    cells[rng.choice(n, 5, replace=False), 3] = 2.5
    y = cells[:, 0] + 3 * cells[:, 1] + rng.normal(scale=0.1, size=n)
    weight = (rng.random(n) < 0.97) * 1.5 if weighted else None
    parameters = {**SMALL, "n_estimators": 1, "n_jobs": 2}
    model = GraftBoostRegressor(**parameters).fit(scipy.sparse.csr_array(cells), y, weight)
    dense = GraftBoostRegressor(**parameters).fit(cells, y, weight)
    assert np.array_equal(model.predict(cells), dense.predict(cells))
    for f in range(4):
        assert np.array_equal(model._forest.bins.edges(f), dense._forest.bins.edges(f))


# --- every method -------------------------------------------------------------------------------

METHODS = {
    "regression": ["predict", "staged_predict", "apply"],
    "two classes": [
        "predict",
        "predict_proba",
        "decision_function",
        "staged_predict",
        "staged_predict_proba",
        "staged_decision_function",
        "apply",
    ],
}
METHODS["three classes"] = METHODS["two classes"]


@pytest.mark.parametrize("fitted", ["sparse", "dense"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_method_takes_both(target: str, fitted: str) -> None:
    y = TARGETS[target]
    model = make_model(target).fit(scipy.sparse.csr_array(X) if fitted == "sparse" else X, y)
    for name in METHODS[target]:
        method = getattr(model, name)
        expected = method(X)
        for table in (scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
            if name.startswith("staged"):
                stages, others = list(method(table)), list(method(X))
                assert len(stages) == len(others) == 5
                assert all(map(np.array_equal, stages, others))
            else:
                assert np.array_equal(method(table), expected)
    assert model.score(scipy.sparse.csr_matrix(X), y) == model.score(X, y)
    assert model.score(scipy.sparse.csc_array(X), y, WEIGHT) == model.score(X, y, WEIGHT)


def test_predictions_of_few_rows() -> None:
    model = make_model().fit(scipy.sparse.csr_array(X), TARGETS["two classes"])
    expected = model.predict_proba(X)
    for i in range(20):
        assert np.array_equal(model.predict_proba(scipy.sparse.csr_matrix(X[[i]])), expected[[i]])
    empty = scipy.sparse.csr_array((3, N_COLUMNS))
    assert np.array_equal(model.predict_proba(empty), model.predict_proba(np.zeros((3, N_COLUMNS))))


def test_tags_say_so() -> None:
    for Estimator in (GraftBoostClassifier, GraftBoostRegressor):
        assert get_tags(Estimator()).input_tags.sparse


def test_partial_fit() -> None:
    y = TARGETS["two classes"]
    model, dense = make_model(), make_model()
    for begin in range(0, N_ROWS, 60):
        rows = slice(begin, begin + 60)
        model.partial_fit(scipy.sparse.csc_array(X[rows]), y[rows], classes=["no", "yes"])
        dense.partial_fit(X[rows], y[rows], classes=["no", "yes"])
        assert_same(model, dense)
    assert model.n_rows_ == N_ROWS


def test_pipelines_of_text() -> None:
    words = ["oak", "elm", "fir", "ash", "yew"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 4)) for _ in range(300)]
    y = np.array(["oak" in text for text in texts])
    model = make_pipeline(CountVectorizer(), make_model())
    assert cross_val_score(model, texts, y, cv=3).min() > 0.95
    hashed = FeatureHasher(2**20, input_type="string").transform([t.split() for t in texts])
    model = make_model().fit(hashed, y)
    assert model.score(hashed, y) > 0.95
    assert model.n_features_in_ == 2**20
    model.remove(np.flatnonzero(y)[:20])
    model.check_state()


def test_audits_of_sparse_models() -> None:
    y = TARGETS["two classes"]
    model = make_model(n_estimators=3).fit(scipy.sparse.csr_array(X[:200]), y[:200])
    dense = make_model(n_estimators=3).fit(X[:200], y[:200])
    found = audit_removal(model, range(30), scipy.sparse.csr_array(X[200:]), y[200:])
    expected = audit_removal(dense, range(30), X[200:], y[200:])
    assert "Removing 30 of 200 rows" in str(found)
    assert len(found.parts) == len(expected.parts)
    model.check_state()


@pytest.mark.parametrize("categorical", [None, [1, 2, 3]])
@pytest.mark.parametrize("target", TARGETS)
def test_held_rows_are_judged_like_the_rows_themselves(
    target: str, categorical: list[int] | None
) -> None:
    y = TARGETS[target]
    model = make_model(target, categorical_features=categorical)
    model.fit(scipy.sparse.csr_array(X[:150]), y[:150])
    model.add(scipy.sparse.csr_array(X[150:]), y[150:])
    model.add(-X[:20], y[:20])  # on the other side of zero, or of a category that is not known
    everything = np.vstack([X, -X[:20]])
    ids = np.random.default_rng(0).permutation(len(everything))
    expected = model._raw_scores(everything[ids])
    found = held_rows(model, ids)
    if target != "regression":  # targets of which are rounded to a grid
        assert np.array_equal(found.y, np.concatenate([y, y[:20]])[ids])
    assert np.array_equal(raw_scores(model, found).ravel(), expected.ravel())


# --- what is refused ----------------------------------------------------------------------------


def with_cell(value: float, column: int, form: str = "csr") -> Any:
    cells = np.nan_to_num(X[:5])
    cells[3, column] = value
    return scipy.sparse.csr_matrix(cells).asformat(form)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_names_its_column(value: float, form: str) -> None:
    y = TARGETS["two classes"]
    model = make_model().fit(scipy.sparse.csr_array(X), y)
    before = pickle.dumps(model._forest)
    table = with_cell(value, 13, form)
    for call in (
        lambda: make_model().fit(table, y[:5]),
        lambda: model.add(table, y[:5]),
        lambda: model.update(table, y[:5], remove=[3]),
        lambda: model.partial_fit(table, y[:5]),
        lambda: model.predict(table),
        lambda: model.predict_proba(table),
        lambda: model.decision_function(table),
        lambda: model.apply(table),
        lambda: model.score(table, y[:5]),
        lambda: next(iter(model.staged_predict(table))),
    ):
        with pytest.raises(ValueError, match="X: column 13 contains infinity"):
            call()
    with pytest.raises(ValueError, match="X_val: column 13 contains infinity"):
        make_model().fit(scipy.sparse.csr_array(X), y, X_val=table, y_val=y[:5])
    assert pickle.dumps(model._forest) == before


def test_parts_that_add_up_to_infinity() -> None:
    table = scipy.sparse.csr_matrix(
        (np.full(2, 3e38, dtype=np.float32), [1, 1], [0, 2, 2]), shape=(2, 3)
    )
    with pytest.raises(ValueError, match="column 1 contains infinity"):
        make_model("regression").fit(table, [1.0, 2.0])


@pytest.mark.parametrize("n_columns", [1, N_COLUMNS - 1, N_COLUMNS + 1])
def test_another_number_of_columns(n_columns: int) -> None:
    y = TARGETS["two classes"]
    model = make_model().fit(scipy.sparse.csr_array(X), y)
    before = pickle.dumps(model._forest)
    table = scipy.sparse.csr_array((4, n_columns))
    for call in (
        lambda: model.add(table, y[:4]),
        lambda: model.predict(table),
        lambda: model.predict_proba(table),
        lambda: model.apply(table),
        lambda: make_model().fit(scipy.sparse.csr_array(X), y, X_val=table, y_val=y[:4]),
    ):
        with pytest.raises(ValueError, match=f"has {n_columns} features"):
            call()
    assert pickle.dumps(model._forest) == before


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (scipy.sparse.csr_array((0, N_COLUMNS)), "0 sample"),
        (scipy.sparse.csr_array((N_ROWS, 0)), "0 feature"),
        (scipy.sparse.csr_array(np.ones((N_ROWS, 2), dtype=complex)), "X"),
        (scipy.sparse.coo_array(np.ones(N_ROWS)), "X"),
        (scipy.sparse.csr_array((N_ROWS, 2**29)), "at most 536870911"),
    ],
    ids=["no rows", "no columns", "complex", "one dimension", "too many columns"],
)
def test_tables_that_are_refused(table: Any, message: str) -> None:
    y = TARGETS["regression"][: table.shape[0]]
    with pytest.raises((ValueError, TypeError), match=message):
        make_model("regression").fit(table, y)


def test_target_of_another_length() -> None:
    with pytest.raises(ValueError, match="y has 3 values"):
        make_model().fit(scipy.sparse.csr_array(X), ["yes", "no", "yes"])


@pytest.mark.parametrize("stats_memory", [-1, -0.5, "much", np.nan])
def test_stats_memory_that_is_refused(stats_memory: Any) -> None:
    y = TARGETS["two classes"]
    with pytest.raises((ValueError, TypeError), match="stats_memory"):
        make_model(stats_memory=stats_memory).fit(X, y)
    model = make_model().fit(scipy.sparse.csr_array(X), y)
    model.set_params(stats_memory=stats_memory)
    with pytest.raises((ValueError, TypeError), match="stats_memory"):
        model.remove([3])
    assert model.n_rows_ == N_ROWS
    model.check_state()


def test_names_are_kept_though_sparse_tables_have_none() -> None:
    y = TARGETS["two classes"]
    frame = pd.DataFrame(X, columns=[f"x{f}" for f in range(N_COLUMNS)])
    model = make_model().fit(frame, y)
    dense = make_model().fit(X, y)
    table = scipy.sparse.csr_array(X)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict_proba(table), dense.predict_proba(X))
    assert not hasattr(make_model().fit(table, y), "feature_names_in_")


# --- mixing, weights, classes, validation -------------------------------------------------------


@pytest.mark.parametrize("first", ["sparse", "dense"])
@pytest.mark.parametrize("target", TARGETS)
def test_both_can_be_mixed(target: str, first: str) -> None:
    y = TARGETS[target]
    tables = [scipy.sparse.csr_array, np.asarray, scipy.sparse.csc_matrix, np.asfortranarray]
    if first == "dense":
        tables = tables[1:] + tables[:1]
    model = make_model(target).fit(tables[0](X[:150]), y[:150])
    dense = make_model(target).fit(X[:150], y[:150])
    for turn, begin in enumerate(range(150, N_ROWS, 15)):
        rows = slice(begin, begin + 15)
        out = dense.row_ids_[:: 20 + turn]
        report = model.update(tables[turn % 4](X[rows]), y[rows], remove=out)
        assert_same_report(report, dense.update(X[rows], y[rows], remove=out))
        assert_same(model, dense)


@pytest.mark.parametrize("rule", ["regret", "rank"])
@pytest.mark.parametrize("tolerance", [0.0, None, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_updates_are_those_of_the_array(
    target: str, weighted: bool, tolerance: float | None, rule: str
) -> None:
    y, weight = TARGETS[target], WEIGHT if weighted else None
    parameters: dict[str, Any] = {"tolerance_rule": rule, "subsample": 0.8}
    parameters["tolerance"] = (0.05 if rule == "rank" else 1.2) if tolerance is None else tolerance
    models = [
        make_model(target, stats_memory=memory, **parameters).fit(
            make(X[:180]), y[:180], some(weight, slice(180))
        )
        for make in (scipy.sparse.csr_array, np.asarray)
        for memory in (None, 0, 4_000)
    ]
    for turn in range(5):
        into = slice(180 + 12 * turn, 192 + 12 * turn)
        out = models[0].row_ids_[turn::31]
        reports = [
            model.update(make(X[into]), y[into], some(weight, into), remove=out)
            for model, make in zip(
                models, [scipy.sparse.csc_array] * 3 + [np.asarray] * 3, strict=True
            )
        ]
        for model, report in zip(models[1:], reports[1:], strict=True):
            assert_same_report(report, reports[0])
            assert_same(model, models[0])
        if turn in (2, 3):
            for model in models:
                model.refresh() if turn == 2 else model.refit()
            for model in models[1:]:
                assert_same(model, models[0])


def test_unseen_classes_and_first_weights() -> None:
    y = TARGETS["three classes"]
    known = np.flatnonzero(y != 1)
    model = make_model().fit(scipy.sparse.csr_array(X[known]), y[known], row_ids=known)
    dense = make_model().fit(X[known], y[known], row_ids=known)
    unseen = np.flatnonzero(y == 1)
    report = model.add(scipy.sparse.csr_array(X[unseen]), y[unseen], row_ids=unseen)
    assert report.strategy == "refit"
    assert_same_report(report, dense.add(X[unseen], y[unseen], row_ids=unseen))
    assert model.classes_.tolist() == [0, 1, 2]
    assert_same(model, dense)
    report = model.add(scipy.sparse.csr_array(X[:9]), y[:9], np.full(9, 2.5))
    assert report.strategy == "refit"
    assert_same_report(report, dense.add(X[:9], y[:9], np.full(9, 2.5)))
    assert_same(model, dense)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("given", ["both sparse", "X sparse", "X_val sparse", "held out"])
def test_validation(target: str, given: str) -> None:
    y = TARGETS[target]
    parameters = {"early_stopping": True, "n_iter_no_change": 2, "n_estimators": 40}
    model, dense = (make_model(target, **parameters) for _ in range(2))
    if given == "held out":
        model.fit(scipy.sparse.csr_matrix(X), y, WEIGHT)
        dense.fit(X, y, WEIGHT)
    else:
        fitted, held_out = X[:180], X[180:]
        dense.fit(fitted, y[:180], X_val=held_out, y_val=y[180:])
        if given != "X_val sparse":
            fitted = scipy.sparse.csr_matrix(fitted)
        if given != "X sparse":
            held_out = scipy.sparse.csc_array(held_out)
        model.fit(fitted, y[:180], X_val=held_out, y_val=y[180:])
    assert model.validation_losses_.tolist() == dense.validation_losses_.tolist()
    assert model.n_iter_ == dense.n_iter_
    assert_same(model, dense)
    assert_same_report(model.remove(model.row_ids_[::25]), dense.remove(dense.row_ids_[::25]))
    assert_same(model, dense)


def test_validation_rows_of_another_width() -> None:
    """X of single and X_val of double precision, in all forms."""
    y, fitted, held_out = TARGETS["regression"], X[:180].astype(np.float32), X[180:]
    expected = make_model("regression").fit(fitted, y[:180], X_val=held_out, y_val=y[180:])
    for make in (scipy.sparse.csr_array, np.asarray):
        for other in (scipy.sparse.csr_array, np.asarray):
            model = make_model("regression").fit(
                make(fitted), y[:180], X_val=other(held_out), y_val=y[180:]
            )
            assert model.validation_losses_.tolist() == expected.validation_losses_.tolist()
            assert_same(model, expected)


# --- categories ---------------------------------------------------------------------------------


def make_categories(shift: float = 0.0) -> np.ndarray:
    """Columns of numbers that name things; in most of them 0 is the most frequent."""
    rng = np.random.default_rng(5)
    cells = np.zeros((N_ROWS, 5))
    cells[:, 0] = rng.choice([0, 3, 7], N_ROWS, p=[0.8, 0.1, 0.1]) + shift
    cells[:, 1] = rng.choice([-2, 0, 5.5], N_ROWS)
    cells[:, 2] = rng.choice([4, 6], N_ROWS)  # 0 is no category
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
    parameters = {**SMALL, "categorical_features": categorical, "min_samples_leaf": 3}
    model = GraftBoostRegressor(**parameters).fit(scipy.sparse.csr_array(cells[:200]), y[:200])
    dense = GraftBoostRegressor(**parameters).fit(cells[:200], y[:200])
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


def test_categories_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="categorical_features holds 30"):
        make_model(categorical_features=[30]).fit(scipy.sparse.csr_array(X), TARGETS["two classes"])


def test_a_categorical_column_that_no_row_has(tmp_path: Path) -> None:
    cells = make_categories()
    cells[:, 3] = 0
    y = np.nan_to_num(cells[:, 4])
    models = [
        GraftBoostRegressor(**{**SMALL, "categorical_features": [0, 3]}).fit(table, y)
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


# --- edges that are given -----------------------------------------------------------------------


@pytest.mark.parametrize("edges", [{2: [-0.5, 0.5], 3: [1.5]}, {3: []}, {0: [0.0]}])
def test_edges_that_are_given(edges: dict[int, list[float]]) -> None:
    """Also for columns that no row, or next to none, has."""
    y = TARGETS["two classes"]
    model = make_model(bin_edges=edges).fit(scipy.sparse.csr_array(X), y)
    dense = make_model(bin_edges=edges).fit(X, y)
    assert_same(model, dense)
    for column, given in edges.items():
        assert model._forest.bins.edges(column).tolist() == given
    rows = np.zeros((30, N_COLUMNS))
    rows[:, 3] = np.arange(30) % 4
    labels = np.where(rows[:, 3] > 1.5, "yes", "no")
    for _ in range(4):
        report = model.add(scipy.sparse.csr_array(rows), labels)
        assert_same_report(report, dense.add(rows, labels))
        assert_same(model, dense)


# --- columns that come and go -------------------------------------------------------------------


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, np.asarray])
def test_a_column_that_comes_later(make: Any) -> None:
    """No fitted row has it; then rows come of which it alone decides the class."""
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


def test_columns_go_back_and_forth_over_the_floor() -> None:
    """One row more, one row less, around as many as a leaf needs."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((200, 12)) < 0.1, 1.0, 0.0)
    cells[:, 7:] = 0
    y = (cells[:, 0] + rng.normal(scale=0.3, size=200) > 0.5).astype(int)
    models = [
        make_model(tolerance=0.3, stats_memory=memory).fit(make(cells), y)
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


def test_rare_columns_are_cut_at_zero_alone() -> None:
    cells = np.zeros((200, 3))
    cells[:, 0] = np.arange(200)
    cells[:5, 1] = [1, 2, 3, -4, np.nan]  # five rows: one fewer than a leaf needs
    cells[:6, 2] = [1, 2, 3, -4, 5, 6]
    y = np.arange(200.0)
    for make in (scipy.sparse.csr_array, np.asarray):
        model = make_model("regression").fit(make(cells), y)
        bins = model._forest.bins
        assert [bins.n_codes(f) for f in range(3)] == [105, 4, 8]  # with that of missing values
        assert bins.encode(cells)[:5, 1].tolist() == [3, 3, 3, 1, 0]
        assert bins.encode(cells)[5:, 1].tolist() == [2] * 195


def test_one_row_in_eight_is_not_rare() -> None:
    cells = np.zeros((40, 2))
    cells[:5, 0] = [1, 2, 3, 4, 5]
    cells[:4, 1] = [1, 2, 3, 4]
    for make in (scipy.sparse.csr_array, np.asarray):
        bins = make_model("regression").fit(make(cells), np.arange(40.0))._forest.bins
        assert (bins.n_codes(0), bins.n_codes(1)) == (7, 4)


def test_rows_that_weigh_nothing_do_not_make_a_column_frequent() -> None:
    cells = np.zeros((200, 2))
    cells[:, 0] = np.arange(200)
    cells[:20, 1] = np.arange(20) + 1
    weight = np.ones(200)
    weight[3:20] = 0
    for make in (scipy.sparse.csr_array, np.asarray):
        model = make_model("regression").fit(make(cells), np.arange(200.0), weight)
        assert model._forest.bins.n_codes(1) == 4
        model.check_state()


# --- memory for sums ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, np.asarray])
def test_stats_memory_may_change_between_updates(make: Any) -> None:
    y = TARGETS["three classes"]
    model = make_model().fit(make(X[:180]), y[:180])
    other = make_model(stats_memory=0).fit(make(X[:180]), y[:180])
    for turn, memory in enumerate([0, None, 3_000, 1e12, 0.0, 1, None, 50]):
        other.set_params(stats_memory=memory)
        into = slice(180 + 5 * turn, 185 + 5 * turn)
        report = model.update(make(X[into]), y[into], remove=[turn, 20 + turn])
        assert_same_report(other.update(make(X[into]), y[into], remove=[turn, 20 + turn]), report)
        assert_same(other, model)


# --- copies and files ---------------------------------------------------------------------------


def updates(model: Any, turn: int, make: Any = scipy.sparse.csr_array) -> Any:
    """Make an update that follows from its number; rows for columns that nobody had are in it."""
    rng = np.random.default_rng(turn)
    rows = X[rng.choice(N_ROWS, 8)].copy()
    rows[:, 3 + 6 * (turn % 4)] = rng.choice([0.0, -1.0, 2.0], 8)
    labels = rng.choice(["no", "yes"], 8)
    held = model.row_ids if isinstance(model, Store) else model.row_ids_
    out = rng.choice(np.sort(held), 5, replace=False)
    return model.update(make(rows), labels, remove=out)


def copy_by(way: str, model: Any, folder: Path) -> Any:
    if way == "file":
        model.save(folder / "model")
        return graftboost.load(folder / "model")
    return copy.deepcopy(model) if way == "deepcopy" else pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "file"])
@pytest.mark.parametrize("memory", [None, 0])
def test_copies_go_on_alike(way: str, memory: float | None, tmp_path: Path) -> None:
    y = TARGETS["two classes"]
    model = make_model(stats_memory=memory).fit(scipy.sparse.csr_matrix(X), y)
    dense = make_model().fit(X, y)
    for turn in range(8):
        other = copy_by(way, model, tmp_path)
        assert_same(other, model)
        report = updates(model, turn)
        assert_same_report(updates(other, turn), report)
        assert_same_report(updates(dense, turn, np.asarray), report)
        assert_same(other, model)
        assert_same(dense, model)
        if turn % 3 == 2:
            model = other


def test_a_file_without_state_predicts(tmp_path: Path) -> None:
    model = make_model().fit(scipy.sparse.csr_matrix(X), TARGETS["two classes"])
    updates(model, 3)
    model.save(tmp_path / "small", updatable=False)
    small = graftboost.load(tmp_path / "small")
    assert np.array_equal(small.predict_proba(scipy.sparse.csr_array(X)), model.predict_proba(X))
    with pytest.raises(ValueError, match="updatable=False"):
        small.remove([0])


@pytest.mark.parametrize("compact_every", [2, 100])
def test_stores(compact_every: int, tmp_path: Path) -> None:
    y = TARGETS["two classes"]
    model = make_model().fit(scipy.sparse.csr_matrix(X), y)
    dense = make_model().fit(X, y)
    path = tmp_path / "store"
    with (
        Store.create(path, model, compact_every=compact_every) as store,
        Store.create(tmp_path / "dense", dense) as other,
    ):
        assert store.digest == other.digest
        for turn in range(4):
            make = scipy.sparse.csc_array if turn % 2 else np.asarray
            assert_same_report(updates(store, turn, make), updates(other, turn, np.asarray))
            updates(model, turn)
            assert store.digest == other.digest
            assert_same(store.model, model)
            assert np.array_equal(store.predict(scipy.sparse.csr_array(X)), model.predict(X))
        store.verify()
    with Store.open(path, compact_every=compact_every) as store:
        assert_same(store.model, model)
        held = np.sort(store.row_ids)[::40]
        store.remove(held)
        model.remove(held)
        store.compact()
        store.verify()
        assert_same(store.model, model)
        store.add(scipy.sparse.csr_matrix(X[:4]), y[:4])
        store.refit()
        store.refresh()
        model.add(X[:4], y[:4])
        model.refit().refresh()
    with Store.open(path, read_only=True) as store:
        assert_same(store.model, model)
        store.verify()
    with Store.open(path, compact_every=compact_every) as store:
        updates(store, 9)
        updates(model, 9)
        assert_same(store.model, model)


def test_a_store_with_infinity_or_other_columns_is_unchanged(tmp_path: Path) -> None:
    y = TARGETS["two classes"]
    path = tmp_path / "store"
    with Store.create(path, make_model().fit(scipy.sparse.csr_array(X), y)) as store:
        digest = store.digest
        with pytest.raises(ValueError, match="column 13 contains infinity"):
            store.add(with_cell(np.inf, 13), y[:5])
        with pytest.raises(ValueError, match="3 features"):
            store.add(scipy.sparse.csr_array((5, 3)), y[:5])
        assert store.digest == digest
        store.verify()
    with Store.open(path) as store:
        assert store.digest == digest


# --- very wide tables ---------------------------------------------------------------------------

WIDTH = 2_000_000


def make_wide(seed: int, n_rows: int, cells_per_row: int = 3) -> tuple[Any, np.ndarray]:
    """Rows with a few words each; the first words tell the class."""
    rng = np.random.default_rng(seed)
    words = rng.integers(100, WIDTH, (n_rows, cells_per_row))
    words[:, 0] = 1_000 * rng.integers(0, 20, n_rows) + WIDTH // 2
    counts = rng.integers(1, 4, words.shape).astype(np.float32)
    rows = np.repeat(np.arange(n_rows), cells_per_row)
    table = scipy.sparse.coo_matrix((counts.ravel(), (rows, words.ravel())), (n_rows, WIDTH))
    return table.tocsr(), (words[:, 0] // 1_000 % 3 == 0).astype(int)


def test_two_million_columns(tmp_path: Path) -> None:
    table, y = make_wide(0, 1_500)
    later, labels = make_wide(1, 60)
    tracemalloc.start()
    try:
        model = GraftBoostClassifier(n_estimators=20, max_leaf_nodes=12, n_jobs=1).fit(table, y)
        for turn in range(6):
            rows = slice(10 * turn, 10 * turn + 10)
            model.update(later[rows], labels[rows], remove=range(10 * turn, 10 * turn + 10))
        model.check_state()
        assert model.score(table, y) > 0.95
        model.save(tmp_path / "model")
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 50e6
    assert (tmp_path / "model").stat().st_size < 5e6
    again = graftboost.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(later), model.predict_proba(later))
    assert_same_report(again.remove([100, 200]), model.remove([100, 200]))
    again.check_state()
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))
    importances = model.feature_importances_
    assert importances.shape == (WIDTH,)
    assert (np.flatnonzero(importances) >= WIDTH // 2).all()
    model.refit()
    again.refit()
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))


def test_wide_models_are_those_of_the_columns_that_are_used() -> None:
    """Columns that no row has say nothing; those that rows have only change their numbers."""
    table, y = make_wide(0, 400)
    used = np.unique(table.indices)
    narrow = table[:, used]
    model = make_model(split_sample=1.0).fit(table, y)
    other = make_model(split_sample=1.0).fit(narrow, y)
    assert np.array_equal(model.predict_proba(table), other.predict_proba(narrow))
    for turn in range(4):
        out = range(10 * turn, 10 * turn + 9)
        assert_same_report(model.remove(out), other.remove(out))
        assert np.array_equal(model.predict_proba(table), other.predict_proba(narrow))
    assert model.feature_importances_[used].tolist() == other.feature_importances_.tolist()


def test_a_store_of_a_wide_model(tmp_path: Path) -> None:
    table, y = make_wide(0, 400)
    later, labels = make_wide(1, 30)
    model = make_model().fit(table, y)
    path = tmp_path / "store"
    with Store.create(path, model) as store:
        store.update(later, labels, remove=range(20))
        store.remove(range(20, 30))
    assert sum(file.stat().st_size for file in path.iterdir()) < 2e6
    model.update(later, labels, remove=range(20))
    model.remove(range(20, 30))
    with Store.open(path) as store:
        assert np.array_equal(store.predict_proba(table), model.predict_proba(table))
        store.compact()
        store.verify()
    assert sum(file.stat().st_size for file in path.iterdir()) < 2e6


def test_columns_beyond_what_a_float_can_number(tmp_path: Path) -> None:
    last = 2**24 + 5
    columns = np.where(np.arange(200) % 3 == 0, last, last - 1)
    table = scipy.sparse.csr_array((np.ones(200), (np.arange(200), columns)), shape=(200, last + 1))
    y = np.arange(200) % 3 == 0
    model = make_model().fit(table, y)
    assert model.score(table, y) == 1.0
    model.remove(range(30))
    model.add(table[:6], y[:6])
    model.check_state()
    model.save(tmp_path / "model")
    assert graftboost.load(tmp_path / "model").score(table, y) == 1.0


# --- what stays of rows that are gone -----------------------------------------------------------

PLANTED = [987_654, 1_234_567, 1_777_771]


def plant(table: Any) -> Any:
    """A row for each of some columns that no other row has."""
    rows = table[: len(PLANTED)].tolil()
    for row, column in enumerate(PLANTED):
        rows[row, column] = [3.75, -2.5, np.nan][row]
    return rows.tocsr()


def traces(content: bytes) -> list[tuple[int, int]]:
    """Return which of the planted columns stand in a file, alone or packed with a few bits."""
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
def test_columns_of_removed_rows_are_gone_from_the_file(
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
@pytest.mark.parametrize("tolerance", [0.0, 1.2, np.inf])
def test_columns_that_were_frequent_for_a_while_are_gone_too(
    many: int, tolerance: float, tmp_path: Path
) -> None:
    """Rows make a column one that nodes look at, and then go.

    What a tolerance tolerates stays until a refit; none and an infinite one tolerate no split that
    was not there before.
    """
    table, y = make_wide(0, 600)
    planted = scipy.sparse.vstack([plant(table)] * many).tocsr()
    labels = np.tile([0, 1, 0], many)
    model = make_model(tolerance=tolerance).fit(table, y)
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
    if tolerance == 1.2:
        model.refit()
    model.save(path)
    assert not traces(path.read_bytes())
    assert not traces(pickle.dumps(model))


@pytest.mark.parametrize("many", [1, 40])
def test_columns_of_removed_rows_leave_the_store(many: int, tmp_path: Path) -> None:
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

    with Store.create(path, make_model(tolerance=0.0).fit(table, y)) as store:
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


def test_adding_and_removing_gives_back_the_model(tmp_path: Path) -> None:
    """Also where the rows have columns that no other row has."""
    table, y = make_wide(0, 600)
    model = make_model(tolerance=1e12).fit(table, y)
    before = model.predict_proba(table)
    reports = [model.add(plant(table), [0, 1, 0])]
    assert not np.array_equal(model.predict_proba(table), before)
    reports.append(model.remove(reports[0].added_ids))
    assert [report.nodes_retrained for report in reports] == [0, 0]
    assert np.array_equal(model.predict_proba(table), before)
    model.check_state()


def test_clones_and_parameters() -> None:
    model = make_model(stats_memory=1e6)
    assert clone(model).get_params() == model.get_params()
    assert GraftBoostRegressor().stats_memory is None


def test_rows_that_came_with_a_refit_go_in_place() -> None:
    """How many rows have a rare column is counted only where rows come in place."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((120, 6)) < 0.3, 1.0, 0.0)
    wide = np.zeros((120, 5_000))
    wide[:, :6] = cells
    y = (cells[:, 0] > 0).astype(int)
    model = make_model(n_estimators=5, tolerance=np.inf).fit(scipy.sparse.csr_array(wide), y)
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
