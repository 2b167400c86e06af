"""Sums at the largest numbers that their types can represent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .making import CLASSES, LOSSES, Data, fit_engine_model, trees, update_engine_model

PACKED = 2**23 - 1  # rows that a packed cell can count
SIGN = 2**22  # rows whose hessians reach the uppermost bit of a packed cell
NONE = np.arange(0)


def mostly_one_value(n_rows: int, loss: str) -> Data:
    """A column in which nearly all rows share a cell, and gradients with the largest hessian.

    Classes are in balance, so each row starts with the largest hessian, p (1 - p) = 1/4.
    """
    X = np.zeros((n_rows, 1), dtype=np.float32)
    X[: n_rows // 100] = 1.0
    y = (np.arange(n_rows) % CLASSES[loss]).astype(float)
    y[: n_rows // 200] = 1.0
    return Data(X, y, None, np.arange(n_rows), (), loss)


def with_weights(data: Data, weight: float) -> Data:
    return Data(data.X, data.y, np.full(len(data.y), weight), data.ids, (), data.loss)


def structure(engine_model: Any) -> list[dict[str, list[Any]]]:
    """The trees without values in units of weights."""
    return [
        {name: values for name, values in tree.items() if name in ("left", "feature", "value", "n")}
        for tree in trees(engine_model)
    ]


@pytest.mark.parametrize(
    ("loss", "n_rows"),
    [
        ("squared", SIGN - 1),
        ("squared", SIGN + 100_000),
        ("logistic", SIGN + 100_000),
        ("logistic", PACKED),
        ("logistic", PACKED + 1),
    ],
)
def test_packed_cells_at_their_limits(loss: str, n_rows: int) -> None:
    """Weighted rows take wide cells, which have no such limits, and give the same trees."""
    data = mostly_one_value(n_rows, loss)
    settings = {"n_estimators": 1, "max_leaf_nodes": 3, "n_threads": 2, "min_samples_leaf": 20}
    engine_model = fit_engine_model(data, **settings)
    assert engine_model.summary(True, False)["packed"] == (n_rows <= PACKED)
    [tree] = trees(engine_model)
    assert len(tree["left"]) > 1  # where h overflows, no split is found
    assert min(tree["h"]) > 0
    assert structure(engine_model) == structure(
        fit_engine_model(with_weights(data, 1.0), **settings)
    )
    engine_model.check_state(2)


def test_one_row_more_than_packed_cells_can_count() -> None:
    data = mostly_one_value(PACKED, "squared")
    settings = {"n_estimators": 1, "max_leaf_nodes": 2, "n_threads": 2, "min_samples_leaf": 20}
    engine_model = fit_engine_model(data, **settings)
    one = Data(data.X[:1], data.y[:1], None, np.array([PACKED]), (), "squared")
    assert update_engine_model(engine_model, one, NONE).refitted
    assert not engine_model.summary(True, False)["packed"]
    assert not update_engine_model(engine_model, one.take(NONE), np.array([3])).refitted
    engine_model.check_state(2)


def small(loss: str, weight: np.ndarray) -> Data:
    n_rows = len(weight)
    X = np.random.default_rng(0).normal(size=(n_rows, 3))
    y = (np.arange(n_rows) % CLASSES[loss]).astype(float) if loss != "squared" else X[:, 0]
    return Data(X, y, weight, np.arange(n_rows), (), loss)


def shifted(data: Data, by: int) -> Data:
    return Data(data.X, data.y, data.weight, data.ids + by, (), data.loss)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_that_add_up_to_the_limit(loss: str) -> None:
    """Rows with the largest possible weight are added until the sums could overflow."""
    data = small(loss, np.ones(200))
    engine_model = fit_engine_model(data, n_estimators=2, max_leaf_nodes=4)
    unit = engine_model.summary(True, False)["weight_unit"]
    heavy = small(loss, np.full(20, 2.0**30 * unit))
    rule = {"tolerance": np.inf}  # in place as long as possible
    most, largest = (2**35, 2**30) if loss == "squared" else (2**41, 2**30)
    n_before = engine_model.n_rows
    added = 0
    while not update_engine_model(
        engine_model, shifted(heavy, 1000 + added), NONE, **rule
    ).refitted:
        added += len(heavy.y)
        assert added * largest <= most
        engine_model.check_state(1)
        if added * largest > most / 2:
            break
    else:
        assert (added + len(heavy.y)) * largest + n_before / unit > most
    too_heavy = small(loss, np.full(1, 2.0**31 * engine_model.summary(True, False)["weight_unit"]))
    before = trees(engine_model)
    with pytest.raises(ValueError, match="sample_weight: a weight is too large"):
        update_engine_model(engine_model, shifted(too_heavy, 10**6), NONE, **rule)
    assert trees(engine_model) == before
    engine_model.check_state(1)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_that_diverge(weighted: bool) -> None:
    """With a learning rate of 3, residuals double until gradients are as large as they can be."""
    data = small("squared", np.ones(20_000))
    if not weighted:
        data = Data(data.X, data.y, None, data.ids, (), "squared")
    engine_model = fit_engine_model(data, n_estimators=60, learning_rate=3.0, max_leaf_nodes=2)
    assert max(abs(engine_model.recorded(59)).tolist()) == 2**30
    engine_model.check_state(2)
    update_engine_model(engine_model, data.take(NONE), data.ids[:5], tolerance=np.inf)
    engine_model.check_state(2)


def test_adding_a_weighted_row_to_a_model_of_unweighted_rows_in_wide_cells() -> None:
    """All other rows then need a weight as well, so the model is refitted."""
    data = mostly_one_value(PACKED + 1, "squared")
    engine_model = fit_engine_model(
        data, n_estimators=1, max_leaf_nodes=2, n_threads=2, min_samples_leaf=20
    )
    heavy = Data(data.X[:1], data.y[:1], np.array([2.0]), np.array([-1]), (), "squared")
    assert update_engine_model(engine_model, heavy, NONE, tolerance=np.inf).refitted
    engine_model.check_state(2)
