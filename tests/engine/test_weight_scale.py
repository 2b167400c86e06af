"""Weights c * w give the model of weights w, for every c, at fit and in updates."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from graftboost._engine import EngineModel
from hypothesis import given, settings
from hypothesis import strategies as st

from graftboost import reference

from .comparing import assert_same_trees, find_features, fit_reference, update_reference
from .making import (
    LOSSES,
    RULES,
    Data,
    counted,
    fit_bins,
    fit_engine_model,
    make_data,
    trees,
    update_engine_model,
)


def splits_of(tree: dict[str, list[Any]]) -> list[tuple[int, ...]]:
    """The splits that were made; the best candidate of a leaf may be a tie of rounding errors."""
    nodes = zip(*(tree[name] for name in ("left", "right", "feature", "low", "span")), strict=True)
    return [node for node in nodes if node[0] >= 0]


def weighted_data(seed: int, loss: str, spread: float, n_rows: int = 120) -> Data:
    """Rows whose weights differ by about `spread` orders of magnitude; some are 0."""
    data = make_data(seed, loss, weighted=True, n_rows=n_rows)
    assert data.weight is not None
    orders = np.random.default_rng(seed + 1).uniform(-spread / 2, spread / 2, n_rows)
    return replace(data, weight=np.where(data.weight > 0, 10.0**orders, 0.0))


def scaled(data: Data, factor: float) -> Data:
    assert data.weight is not None
    return replace(data, weight=data.weight * factor)


def raw_scores(model: EngineModel, data: Data) -> np.ndarray:
    return model.raw_scores(data.X, n_threads=1)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    spread=st.sampled_from([0.0, 1.0, 12.0, 40.0]),
    power=st.integers(-950, 950),  # 1e20 times 2^960 would overflow
    l2_power=st.sampled_from([None, -3, 2]),
    min_hessian=st.sampled_from([0.0, 0.1, 1.0]),
    min_samples_leaf=st.integers(1, 6),
    rule=RULES,
)
def test_powers_of_two_change_no_bit(
    seed: int,
    loss: str,
    spread: float,
    power: int,
    l2_power: int | None,
    min_hessian: float,
    min_samples_leaf: int,
    rule: reference.UpdateRule,
) -> None:
    """The regularization is in units of weights, so it is scaled as they are."""
    data = weighted_data(seed, loss, spread)
    models, counts = [], []
    for factor in (1.0, 2.0**power):
        every = scaled(data, factor)
        held, added = every.take(np.arange(100)), every.take(np.arange(100, 120))
        training: dict[str, Any] = {
            "l2_regularization": 0.0 if l2_power is None else 2.0**l2_power * factor,
            "min_hessian": min_hessian,
            "min_samples_leaf": min_samples_leaf,
        }
        model = fit_engine_model(held, **training)
        before = trees(model)
        done = update_engine_model(model, added, held.ids[:15], *astuple(rule))
        model.check_state(n_threads=1)
        models.append((before, trees(model), raw_scores(model, every).tolist()))
        counts.append(counted(done))
    assert models[0] == models[1]
    assert counts[0] == counts[1]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    exponent=st.floats(-300, 300),
    min_hessian=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_any_factor_changes_no_split(
    seed: int, loss: str, exponent: float, min_hessian: float
) -> None:
    data = weighted_data(seed, loss, 1.0)
    training: dict[str, Any] = {
        "l2_regularization": 0.0,
        "n_estimators": 2,
        "min_hessian": min_hessian,
    }
    models = [
        fit_engine_model(scaled(data, factor), **training) for factor in (1.0, 10.0**exponent)
    ]
    for tree, other in zip(*map(trees, models), strict=True):
        assert splits_of(tree) == splits_of(other)
    np.testing.assert_allclose(*(raw_scores(model, data) for model in models), rtol=1e-4, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    spread=st.sampled_from([0.0, 2.0, 30.0, 500.0]),
    exponent=st.floats(-50, 50),
    min_hessian=st.sampled_from([0.0, 1e-3, 0.1, 3.0]),
    l2_regularization=st.sampled_from([0.0, 0.5]),
    rule=RULES,
)
def test_the_reference_has_the_same_grid(
    seed: int,
    loss: str,
    spread: float,
    exponent: float,
    min_hessian: float,
    l2_regularization: float,
    rule: reference.UpdateRule,
) -> None:
    data = scaled(weighted_data(seed, loss, spread, n_rows=90), 10.0**exponent)
    assert data.weight is not None
    data.weight[0] = data.weight.max()  # so that the grid can represent every added row
    held, added = data.take(np.arange(75)), data.take(np.arange(75, 90))
    training: dict[str, Any] = {
        "n_estimators": 2,
        "learning_rate": 0.3,
        "max_leaf_nodes": 6,
        "min_samples_leaf": 3,
        "min_hessian": min_hessian,
        "l2_regularization": l2_regularization,
    }
    features = find_features(held)
    engine_model = fit_engine_model(held, fit_bins(held), **training)
    model = fit_reference(held, features, training)
    assert_same_trees(engine_model, model)
    counts = update_engine_model(engine_model, added, held.ids[1:8], *astuple(rule))
    if not counts.refitted:  # the reference does not estimate costs
        update_reference(model, added, held.ids[1:8], rule)
        assert_same_trees(engine_model, model)
    engine_model.check_state(n_threads=1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("heavy", [1e3, 1e6])
def test_one_heavy_row_does_not_stop_the_others_from_learning(
    loss: str, factor: float, heavy: float
) -> None:
    data = make_data(3, loss, n_rows=400)
    weight = np.full(400, factor)
    weight[7] *= heavy
    model = fit_engine_model(replace(data, weight=weight), l2_regularization=0.0, min_hessian=0.0)
    assert all(len(tree["left"]) > 5 for tree in trees(model))


def test_rows_of_equal_weight_train_as_rows_without_weights() -> None:
    data = make_data(5, "softmax")
    training: dict[str, Any] = {"l2_regularization": 0.0, "min_hessian": 2.0}
    plain = trees(fit_engine_model(data, **training))
    for weight in (0.125, 1 / 3, 1.0, 7.0, 1e40):
        equal = replace(data, weight=np.full(len(data.y), weight))
        found = trees(fit_engine_model(equal, **training))
        for tree, other in zip(plain, found, strict=True):
            assert splits_of(tree) == splits_of(other)


@pytest.mark.parametrize("least_rows", [1, 6, 16, 120])
@pytest.mark.parametrize("weight", [None, 3.0, 1e-9])
def test_each_child_has_the_minimal_hessian(least_rows: int, weight: float | None) -> None:
    """In the first tree the hessian of every row is 1/4, because both classes are as frequent."""
    data = make_data(2, "logistic", n_rows=300)
    assert data.y.mean() == 0.5
    if weight is not None:
        data = replace(data, weight=np.full(300, weight))
    training: dict[str, Any] = {"n_estimators": 1, "l2_regularization": 0.0, "max_leaf_nodes": 20}
    by_rows = fit_engine_model(data, **training, min_samples_leaf=least_rows, min_hessian=0.0)
    by_hessian = fit_engine_model(data, **training, min_samples_leaf=1, min_hessian=least_rows / 4)
    assert trees(by_rows)[0]["n"][1:]
    assert splits_of(trees(by_rows)[0]) == splits_of(trees(by_hessian)[0])
