"""Early stopping and the losses of validation rows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from graftboost import GraftBoostClassifier, GraftBoostRegressor

BOTH = pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])


@BOTH
def test_early_stopping_on_given_rows(Estimator, two_classes):
    X, y = two_classes
    model = Estimator(n_estimators=500, early_stopping=True, n_iter_no_change=5)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert model.n_rows_ == 200
    assert model.n_iter_ < 500
    assert model.n_iter_ == model.best_iteration_
    assert len(model.validation_losses_) == model.n_iter_ + 5
    whole = Estimator(n_estimators=model.n_iter_).fit(X[:200], y[:200])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


@BOTH
def test_early_stopping_on_a_fraction(Estimator, two_classes):
    X, y = two_classes
    ids = np.arange(1000, 1300)
    model = Estimator(n_estimators=500, early_stopping=True, validation_fraction=0.3)
    model.fit(X, y, row_ids=ids)
    assert model.n_iter_ < 500
    assert 180 < model.n_rows_ < 240
    assert set(model.row_ids_) < set(ids)
    held = ~np.isin(ids, model.row_ids_)
    given = clone(model).fit(X[~held], y[~held], row_ids=ids[~held], X_val=X[held], y_val=y[held])
    np.testing.assert_array_equal(given.predict(X), model.predict(X))
    np.testing.assert_array_equal(given.validation_losses_, model.validation_losses_)


def test_validation_rows_without_early_stopping_are_only_measured(two_classes):
    X, y = two_classes
    model = GraftBoostClassifier(n_estimators=60)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert model.n_iter_ == 60
    stages = model.staged_predict_proba(X[200:])
    np.testing.assert_allclose(
        model.validation_losses_, [log_loss(y[200:], stage) for stage in stages], rtol=1e-6
    )
    assert model.best_iteration_ == np.argmin(model.validation_losses_) + 1


def test_validation_losses_are_weighted(two_classes, rng):
    X, y = two_classes
    weight = rng.integers(1, 5, size=100).astype(float)
    model = GraftBoostClassifier(n_estimators=3, class_weight={0: 1, 1: 3})
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:], sample_weight_val=weight)
    expected = log_loss(
        y[200:], model.predict_proba(X[200:]), sample_weight=weight * np.where(y[200:], 3, 1)
    )
    assert model.validation_losses_[-1] == pytest.approx(expected, rel=1e-6)


def test_validation_rows_of_another_dtype(two_classes):
    X, y = two_classes
    single = X.astype(np.float32)
    model = GraftBoostClassifier(n_estimators=3)
    model.fit(single, y, X_val=single.astype(np.float64), y_val=y)
    expected = clone(model).fit(single, y, X_val=single, y_val=y).validation_losses_
    np.testing.assert_array_equal(model.validation_losses_, expected)
