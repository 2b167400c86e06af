"""A model that is saved and loaded is the same model."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import graftboost
from graftboost import GraftBoostClassifier
from graftboost.persistence import file_format

from .saved_models import MODELS, features, state, targets


@pytest.fixture(params=list(MODELS))
def model(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param]


def test_loaded_model_equals_the_saved_one(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.graft"
    model.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.graft"]
    again = graftboost.load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    X = features(model)
    np.testing.assert_array_equal(again._raw_scores(X), model._raw_scores(X))
    np.testing.assert_array_equal(again.apply(X), model.apply(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(again.row_ids_, model.row_ids_)
    assert state(again) == state(model)
    again.check_state()


def test_model_with_deferred_rows_continues_after_loading(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.graft"
    other = pickle.loads(pickle.dumps(model))
    other.remove([1, 2, 3], regrow=False)
    other.add(features(model, n=4), targets(model, 4), regrow=False)
    other.save(path)
    again = graftboost.load(path)
    assert state(again) == state(other)
    assert (again.pending_.rows_removed, again.pending_.rows_added) == (3, 4)
    assert again.pending_ == other.pending_
    for step in (
        lambda updated: updated.remove([4], regrow=False),
        lambda updated: updated.regrow(0.1),
        lambda updated: updated.remove([5, 6]),
        lambda updated: updated.regrow(),
    ):
        assert step(again).rows_deferred == step(other).rows_deferred
        assert state(again) == state(other)
    again.check_state()


def test_deferred_rows_are_not_saved_without_the_state(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.graft"
    other = pickle.loads(pickle.dumps(model))
    other.remove([1, 2, 3], regrow=False)
    other.save(path, updatable=False)
    assert not [name for name in file_format.load(path).arrays if "deferred" in name]
    again = graftboost.load(path)
    np.testing.assert_array_equal(again.predict(features(model)), other.predict(features(model)))
    with pytest.raises(ValueError, match="This model holds no rows"):
        again.regrow()


def test_updates_of_a_loaded_model(model: Any, tmp_path: Path) -> None:
    """More rows are added than the file has room for, so the arrays move out of it."""
    path = tmp_path / "model.graft"
    other = pickle.loads(pickle.dumps(model))
    other.save(path)
    content = path.read_bytes()
    again = graftboost.load(path)
    X = features(model, n=120)
    y = targets(model, 120)
    for step in range(6):
        rows = slice(20 * step, 20 * step + 20)
        for updated in (other, again):
            updated.update(X[rows], y[rows], remove=[3 * step, 3 * step + 1])
        assert state(again) == state(other)
    again.check_state()
    again.refit()
    other.refit()
    assert state(again) == state(other)
    assert path.read_bytes() == content


def test_models_saved_only_for_prediction(model: Any, tmp_path: Path) -> None:
    whole, small = tmp_path / "whole", tmp_path / "small"
    model.save(whole)
    model.save(small, updatable=False)
    assert small.stat().st_size < whole.stat().st_size / 2
    again = graftboost.load(small)
    X = features(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    with pytest.raises(ValueError, match="holds no rows: it was fitted or saved with updatable"):
        again.remove([0])
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == small.read_bytes()
    with pytest.raises(ValueError, match="holds no rows"):
        again.save(tmp_path / "more", updatable=True)


def test_pickle_and_joblib_use_the_file_format(model: Any, tmp_path: Path) -> None:
    data = pickle.dumps(model)
    assert file_format.MAGIC in data
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (pickle.loads(data), joblib.load(tmp_path / "model.joblib")):
        assert state(again) == state(model)
        again.remove([5])
        again.check_state()


def test_new_classes_after_loading(tmp_path: Path) -> None:
    model = pickle.loads(pickle.dumps(MODELS["binary"]))
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    X = features(model, n=30)
    model = GraftBoostClassifier(n_estimators=3).fit(X, ["a", "b"] * 15)
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    for updated in (model, again):
        updated.add(X[:10], ["c"] * 10)
    assert again.classes_.tolist() == ["a", "b", "c"]
    assert state(again) == state(model)
    again.save(tmp_path / "model")
    assert graftboost.load(tmp_path / "model").classes_.tolist() == ["a", "b", "c"]


def test_first_use_of_a_loaded_model_by_several_threads(tmp_path: Path) -> None:
    path = tmp_path / "model"
    MODELS["several"].save(path)
    for _ in range(10):
        model = graftboost.load(path)
        calls = [model.check_state, lambda model=model: pickle.dumps(model)] * 2
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(call) for call in calls]:
                done.result()
