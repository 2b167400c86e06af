"""A small table, and a check that a call is refused and changes nothing."""

import pickle

import numpy as np
import pandas as pd
import pytest

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
TEXT = ["some", "text"] * 30


def changed(array, place, value):
    """Return a copy of an array with one value changed."""
    array = np.array(array, dtype=float)
    array[place] = value
    return array


def fitted_state(model):
    """All attributes that a fit sets, with the engine's state as bytes."""
    state = {name: value for name, value in vars(model).items() if name.endswith("_")}
    return pickle.dumps((state, model._engine_model, model._columns))


def assert_refused(Estimator, error, message, call, **parameters):
    """Check that a call raises the error on a new and on a fitted model, which is unchanged."""
    with pytest.raises(error, match=message):
        call(Estimator(**{"n_estimators": 3, **parameters}))
    model = Estimator(n_estimators=3).fit(FRAME, Y, sample_weight=np.arange(60) + 1)
    good_parameters = model.get_params()
    before, predicted = fitted_state(model), model.predict(FRAME)
    with pytest.raises(error, match=message):
        call(model.set_params(**parameters))
    assert fitted_state(model) == before
    model.set_params(**good_parameters)
    np.testing.assert_array_equal(model.predict(FRAME), predicted)
    model.check_state()


def fit(model):
    return model.fit(FRAME, Y)
