"""Invalid data passed to fit: the error names the argument, and the model is unchanged."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .refused_calls import FRAME, TEXT, X, Y, assert_refused, changed

DAYS = pd.date_range("2024-01-01", periods=60)
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
    "only zero weights": (
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
    "ids that are not integers": (
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
def test_invalid_data(Estimator, error, message, arguments):
    assert_refused(
        Estimator, error, message, lambda model: model.fit(**{"X": X, "y": Y, **arguments})
    )


BAD_LABELS = {
    "one class only": (r"y contains only one class", {"y": np.ones(60, dtype=int)}),
    "one class of text": (r"y contains only one class", {"y": ["x"] * 60}),
    "continuous labels": (r"Unknown label type: continuous", {"y": X[:, 0]}),
    "unknown class in y_val": (
        r"y_val contains a class that y does not contain",
        {"X_val": X, "y_val": Y + 1},
    ),
}


@pytest.mark.parametrize(("message", "arguments"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_invalid_labels(message, arguments):
    assert_refused(
        GraftBoostClassifier,
        ValueError,
        message,
        lambda model: model.fit(**{"X": X, "y": Y, **arguments}),
    )


def test_all_rows_of_a_class_held_out():
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


def test_no_rows_left_to_train_on():
    assert_refused(
        GraftBoostRegressor,
        ValueError,
        r"X has 1 sample\(s\), of which validation_fraction=0.5 leaves no rows",
        lambda model: model.fit(X[:1], Y[:1]),
        early_stopping=True,
        validation_fraction=0.5,
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
