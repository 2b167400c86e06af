"""Invalid data passed to methods that predict: the error names the argument."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .refused_calls import FRAME, TEXT, X, Y, changed, fitted_state

PREDICTIONS = ["predict", "apply", "staged_predict"]
CLASSIFIER_PREDICTIONS = [
    *PREDICTIONS,
    "predict_proba",
    "decision_function",
    "staged_predict_proba",
    "staged_decision_function",
]
ALL_PREDICTIONS = [(GraftBoostRegressor, name) for name in PREDICTIONS] + [
    (GraftBoostClassifier, name) for name in CLASSIFIER_PREDICTIONS
]


@pytest.mark.parametrize(("Estimator", "method"), ALL_PREDICTIONS)
def test_predict_before_fit(Estimator, method):
    with pytest.raises(NotFittedError, match=f"{Estimator.__name__} .*not fitted yet"):
        getattr(Estimator(), method)(X)


@pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])
def test_check_state_before_fit(Estimator):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        Estimator().check_state()


BAD_PREDICT = {
    "too few columns": (
        ValueError,
        r"X has 2 features, but GraftBoost\w+ is expecting 3",
        X[:, :2],
    ),
    "too many columns": (ValueError, r"X has 6 features", np.hstack([X, X])),
    "infinity": (ValueError, r"X: column 1 contains infinity", changed(X, (0, 1), np.inf)),
    "zero rows": (ValueError, r"X: .*0 sample", X[:0]),
    "one dimension": (ValueError, r"X: Expected 2D array", X[0]),
    "sparse with too many columns": (
        ValueError,
        r"X has 6 features",
        scipy.sparse.csc_array(np.hstack([X, X])),
    ),
    "sparse with infinity": (
        ValueError,
        r"X: column 1 contains infinity",
        scipy.sparse.csr_array(changed(X, (0, 1), np.inf)),
    ),
    "sparse without rows": (ValueError, r"X: .*0 sample", scipy.sparse.csr_array(X[:0])),
    "text": (ValueError, r"X: column 0 contains a value of type str", np.column_stack([TEXT] * 3)),
    "categories": (
        ValueError,
        r"X: column 'b' has a category dtype",
        FRAME.assign(b=pd.Categorical(TEXT)),
    ),
    "other names": (ValueError, r"feature names should match", FRAME[["c", "b", "a"]]),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize(("Estimator", "method"), ALL_PREDICTIONS)
@pytest.mark.parametrize(("error", "message", "bad"), BAD_PREDICT.values(), ids=BAD_PREDICT)
def test_invalid_data(Estimator, method, error, message, bad):
    model = Estimator(n_estimators=3).fit(FRAME, Y)
    before = fitted_state(model)
    with pytest.raises(error, match=message):
        getattr(model, method)(bad)
    assert fitted_state(model) == before


def test_categories_of_another_type():
    text = pd.DataFrame({"c": pd.Categorical(TEXT)})
    numbers = pd.DataFrame({"c": pd.Categorical(Y)})
    of_text = GraftBoostRegressor(n_estimators=2).fit(text, Y)
    of_numbers = GraftBoostRegressor(n_estimators=2).fit(numbers, Y)
    with pytest.raises(ValueError, match=r"X: column 'c' contains numbers.* were text."):
        of_text.predict(numbers)
    with pytest.raises(ValueError, match=r"X: column 'c' contains numbers.* were text"):
        of_text.predict(numbers.astype(float))
    with pytest.raises(ValueError, match=r"X: column 'c' contains text.* were numbers\. Pass"):
        of_numbers.predict(text)
    with pytest.raises(ValueError, match=r"X: column 'c' contains text.* were numbers"):
        of_numbers.predict(text.astype(str))
