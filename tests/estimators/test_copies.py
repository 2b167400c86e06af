"""Copies of an estimator are independent of it, however they were made."""

from __future__ import annotations

import copy
import pickle
import threading

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from . import small_models

N_ROWS = 240
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(N_ROWS, 3))
FRAME = pd.DataFrame(NUMBERS, columns=["a", "b", "c"]).assign(
    town=pd.Categorical(np.array(["Ulm", "Bonn", "Kiel"])[RNG.integers(0, 3, N_ROWS)])
)
SIGNAL = NUMBERS[:, 0] + NUMBERS[:, 1]
TARGETS = {
    "regression": SIGNAL,
    "two classes": np.where(SIGNAL > 0, "yes", "no"),
    "three classes": np.digitize(SIGNAL, [-0.7, 0.7]),
}


def new_model(target, **parameters):
    settings = {"n_estimators": 5, "min_samples_leaf": 4, "n_jobs": 1, **parameters}
    Estimator = GraftBoostRegressor if target == "regression" else GraftBoostClassifier
    return Estimator(**settings)


def fitted(target, **parameters):
    return new_model(target, **parameters).fit(FRAME, TARGETS[target])


def through_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def through_skops(model):
    data = skops.io.dumps(model)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


COPIES = {
    "copy": lambda model, folder: copy.copy(model),
    "deepcopy": lambda model, folder: copy.deepcopy(model),
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "joblib": through_joblib,
    "skops": lambda model, folder: through_skops(model),
}


@pytest.fixture(params=COPIES)
def make_copy(request, tmp_path):
    return lambda model: COPIES[request.param](model, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_original_and_copy_are_updated_independently(target, make_copy):
    y = TARGETS[target]
    model = fitted(target)
    other = make_copy(model)
    assert other.get_params() == model.get_params()
    before = model.predict(FRAME)
    assert np.array_equal(other.predict(FRAME), before)

    first = model.add(FRAME[:5], y[:5]).added_ids
    assert other.n_rows_ == N_ROWS
    assert np.array_equal(other.predict(FRAME), before)
    second = other.add(FRAME[5:9], y[5:9]).added_ids
    assert first.tolist() == list(range(N_ROWS, N_ROWS + 5))
    assert second.tolist() == list(range(N_ROWS, N_ROWS + 4))
    other.remove(slice(0, 100))
    model.remove([150])
    assert (model.n_rows_, other.n_rows_) == (N_ROWS + 4, N_ROWS - 96)
    for estimator in (model, other):
        assert len(set(estimator.row_ids_.tolist())) == estimator.n_rows_
        estimator.check_state()

    alone = fitted(target)
    alone.add(FRAME[:5], y[:5])
    alone.remove([150])
    assert np.array_equal(model.predict(FRAME), alone.predict(FRAME))


def test_class_added_to_only_one_of_them(make_copy):
    model = fitted("two classes")
    other = make_copy(model)
    other.add(FRAME[:20], ["maybe"] * 20)
    assert model.classes_.tolist() == ["no", "yes"]
    assert other.classes_.tolist() == ["maybe", "no", "yes"]
    model.add(FRAME[:20], ["perhaps"] * 20)
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    assert set(other.predict(FRAME)) <= {"maybe", "no", "yes"}
    for estimator in (model, other):
        estimator.check_state()


def test_fitting_only_one_of_them_again(make_copy):
    model = fitted("two classes")
    before = model.predict_proba(FRAME)
    make_copy(model).fit(FRAME[["a"]], np.arange(N_ROWS) % 3)
    assert np.array_equal(model.predict_proba(FRAME), before)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "town"]


def test_copies_of_unfitted_estimators(make_copy):
    other = make_copy(new_model("two classes", class_weight={"yes": 2.0}))
    assert other.class_weight == {"yes": 2.0}
    with pytest.raises(NotFittedError):
        other.predict(FRAME)
    other.fit(FRAME, TARGETS["two classes"]).check_state()


def test_models_without_rows(make_copy):
    model = fitted("regression", updatable=False)
    assert np.array_equal(make_copy(model).predict(FRAME), model.predict(FRAME))


def test_other_attributes_are_copied():
    class Named(GraftBoostClassifier):
        pass

    model = Named(n_estimators=2, bin_edges={"a": [0.0]}).fit(FRAME, TARGETS["two classes"])
    model.notes = ["mine"]
    shallow, deep = copy.copy(model), copy.deepcopy(model)
    assert type(shallow) is type(deep) is Named
    assert shallow.notes is model.notes
    assert shallow.bin_edges is model.bin_edges
    assert deep.notes == model.notes
    assert deep.notes is not model.notes
    assert deep.bin_edges is not model.bin_edges
    assert copy.deepcopy([model, model])[0] is not model
    twice = copy.deepcopy([model, model])
    assert twice[0] is twice[1]


def test_clone_copies_only_the_parameters():
    model = fitted("two classes", fidelity=0.5)
    other = clone(model)
    assert other.fidelity == 0.5
    with pytest.raises(NotFittedError):
        other.predict(FRAME)


@pytest.mark.parametrize("kind", ["copy", "deepcopy", "pickle"])
def test_copy_made_during_updates_is_consistent(kind, tmp_path):
    """Its next ids follow those of its rows, and its classes are those of its trees."""
    model = fitted("two classes", n_estimators=2)
    done = threading.Event()

    def keep_adding():
        for name in ("maybe", "never", "often", "seldom"):
            for _ in range(20):
                model.add(FRAME[:3], [name] * 3)
        done.set()

    thread = threading.Thread(target=keep_adding)
    thread.start()
    copies = []
    while not done.is_set():
        copies.append(COPIES[kind](model, tmp_path))
    thread.join()
    assert copies
    for other in copies[:: max(1, len(copies) // 10)]:
        n_rows, largest = other.n_rows_, int(other.row_ids_.max())
        assert other.add(FRAME[:1], ["yes"]).added_ids[0] > largest
        assert other.n_rows_ == n_rows + 1
        assert set(other.predict(FRAME)) <= set(other.classes_)
        other.check_state()


def test_categories_without_rows_are_not_stored(tmp_path):
    frame = FRAME.assign(town=FRAME["town"].astype(str))
    frame.loc[7, "town"] = "Buxtehude"
    frame["town"] = frame["town"].astype("category")
    model = new_model("regression").fit(frame, SIGNAL)
    assert b"Buxtehude" in pickle.dumps(model)
    assert model.remove([7]).strategy == "in-place"
    model.save(tmp_path / "model")
    assert b"Buxtehude" not in pickle.dumps(model)
    assert b"Buxtehude" not in (tmp_path / "model").read_bytes()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert "Buxtehude" not in model.refit()._columns.categories[3].values
    for estimator in (model, again.refit()):
        estimator.add(frame[7:8], SIGNAL[7:8], row_ids=[7])
        estimator.check_state()
    assert np.array_equal(again.predict(frame), model.predict(frame))


# --- skops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_skops_must_trust_only_the_estimator(target):
    model = fitted(target)
    data = skops.io.dumps(model)
    name = type(model).__name__
    module = {"GraftBoostClassifier": "classifier", "GraftBoostRegressor": "regressor"}[name]
    assert skops.io.get_untrusted_types(data=data) == [f"graftboost.estimators.{module}.{name}"]


def test_skops_stores_models_with_forgotten_categories():
    model = fitted("regression")
    in_ulm = np.flatnonzero(FRAME["town"] == "Ulm")
    model.remove(in_ulm)
    other = through_skops(model.refit())
    assert len(skops.io.get_untrusted_types(data=skops.io.dumps(other))) == 1
    assert np.array_equal(other.predict(FRAME), model.predict(FRAME))
    for estimator in (model, other):
        estimator.add(FRAME.iloc[in_ulm], SIGNAL[in_ulm], row_ids=in_ulm)
        estimator.check_state()
    assert np.array_equal(other.predict(FRAME), model.predict(FRAME))


def test_damaged_pickle_is_refused():
    state = fitted("regression").__getstate__()
    with pytest.raises(ValueError, match="the pickled model is damaged"):
        GraftBoostRegressor().__setstate__(
            {**state, "_engine_model": state["_engine_model"][:-100]}
        )


def test_deep_copy_is_independent():
    model = GraftBoostClassifier(n_estimators=10)
    model.fit(small_models.X, small_models.TARGETS["two classes"])
    before = pickle.dumps(model)
    other = copy.deepcopy(model)
    assert pickle.dumps(other) == before
    other.remove([1, 2, 3])
    other.check_state()
    assert pickle.dumps(model) == before
