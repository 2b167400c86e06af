"""The engine checks its arguments before it uses them, because a journal may be forged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from .making import CLASSES, LOSSES, Data, fit_engine_model, make_data, trees, update_engine_model

NONE = np.arange(0)


def some(loss: str) -> tuple[Data, Data]:
    data = make_data(0, loss, n_rows=400)
    return data.take(np.arange(380)), data.take(np.arange(380, 400))


@pytest.mark.parametrize("columns", [0, 1, 3, 40])
def test_tables_with_other_columns(columns: int) -> None:
    held, added = some("logistic")
    assert columns != held.X.shape[1]
    engine_model = fit_engine_model(held)
    X = np.zeros((20, columns))
    for use in (
        engine_model.bins.encode,
        lambda X: engine_model.raw_scores(X, 1),
        lambda X: engine_model.apply(X, 1),
        lambda X: update_engine_model(engine_model, replace(added, X=X), NONE),
    ):
        with pytest.raises(ValueError, match=f"X: has {columns} columns"):
            use(X)


@pytest.mark.parametrize("code", [1e9, -1e9, 1e300, np.nan, np.inf, 7.0, -3.0, 0.5])
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_invalid_classes(loss: str, code: float) -> None:
    held, added = some(loss)
    engine_model = fit_engine_model(held)
    before = trees(engine_model)
    y = added.y.copy()
    y[11] = code
    with pytest.raises(ValueError, match="y: has a number that no class has"):
        update_engine_model(engine_model, replace(added, y=y), held.ids[:3])
    with pytest.raises(ValueError, match="y: has a number that no class has"):
        fit_engine_model(replace(added, y=y))
    assert trees(engine_model) == before
    engine_model.check_state(1)


@pytest.mark.parametrize("relabel", [[], [0], [0, 1, 2], [0, 3], [0, -1], [1, 1], [0, 2**40]])
def test_invalid_numbers_of_classes(relabel: list[int]) -> None:
    held, added = some("logistic")
    engine_model = fit_engine_model(held)
    before = trees(engine_model)
    rows = (added.X, added.y, added.weight, added.ids)
    with pytest.raises(ValueError, match="relabel: each class needs a number of its own"):
        engine_model.update(
            *rows, NONE, np.array(relabel, np.int64), 3, "regret", 1.0, 1, 0.0, 0.0, True, 1
        )
    assert trees(engine_model) == before
    engine_model.check_state(1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("what", ["y", "weight", "ids"])
@pytest.mark.parametrize("n_rows", [0, 3, 19, 21])
def test_arrays_of_another_length(loss: str, what: str, n_rows: int) -> None:
    if what in ("weight", "ids") and n_rows == 0:
        return  # counts as not given
    held, added = some(loss)
    engine_model = fit_engine_model(held)
    before = trees(engine_model)
    wrong = {"y": np.zeros(n_rows), "weight": np.ones(n_rows), "ids": 5000 + np.arange(n_rows)}
    rows = {"y": added.y, "weight": added.weight, "ids": added.ids} | {what: wrong[what]}
    with pytest.raises(ValueError, match="has another number of rows than X"):
        engine_model.update(
            added.X,
            rows["y"],
            rows["weight"],
            rows["ids"],
            NONE,
            np.arange(CLASSES[loss]),
            CLASSES[loss],
            "regret",
            1.0,
            1,
            0.0,
            0.0,
            True,
            1,
        )
    assert trees(engine_model) == before


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_invalid_weights(weight: float) -> None:
    held, added = some("squared")
    engine_model = fit_engine_model(held)
    weights = np.ones(20)
    weights[3] = weight
    with pytest.raises(ValueError, match="sample_weight: has a weight that is negative or not"):
        update_engine_model(engine_model, replace(added, weight=weights), NONE)
