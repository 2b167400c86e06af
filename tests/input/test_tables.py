"""Reading and validating arrays and data frames."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from graftboost import GraftBoostClassifier, GraftBoostRegressor

from .mixed_tables import array_of, encode, frames_of, mixed_columns

# Arrays.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("view", ["C", "F", "every other row", "some columns", "reversed"])
def test_float_arrays_are_passed_on_without_a_copy(rng, dtype, view):
    X = rng.normal(size=(20, 6)).astype(dtype)
    X = {
        "C": X,
        "F": np.asfortranarray(X),
        "every other row": X[::2],
        "some columns": X[:, 1:4],
        "reversed": X[::-1, ::-1],
    }[view]
    encoded = encode(X)
    assert encoded.dtype == dtype
    assert encoded.strides == X.strides
    assert np.shares_memory(encoded, X)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (bool, np.float32),
        (np.int8, np.float32),
        (np.uint16, np.float32),
        (np.float16, np.float32),
        (np.int32, np.float64),
        (np.int64, np.float64),
        (np.longdouble, np.float64),
        (">f8", np.float64),
        (object, np.float64),
    ],
)
def test_other_numbers_are_converted_to_exact_floats(dtype, expected):
    X = np.array([[0, 1], [1, 0], [1, 1]], dtype=dtype)
    encoded = encode(X)
    assert encoded.dtype == expected
    np.testing.assert_array_equal(encoded, [[0, 1], [1, 0], [1, 1]])


def test_any_view_gives_the_same_model(two_classes, assert_same_model):
    X, y = two_classes
    wide = np.zeros((600, 10))
    wide[::2, ::2] = X
    expected = GraftBoostClassifier(n_estimators=5).fit(X, y)
    for same in (np.asfortranarray(X), wide[::2, ::2], X[::-1][::-1], X.tolist()):
        model = GraftBoostClassifier(n_estimators=5).fit(same, y)
        assert_same_model(model, expected)
        np.testing.assert_array_equal(model.predict_proba(same), expected.predict_proba(X))
    X.setflags(write=False)
    assert_same_model(GraftBoostClassifier(n_estimators=5).fit(X, y), expected)


def test_callers_array_is_not_modified(two_classes):
    X, y = two_classes
    X[:, 2] = np.digitize(X[:, 2], [-1, 0, 1]) + 5
    before = X.copy()
    GraftBoostClassifier(n_estimators=2, categorical_features=[2]).fit(X, y).predict(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("form", ["array", "Fortran", "pandas", "polars", "one block", "sparse"])
@pytest.mark.parametrize("parameters", [{}, {"early_stopping": True, "class_weight": "balanced"}])
def test_callers_tables_are_not_modified(two_classes, form, parameters):
    """Only copies are overwritten after a fit or an update."""
    X, y = two_classes
    X[:, 2] = np.digitize(X[:, 2], [-1, 0, 1]) + 5
    table = {
        "array": X.copy,
        "Fortran": lambda: np.asfortranarray(X),
        "pandas": lambda: pd.DataFrame(X).astype({2: "int64"}).rename(columns=str),
        "polars": lambda: pl.DataFrame(X, schema=list("01234")),
        "one block": lambda: pd.DataFrame(X, columns=list("01234")),
        "sparse": lambda: scipy.sparse.csr_array(np.nan_to_num(X)),
    }[form]()
    cells = (table.data, table.indices, table.indptr) if form == "sparse" else table
    library = pl if form == "polars" else pd
    weight, ids = library.Series(np.where(y, 0.0, 2.5) + (X[:, 0] > 0)), library.Series(range(300))
    labels = library.Series(y.astype(float))
    passed = (cells, labels, weight, ids)
    before = pickle.dumps(passed)
    model = GraftBoostClassifier(n_estimators=2, categorical_features=[2], **parameters)
    model.fit(table, labels, weight, row_ids=ids)
    model.remove(ids[:20])
    model.add(table[:10], labels[:10], weight[:10])
    model.remove(model.row_ids_ < 40)
    assert pickle.dumps(passed) == before


# Frames.


def test_frames_and_arrays_give_the_same_model(rng, assert_same_model):
    columns, y = mixed_columns(rng)
    X = array_of(columns)
    expected = GraftBoostRegressor(n_estimators=10, categorical_features=[4]).fit(X, y)
    for frame in frames_of(columns).values():
        model = GraftBoostRegressor(n_estimators=10).fit(frame, y)
        assert model.feature_names_in_.tolist() == list(columns)
        assert_same_model(model, expected)
        np.testing.assert_array_equal(model.predict(frame), expected.predict(X))


def test_targets_of_any_library(rng, assert_same_model):
    columns, _ = mixed_columns(rng)
    X = array_of(columns)
    labels = np.where(columns["flag"], "yes", "no")
    expected = GraftBoostClassifier(n_estimators=3).fit(X, labels)
    for y in (
        labels.tolist(),
        pd.Series(labels),
        pd.Series(labels, dtype="category"),
        pl.Series(labels.tolist()),
        pl.Series(labels.tolist(), dtype=pl.Categorical),
        pa.chunked_array([labels.tolist()]),
    ):
        model = GraftBoostClassifier(n_estimators=3).fit(X, y)
        assert model.classes_.tolist() == ["no", "yes"]
        assert_same_model(model, expected)


def test_frames_are_single_precision_if_every_column_fits(rng):
    columns, _ = mixed_columns(rng)
    for frame in frames_of(columns).values():
        assert encode(frame).dtype == np.float64
    small = {name: columns[name] for name in ("single", "flag", "colour")}
    for frame in frames_of(small).values():
        encoded = encode(frame)
        assert encoded.dtype == np.float32
        assert encoded.flags.f_contiguous


def test_a_pandas_frame_of_floats_is_not_copied(rng):
    frame = pd.DataFrame(rng.normal(size=(10, 3)))
    assert np.shares_memory(encode(frame), frame.to_numpy())


def test_columns_with_nulls():
    nan = np.nan
    expected = [[1, 1, 1.5], [nan, nan, nan], [3, 0, 2.5]]
    whole, flag, number = [1, None, 3], [True, None, False], [1.5, None, 2.5]
    for frame in (
        pd.DataFrame(
            {
                "whole": pd.array(whole, dtype="Int64"),
                "flag": pd.array(flag, dtype="boolean"),
                "number": pd.array(number, dtype="Float32"),
            }
        ),
        pd.DataFrame({"whole": whole, "flag": flag, "number": number}).convert_dtypes(
            dtype_backend="pyarrow"
        ),
        pd.DataFrame({"whole": whole, "flag": flag, "number": number}, dtype=object),
        pl.DataFrame({"whole": whole, "flag": flag, "number": number}),
        pa.table({"whole": whole, "flag": flag, "number": number}),
    ):
        np.testing.assert_array_equal(encode(frame), expected)


def test_unusual_columns_of_numbers():
    half, exact = np.array([0.5, 1.5], dtype=np.float16), [Decimal("0.5"), Decimal("1.5")]
    for column in (half, pa.array(exact), pd.arrays.SparseArray([0.5, 1.5]), pa.array(half)):
        library = pa.table if isinstance(column, pa.Array) else pd.DataFrame
        np.testing.assert_array_equal(encode(library({"a": column})), [[0.5], [1.5]])
    for empty in (pa.table({"a": pa.nulls(2)}), pl.DataFrame({"a": [None, None]})):
        assert np.isnan(encode(empty)).all()


def test_names_that_are_not_strings_are_ignored(two_classes):
    X, y = two_classes
    model = GraftBoostClassifier(n_estimators=2).fit(pd.DataFrame(X), y)
    assert not hasattr(model, "feature_names_in_")
