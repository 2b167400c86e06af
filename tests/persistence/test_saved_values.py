"""Labels, categories and parameters that model files store, and those they reject."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import graftboost
from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .saved_models import N, table


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-3, 2**40]),
        np.array([1.0, 2.0]),
        np.array(["2020-01-01", "2020-02-01"], dtype="datetime64[D]"),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_every_kind(labels: Any, tmp_path: Path) -> None:
    X = table()[["x0", "x1"]]
    model = GraftBoostClassifier(n_estimators=2).fit(
        X, labels[(X["x0"] > 0).to_numpy().astype(int)]
    )
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_categories_of_every_kind(tmp_path: Path) -> None:
    values = [3, 2.5, "three", datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 5), b"ab"]
    rng = np.random.default_rng(0)
    X = np.empty((N, 2), dtype=object)
    X[:, 0] = [values[i] for i in rng.integers(0, len(values), N)]
    X[:, 1] = rng.normal(size=N)
    model = GraftBoostRegressor(n_estimators=3, categorical_features=[0]).fit(X, rng.normal(size=N))
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    assert again._columns.categories[0].values == model._columns.categories[0].values
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_unsupported_categories_are_named(tmp_path: Path) -> None:
    X = np.empty((60, 1), dtype=object)
    X[:, 0] = [complex(i % 3, 1) for i in range(60)]
    model = GraftBoostRegressor(n_estimators=2, categorical_features=[0]).fit(X, np.arange(60.0))
    with pytest.raises(TypeError, match=r"categories of feature 0: .*complex.*save the model"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [("a", 1), pd.Timestamp(1)], ids=["tuple", "nanoseconds"])
def test_categories_that_cannot_be_restored(value: Any, tmp_path: Path) -> None:
    X = np.empty((60, 1), dtype=object)
    X[:, 0] = [[value, "b", "c"][i % 3] for i in range(60)]
    model = GraftBoostRegressor(n_estimators=2, categorical_features=[0]).fit(X, np.arange(60.0))
    with pytest.raises(TypeError, match="cannot be stored in a file"):
        model.save(tmp_path / "model")


def test_parameters_of_every_kind(tmp_path: Path) -> None:
    X, y = table()[["x0", "x1"]], np.arange(N) % 2
    model = GraftBoostClassifier(
        n_estimators=np.int64(3),
        fidelity=np.float64(0.5),
        update_rule="regret",
        tolerance=np.inf,
        bin_edges={"x0": np.array([-1.0, 0.25]), "x1": [0.0]},
        class_weight={0: 1.0, 1: 2.5},
        random_state=np.random.RandomState(3),
        categorical_features=np.array([], dtype=int),
    ).fit(X, y)
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    assert (again.fidelity, again.update_rule, again.tolerance) == (0.5, "regret", np.inf)
    assert again.class_weight == model.class_weight
    assert np.array_equal(again.bin_edges["x0"], model.bin_edges["x0"])
    assert again.random_state is None
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again.add(X[:2], [0, 1])


def test_user_defined_estimators(tmp_path: Path) -> None:
    class Mine(GraftBoostRegressor):
        pass

    model = Mine(n_estimators=2).fit(table()[["x0"]], np.arange(N))
    with pytest.raises(TypeError, match="Mine is a user-defined class"):
        model.save(tmp_path / "model")
