"""Invalid sparse tables; the model is unchanged."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from .sparse_tables import N_COLUMNS, N_ROWS, TARGETS, X, make_model, with_cell


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_error_names_the_column_with_infinity(value: float, form: str) -> None:
    y = TARGETS["two classes"]
    model = make_model().fit(scipy.sparse.csr_array(X), y)
    before = pickle.dumps(model._engine_model)
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
    assert pickle.dumps(model._engine_model) == before


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize(
    ("part", "place", "value"),
    [("indptr", 0, 1), ("indptr", 2, 10**6), ("indptr", -1, 10**6), ("indices", 1, 10**6)],
)
def test_tables_made_invalid_after_construction(
    form: str, part: str, place: int, value: int
) -> None:
    y = TARGETS["two classes"]
    model = make_model().fit(X, y)
    table = scipy.sparse.csr_array(X).asformat(form)
    getattr(table, part)[place] = value
    for call in (
        lambda: make_model().fit(table, y),
        lambda: model.add(table, y),
        lambda: model.predict(table),
    ):
        with pytest.raises(
            ValueError,
            match=r"X has an indptr or indices that do not match .* create the table again",
        ):
            call()
    with pytest.raises(ValueError, match="X_val has an indptr or indices"):
        make_model().fit(X, y, X_val=table, y_val=y)


def test_duplicates_that_add_up_to_infinity() -> None:
    table = scipy.sparse.csr_matrix(
        (np.full(2, 3e38, dtype=np.float32), [1, 1], [0, 2, 2]), shape=(2, 3)
    )
    with pytest.raises(ValueError, match="column 1 contains infinity"):
        make_model("regression").fit(table, [1.0, 2.0])


@pytest.mark.parametrize("n_columns", [1, N_COLUMNS - 1, N_COLUMNS + 1])
def test_another_number_of_columns(n_columns: int) -> None:
    y = TARGETS["two classes"]
    model = make_model().fit(scipy.sparse.csr_array(X), y)
    before = pickle.dumps(model._engine_model)
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
    assert pickle.dumps(model._engine_model) == before


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
def test_invalid_tables(table: Any, message: str) -> None:
    y = TARGETS["regression"][: table.shape[0]]
    with pytest.raises((ValueError, TypeError), match=message):
        make_model("regression").fit(table, y)


def test_target_of_another_length() -> None:
    with pytest.raises(ValueError, match="y has 3 values"):
        make_model().fit(scipy.sparse.csr_array(X), ["yes", "no", "yes"])


@pytest.mark.parametrize("stats_memory", [-1, -0.5, "much", np.nan])
def test_invalid_stats_memory(stats_memory: Any) -> None:
    y = TARGETS["two classes"]
    with pytest.raises((ValueError, TypeError), match="stats_memory"):
        make_model(stats_memory=stats_memory).fit(X, y)
    model = make_model().fit(scipy.sparse.csr_array(X), y)
    model.set_params(stats_memory=stats_memory)
    with pytest.raises((ValueError, TypeError), match="stats_memory"):
        model.remove([3])
    assert model.n_rows_ == N_ROWS
    model.check_state()
