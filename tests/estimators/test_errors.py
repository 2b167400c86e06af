"""Bad input gets an error that names the argument, and changes nothing."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from graftboost import GraftBoostClassifier, GraftBoostRegressor

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
DAYS = pd.date_range("2024-01-01", periods=60)
TEXT = ["some", "text"] * 30


def changed(array, place, value):
    """Return a copy of an array with one value changed."""
    array = np.array(array, dtype=float)
    array[place] = value
    return array


def fitted_state(model):
    """Everything that a fit writes, with the engine's state in bytes."""
    state = {name: value for name, value in vars(model).items() if name.endswith("_")}
    return pickle.dumps((state, model._engine_model, model._columns))


def assert_refused(Estimator, error, message, call, **parameters):
    """Check that a call fails alike on a new model and on a fitted one, which then is as before."""
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


BAD_FIT = {
    # Targets.
    "y with NaN": (ValueError, r"y contains NaN", {"y": changed(Y, 3, np.nan)}),
    "y with infinity": (ValueError, r"y contains infinity", {"y": changed(Y, 3, np.inf)}),
    "y with None": (ValueError, r"y contains NaN", {"y": [None, *Y[1:]]}),
    "y with pandas NA": (
        ValueError,
        r"y contains NaN",
        {"y": pd.Series([pd.NA, *Y[1:]], dtype="Int64")},
    ),
    "y with polars null": (
        ValueError,
        r"y contains NaN",
        {"y": pl.Series([None, *Y[1:].tolist()])},
    ),
    "y is None": (ValueError, r"y is None", {"y": None}),
    "y too short": (ValueError, r"y has 59 values, but X has 60 rows", {"y": Y[1:]}),
    # Features.
    "X with infinity": (
        ValueError,
        r"X: column 2 contains infinity",
        {"X": changed(X, (5, 2), -np.inf)},
    ),
    "X with infinity in float32": (
        ValueError,
        r"X: column 0 contains infinity",
        {"X": changed(X, (5, 0), np.inf).astype(np.float32)},
    ),
    "frame with infinity": (
        ValueError,
        r"X: column 'b' contains infinity",
        {"X": FRAME.assign(b=np.inf)},
    ),
    "polars frame with infinity": (
        ValueError,
        r"X: column 'b' contains infinity",
        {"X": pl.DataFrame({"a": [1] * 60, "b": [float("inf")] * 60})},
    ),
    "zero rows": (ValueError, r"X: .*0 sample", {"X": X[:0], "y": Y[:0]}),
    "frame with zero rows": (ValueError, r"X: .*0 sample", {"X": FRAME[:0], "y": Y[:0]}),
    "no features": (ValueError, r"X: .*0 feature", {"X": X[:, :0]}),
    "X of one dimension": (ValueError, r"X: Expected 2D array, got 1D", {"X": X[:, 0]}),
    "X of three dimensions": (ValueError, r"X: Found array with dim 3", {"X": X[..., np.newaxis]}),
    "complex X": (ValueError, r"X: Complex data not supported", {"X": X + 1j}),
    "sparse X of complex numbers": (
        ValueError,
        r"X: Complex data not supported",
        {"X": scipy.sparse.csr_array(X * 1j)},
    ),
    "lazy X": (TypeError, r"X is a lazy frame", {"X": pl.LazyFrame({"a": X[:, 0]})}),
    "ragged X": (ValueError, r"X: ", {"X": [[1.0], [2.0, 3.0]] * 30}),
    "text in an array": (
        ValueError,
        r"X: column 1 contains a value of type str, which is neither a number",
        {"X": np.column_stack([X[:, 0].astype(object), TEXT])},
    ),
    "text in a pandas frame": (
        ValueError,
        r"X: column 'b' contains a value of type str.*astype\('category'\)",
        {"X": FRAME.assign(b=TEXT)},
    ),
    "objects in a pandas frame": (
        ValueError,
        r"X: column 'b' contains a value of type str",
        {"X": FRAME.assign(b=pd.Series(TEXT, dtype=object))},
    ),
    "text in a polars frame": (
        ValueError,
        r"X: column 'b' contains a value of type str.*pl\.Categorical",
        {"X": pl.DataFrame({"a": X[:, 0], "b": TEXT})},
    ),
    "text in a pyarrow table": (
        ValueError,
        r"X: column 'b' contains a value of type str.*dictionary_encode",
        {"X": pa.table({"a": X[:, 0], "b": TEXT})},
    ),
    "dates in a frame": (
        ValueError,
        r"X: column 'b' contains .*datetime64",
        {"X": FRAME.assign(b=DAYS)},
    ),
    "dates in an array": (
        ValueError,
        r"X: column 0 contains .*datetime64",
        {"X": DAYS.to_numpy()[:, np.newaxis]},
    ),
    "dictionaries in a frame": (
        TypeError,
        r"X: column 'b' contains values that are not numbers",
        {"X": FRAME.assign(b=[{}] * 60)},
    ),
    "names of several types": (
        TypeError,
        r"X has column names of different types",
        {"X": FRAME.rename(columns={"b": 1})},
    ),
    # Weights.
    "negative weight": (
        ValueError,
        r"sample_weight is negative in row 4",
        {"sample_weight": changed(np.ones(60), 4, -1)},
    ),
    "NaN weight": (
        ValueError,
        r"sample_weight contains NaN",
        {"sample_weight": changed(np.ones(60), 4, np.nan)},
    ),
    "infinite weight": (
        ValueError,
        r"sample_weight contains infinity",
        {"sample_weight": changed(np.ones(60), 4, np.inf)},
    ),
    "weights too short": (
        ValueError,
        r"sample_weight has 59 values, but X has 60 rows",
        {"sample_weight": np.ones(59)},
    ),
    "weights of two dimensions": (
        ValueError,
        r"sample_weight has shape \(60, 2\)",
        {"sample_weight": np.ones((60, 2))},
    ),
    "no weight at all": (
        ValueError,
        r"sample_weight is zero for every row",
        {"sample_weight": np.zeros(60)},
    ),
    # Ids.
    "duplicate ids": (
        ValueError,
        r"row_ids contains 7 more than once",
        {"row_ids": [*range(59), 7]},
    ),
    "ids too short": (ValueError, r"row_ids has 3 values, but X has 60", {"row_ids": [1, 2, 3]}),
    "ids that are no integers": (
        ValueError,
        r"row_ids has dtype float64",
        {"row_ids": np.arange(60.0)},
    ),
    "ids too large": (
        ValueError,
        r"row_ids contains 18446744073709551615, which is too large",
        {"row_ids": np.arange(60, dtype=np.uint64) - np.uint64(1)},
    ),
    # Validation rows.
    "X_val alone": (ValueError, r"X_val is given without y_val", {"X_val": X}),
    "y_val alone": (ValueError, r"y_val is given without X_val", {"y_val": Y}),
    "sample_weight_val alone": (
        ValueError,
        r"sample_weight_val is given without X_val",
        {"sample_weight_val": Y},
    ),
    "X_val too wide": (
        ValueError,
        r"X_val has 4 features, but 3 were passed to fit",
        {"X_val": np.ones((60, 4)), "y_val": Y},
    ),
    "X_val with other names": (
        ValueError,
        r"X_val does not have the feature names of fit",
        {"X": FRAME, "X_val": FRAME[["b", "a", "c"]], "y_val": Y},
    ),
    "X_val with infinity": (
        ValueError,
        r"X_val: column 1 contains infinity",
        {"X_val": changed(X, (0, 1), np.inf), "y_val": Y},
    ),
    "y_val too short": (
        ValueError,
        r"y_val has 2 values, but X_val has 60 rows",
        {"X_val": X, "y_val": Y[:2]},
    ),
    "y_val with NaN": (
        ValueError,
        r"y_val contains NaN",
        {"X_val": X, "y_val": changed(Y, 0, np.nan)},
    ),
    "negative weight of validation": (
        ValueError,
        r"sample_weight_val is negative",
        {"X_val": X, "y_val": Y, "sample_weight_val": -np.ones(60)},
    ),
}


@pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])
@pytest.mark.parametrize(("error", "message", "arguments"), BAD_FIT.values(), ids=BAD_FIT)
def test_fit_refuses(Estimator, error, message, arguments):
    assert_refused(
        Estimator, error, message, lambda model: model.fit(**{"X": X, "y": Y, **arguments})
    )


BAD_LABELS = {
    "one class only": (r"y contains only one class", {"y": np.ones(60, dtype=int)}),
    "one class of text": (r"y contains only one class", {"y": ["x"] * 60}),
    "numbers that are no classes": (r"Unknown label type: continuous", {"y": X[:, 0]}),
    "unknown class in y_val": (
        r"y_val contains a class that y does not contain",
        {"X_val": X, "y_val": Y + 1},
    ),
}


@pytest.mark.parametrize(("message", "arguments"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_classifier_refuses(message, arguments):
    assert_refused(
        GraftBoostClassifier,
        ValueError,
        message,
        lambda model: model.fit(**{"X": X, "y": Y, **arguments}),
    )


def test_a_class_may_not_be_held_out_as_a_whole():
    y = np.zeros(60, dtype=int)
    lots = GraftBoostRegressor(early_stopping=True, n_estimators=1).fit(X, y)
    y[np.setdiff1d(np.arange(60), lots.row_ids_)] = 1
    assert_refused(
        GraftBoostClassifier,
        ValueError,
        r"one class of y are held out .*Decrease validation_fraction",
        lambda model: model.fit(X, y),
        early_stopping=True,
    )


def test_some_row_must_be_left_to_train_on():
    assert_refused(
        GraftBoostRegressor,
        ValueError,
        r"X has 1 sample\(s\), of which validation_fraction=0.5 leaves no rows",
        lambda model: model.fit(X[:1], Y[:1]),
        early_stopping=True,
        validation_fraction=0.5,
    )


BAD_PARAMETERS = {
    "n_estimators": [0, 1.5, "many", 2**31],
    "learning_rate": [0, -1, None, np.nan, np.inf],
    "max_leaf_nodes": [1, 0, 70_000, 31.5],
    "min_samples_leaf": [0],
    "l2_regularization": [-0.1],
    "max_bins": [1, 65_536],
    "split_sample": [0, 1.1],
    "binning": ["sturges"],
    "bin_edges": [5],
    "subsample": [0, 1.5],
    "categorical_features": ["all", 3],
    "tolerance_rule": ["sigma"],
    "tolerance": [-1],
    "updatable": ["yes"],
    "early_stopping": ["auto"],
    "validation_fraction": [0, 1, 5],
    "n_iter_no_change": [0],
    "tol": [-1e-3],
    "random_state": [-1, "seed"],
    "n_jobs": [1.5, "2"],
    "verbose": [-1],
}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [(parameter, value) for parameter, values in BAD_PARAMETERS.items() for value in values],
)
def test_parameters_out_of_range(parameter, value):
    message = rf"The '{parameter}' parameter of GraftBoost\w+ must be .*Got"
    for Estimator in (GraftBoostClassifier, GraftBoostRegressor):
        assert_refused(Estimator, ValueError, message, fit, **{parameter: value})


BAD_FEATURES = {
    "n_jobs": (r"n_jobs is 0", {"n_jobs": 0}),
    "unknown name": (
        r"categorical_features contains 'z', which is not a feature: .* named a, b, c",
        {"categorical_features": ["z"]},
    ),
    "unknown index": (r"categorical_features contains 3", {"categorical_features": [3]}),
    "negative index": (r"categorical_features contains -1", {"categorical_features": [-1]}),
    "short mask": (
        r"categorical_features is a mask of shape \(2,\), but X has 3",
        {"categorical_features": [True, False]},
    ),
    "too few edges": (r"bin_edges has 2 entries, but X has 3", {"bin_edges": [[1, 2], [3]]}),
    "unknown feature": (r"bin_edges contains 'z'", {"bin_edges": {"z": [1.0]}}),
    "falling edges": (
        r"bin_edges of feature 'b' is .*must be finite, strictly increasing",
        {"bin_edges": {"b": [2.0, 1.0]}},
    ),
    "equal edges": (r"bin_edges of feature 'b'", {"bin_edges": {1: [1.0, 1.0]}}),
    "infinite edge": (r"bin_edges of feature 'a'", {"bin_edges": {0: [1.0, np.inf]}}),
    "edges of text": (r"bin_edges of feature 'a'", {"bin_edges": {0: ["low", "high"]}}),
    "too many edges": (
        r"bin_edges of feature 'a' has 70000 edges, but at most 65534",
        {"bin_edges": {"a": np.arange(70_000)}},
    ),
    "edges of a category": (
        r"bin_edges has edges for feature 'a', which is categorical",
        {"bin_edges": {"a": [1.0]}, "categorical_features": ["a"]},
    ),
}


@pytest.mark.parametrize(("message", "parameters"), BAD_FEATURES.values(), ids=BAD_FEATURES)
def test_parameters_that_do_not_fit_the_data(message, parameters):
    assert_refused(GraftBoostClassifier, ValueError, message, fit, **parameters)


def test_names_need_a_frame():
    for parameters in ({"categorical_features": ["a"]}, {"bin_edges": {"a": [0.0]}}):
        argument = next(iter(parameters))
        assert_refused(
            GraftBoostRegressor,
            ValueError,
            rf"{argument} names the feature 'a', but X has no feature names",
            lambda model: model.fit(X, Y),
            **parameters,
        )


def test_too_many_categories():
    many = pd.DataFrame({"id": pd.Categorical(range(60), categories=range(70_000))})
    assert_refused(
        GraftBoostRegressor,
        ValueError,
        r"X: column 'id' has 70000 categories, but at most 65534",
        lambda model: model.fit(many, Y),
    )


def test_infinite_category():
    assert_refused(
        GraftBoostRegressor,
        ValueError,
        r"X: column 'a' contains infinity",
        lambda model: model.fit(FRAME.assign(a=[np.inf, *range(59)]), Y),
        categorical_features=["a"],
    )


def test_category_dtype_that_is_not_listed():
    frame = FRAME.assign(b=pd.Categorical(TEXT))
    assert_refused(
        GraftBoostRegressor,
        ValueError,
        r"X: column 'b' has a category dtype, but is not among",
        lambda model: model.fit(frame, Y),
        categorical_features=None,
    )


@pytest.mark.parametrize("class_weight", ["heavy", {0: -1, 1: 1}, {0: np.nan, 1: 1}, {5: 1}])
def test_class_weight(class_weight):
    assert_refused(GraftBoostClassifier, ValueError, "class_weight", fit, class_weight=class_weight)


def test_unknown_parameters():
    with pytest.raises(TypeError, match="n_trees"):
        GraftBoostClassifier(n_trees=10)
    with pytest.raises(ValueError, match="'n_trees'"):
        GraftBoostRegressor().set_params(n_trees=10)
    with pytest.raises(TypeError, match="class_weight"):
        GraftBoostRegressor(class_weight="balanced")


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
def test_predict_refuses(Estimator, method, error, message, bad):
    model = Estimator(n_estimators=3).fit(FRAME, Y)
    before = fitted_state(model)
    with pytest.raises(error, match=message):
        getattr(model, method)(bad)
    assert fitted_state(model) == before


def test_categories_of_another_sort():
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


@pytest.mark.parametrize(
    "call",
    [
        lambda: GraftBoostRegressor().fit(FRAME.assign(b=["Anna"] * 60), Y),
        lambda: GraftBoostRegressor().fit(X, ["Anna"] * 60),
        lambda: GraftBoostRegressor().fit(X, Y).add(X[:1], ["Anna"]),
        lambda: (
            GraftBoostRegressor()
            .fit(pd.DataFrame({"c": pd.Categorical(["Anna", "Bela"] * 30)}), Y)
            .predict(pd.DataFrame({"c": np.ones(3)}))
        ),
        lambda: GraftBoostClassifier().fit(X, ["Anna", "Bela"] * 30).add(X[:1], [1]),
    ],
)
def test_errors_do_not_quote_rows(call):
    with pytest.raises(ValueError, match="contains") as caught:
        call()
    assert "Anna" not in str(caught.value)
