"""Copies of rows and ids that are made before the engine gets them are overwritten too."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from . import needs_memory_scan
from .frozen_process import FrozenProcess
from .memory_scan import Found, Secret, count_in_memory
from .planting import (
    N_ROWS,
    Planted,
    assert_erased,
    assert_nothing_left,
    find_left,
    make_rows,
    plant_at_fit,
    plant_later,
)

pytestmark = needs_memory_scan

FIRST_SECRET_ID = 1 << 32


# --- ids ------------------------------------------------------------------------------------------


def by_slice(planted: Planted) -> None:
    planted.model.remove(slice(FIRST_SECRET_ID, None)).removed_ids[:] = 0


def by_mask(planted: Planted) -> None:
    ids = planted.model.row_ids_
    mask = ids >= FIRST_SECRET_ID
    ids[:] = 0
    planted.model.remove(mask).removed_ids[:] = 0


def in_no_order(planted: Planted) -> None:
    planted.remove(20)


def after_an_error(planted: Planted) -> None:
    twice = np.zeros(3, dtype=np.int64)
    planted.secrets["id"].write(twice[:1])
    with pytest.raises(ValueError, match="contains 0 more than once"):
        planted.model.remove(twice)
    twice[:] = 0
    planted.remove(0)


@pytest.mark.parametrize("remove", [by_slice, by_mask, in_no_order, after_an_error])
@pytest.mark.parametrize("arrive", [plant_at_fit, plant_later])
def test_ids(remove: Any, arrive: Any) -> None:
    assert_erased(lambda: arrive("regression"), remove)


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrived", ["at fit", "later"])
def test_weights_times_class_weights(arrived: str) -> None:
    def make() -> Planted:
        make_planted = plant_at_fit if arrived == "at fit" else plant_later
        planted = make_planted("three classes", class_weight={0: 1.0, 1: 1.5, 2: 3.0})
        parts = {
            name: pieces for name, _, pieces in planted.model._engine_model.arrays(True, False)
        }
        slot = planted.secrets["id"].find(parts["row_ids"][0])
        del planted.secrets["weight"]  # the model has only the product
        planted.secrets["product"] = Secret.hide(parts["row_raw_weight"][0][slot : slot + 1])
        return planted

    assert_erased(make, lambda planted: planted.remove(0))


# --- features -------------------------------------------------------------------------------------


def fit(X: Any, y: Any, weight: Any, **parameters: Any) -> Any:
    return GraftBoostRegressor(n_estimators=2, n_jobs=1, **parameters).fit(X, y, weight)


def fit_with_weightless_rows(X: Any, y: Any, weight: Any) -> Any:
    weight[:100] = 0
    return fit(X, y, weight)


def fit_and_add(X: Any, y: Any, weight: Any) -> Any:
    rows = make_rows("regression", N_ROWS, None, seed=9)
    categories = [int(value) for value in rows.X[:, 11] > 0]
    rows.X[:, 11] = np.where(categories, 3.0, 5.0)
    model = fit(rows.X, rows.y, rows.weight, categorical_features=[11])
    X[:, 11] = 5.0
    model.add(X, y, weight)
    return model


def fail_to_fit(X: Any, y: Any, weight: Any) -> None:
    with pytest.raises(ValueError, match="bin_edges"):
        fit(X, y, weight, categorical_features=[11], early_stopping=True, bin_edges={99: [1.0]})


FITS: dict[str, Any] = {
    "plain": fit,
    "categories": lambda *rows: fit(*rows, categorical_features=[11]),
    "rows held out": lambda *rows: fit(*rows, early_stopping=True),
    "rows of weight zero": fit_with_weightless_rows,
    "rows that are added": fit_and_add,
    "a fit that fails": fail_to_fit,
}


@pytest.mark.parametrize("train", FITS.values(), ids=FITS)
def test_features(train: Any) -> None:
    """The model has codes; the values are nowhere once the caller's array is overwritten."""
    rows = make_rows("regression", N_ROWS, 703, seed=1)
    value = Secret.draw(8, 0x3FF1)
    value.write(rows.X[703, 3:4])
    rows.X[:, 11] = np.random.default_rng(0).integers(0, 5, N_ROWS) * 2
    model = train(rows.X, rows.y, rows.weight)
    assert count_in_memory({"feature": value}) == {"feature": 1}  # those of the caller
    rows.wipe()
    gc.collect()
    assert count_in_memory({"feature": value}) == {"feature": 0}
    del model


# --- updates that fail ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["regression", "three classes", "sparse"])
@pytest.mark.parametrize("fault", ["an id that is held", "weights too large", "a row too many"])
def test_a_row_of_an_update_that_failed(kind: str, fault: str) -> None:
    def attempt(before: FrozenProcess) -> Found:
        planted = plant_at_fit(kind)
        rows = make_rows(kind, 5, 2, seed=1_000)
        arguments: dict[str, Any] = {"sample_weight": rows.weight, "row_ids": rows.ids}
        if fault == "an id that is held":
            rows.ids[4] = planted.some_ids(1)[0]
        elif fault == "weights too large":
            rows.weight[4] = 1e30
        else:
            arguments["remove"] = [-1]
        found = find_left(rows.secrets, before)
        assert found.keys() >= {"id", "weight"}  # the caller's own
        with pytest.raises(ValueError, match=r"row_ids|sample_weight|remove"):
            planted.model.update(rows.X, rows.y, **arguments)
        rows.wipe()
        left = find_left(rows.secrets, before)
        planted.model.check_state()
        return left

    assert_nothing_left(attempt)


# --- categories -----------------------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])
def test_numbers_that_are_categories(Estimator: Any) -> None:
    """A refit, which reads all rows, forgets categories that only removed rows had."""
    rows = make_rows("regression", N_ROWS, None, seed=1)
    only = Secret.draw(8, 0x41F1)
    rows.X[:, 11] = np.random.default_rng(0).integers(0, 5, N_ROWS) * 2
    only.write(rows.X[20, 11:12])
    model = Estimator(n_estimators=2, n_jobs=1, categorical_features=[11])
    y = rows.y if Estimator is GraftBoostRegressor else rows.y > 0
    model.fit(rows.X, y)
    rows.wipe()
    assert count_in_memory({"category": only})["category"] >= 1  # as a Python float
    model.remove([20])
    model.refit()
    gc.collect()
    names = model._columns.categories[11].to_plain()
    assert [value is None for value in names["values"]] == [False] * 5 + [True]
    assert list(names["forgotten"]) == [5]
