"""Reading and validating arrays and data frames."""

import datetime
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.input.categories import Categories, Coded, is_missing
from graftboost.input.columns import Columns
from graftboost.input.table import read_table

COLOURS = ["red", "green", None, "blue"]


def encode(X, categorical_features="from_dtype"):
    table = read_table(X)
    return Columns.learn(table, categorical_features).encode(table)


def mixed_columns(rng, n_rows=200):
    """Columns by kind, and a target that needs all of them."""
    columns = {
        "single": rng.normal(size=n_rows).astype(np.float32),
        "double": rng.normal(size=n_rows),
        "whole": rng.integers(-5, 5, size=n_rows),
        "flag": rng.random(n_rows) < 0.5,
        "colour": [COLOURS[k] for k in rng.integers(0, 4, size=n_rows)],
    }
    columns["double"][::9] = np.nan
    y = columns["whole"] + 4 * (np.array(columns["colour"]) == "red") + columns["flag"]
    return columns, y


def frames_of(columns):
    """The same columns as frames of each library, `colour` as a category."""
    polars = pl.DataFrame(columns).with_columns(pl.col("colour").cast(pl.Categorical))
    pandas = pd.DataFrame(columns).astype({"colour": "category"})
    arrow = pa.table(columns)
    place = arrow.schema.get_field_index("colour")
    arrow = arrow.set_column(place, "colour", arrow["colour"].dictionary_encode())
    return {"pandas": pandas, "polars": polars, "pyarrow": arrow}


def array_of(columns):
    """The same columns as an array, with the categories numbered as fit sorts them."""
    codes = {"blue": 0.0, "green": 1.0, "red": 2.0, None: np.nan}
    colour = [codes[value] for value in columns["colour"]]
    return np.column_stack(
        [columns["single"], columns["double"], columns["whole"], columns["flag"], colour]
    )


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


# Categories.


def test_categories_are_identified_by_value(rng):
    columns, y = mixed_columns(rng)
    frame = frames_of(columns)["pandas"]
    model = GraftBoostRegressor(n_estimators=10).fit(frame, y)
    expected = model.predict(frame)
    other_codes = frame.assign(
        colour=frame["colour"].cat.set_categories(["red", "violet", "blue", "green"])
    )
    np.testing.assert_array_equal(model.predict(other_codes), expected)
    ordered = frame.assign(
        colour=frame["colour"].cat.set_categories(["red", "blue", "green"], ordered=True)
    )
    np.testing.assert_array_equal(model.predict(ordered), expected)
    for other in frames_of(columns).values():
        np.testing.assert_array_equal(model.predict(other), expected)
    few = frame[frame["colour"] == "red"]
    few = few.assign(colour=few["colour"].cat.remove_unused_categories())
    np.testing.assert_array_equal(model.predict(few), expected[frame["colour"] == "red"])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_categories_do_not_depend_on_the_order_of_rows(rng, library, assert_same_model):
    columns, y = mixed_columns(rng)
    order = rng.permutation(len(y))
    shuffled = {name: np.asarray(column)[order].tolist() for name, column in columns.items()}
    shuffled["single"] = columns["single"][order]
    model = GraftBoostRegressor(n_estimators=10).fit(frames_of(columns)[library], y)
    other = GraftBoostRegressor(n_estimators=10)
    other.fit(frames_of(shuffled)[library], y[order], row_ids=order)
    assert model._columns.categories[4].values == ["blue", "green", "red"]
    assert other._columns.categories[4].values == ["blue", "green", "red"]
    X = array_of(columns)
    X[:, 4] = 0
    for t in range(10):
        first, second = model._engine_model.tree(t), other._engine_model.tree(t)
        for key, values in first.items():
            np.testing.assert_array_equal(values, second[key])


def test_unseen_and_missing_categories():
    colours = Categories.learn(np.array(["red", None, "blue"], dtype=object))
    for column in (
        np.array(["red", "violet", None], dtype=object),
        Coded(np.array([1, 0, -1]), ["violet", "red"]),
    ):
        np.testing.assert_array_equal(colours.encode(column, "colour"), [1, 2, np.nan])


def test_unseen_categories_can_be_predicted(rng):
    y = np.repeat([0.0, 1.0, 5.0], 100)
    colour = np.repeat(["red", "green", "blue"], 100)
    X = pd.DataFrame({"colour": pd.Categorical(colour)})
    model = GraftBoostRegressor(n_estimators=50).fit(X, y)
    unseen = pd.DataFrame({"colour": pd.Categorical(["violet", None])})
    assert np.isfinite(model.predict(unseen)).all()
    np.testing.assert_allclose(model.predict(X), y, atol=0.1)


def test_declared_categories_without_rows():
    declared = ["a", "b", "c"]
    values = ["c", "a", "c"]
    for column in (
        pd.DataFrame({"x": pd.Categorical(values, categories=["c", "b", "a"])}),
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Enum(["c", "b", "a"]))}),
        pa.table({"x": pa.DictionaryArray.from_arrays([0, 2, 0], ["c", "b", "a"])}),
    ):
        columns = Columns.learn(read_table(column), "from_dtype")
        assert columns.categories[0].values == declared
        np.testing.assert_array_equal(columns.encode(read_table(column))[:, 0], [2, 0, 2])


def test_arrow_dictionaries_in_chunks_with_nulls():
    chunks = [pa.array(part).dictionary_encode() for part in (["x", None], ["z", "y", None])]
    table = pa.table({"c": pa.chunked_array(chunks)})
    np.testing.assert_array_equal(encode(table)[:, 0], [0, np.nan, 2, 1, np.nan])


def test_numeric_categories():
    frame = pd.DataFrame({"grade": pd.Categorical([30, 10, None, 20])})
    np.testing.assert_array_equal(encode(frame)[:, 0], [2, 0, np.nan, 1])
    table = read_table(frame)
    columns = Columns.learn(table, "from_dtype")
    as_numbers = read_table(np.array([[20.0], [15.0], [np.nan]]))
    np.testing.assert_array_equal(columns.encode(as_numbers)[:, 0], [1, 3, np.nan])


@pytest.mark.parametrize("asked", [["b"], [1], (1,), [False, True], np.array([False, True])])
def test_numbers_listed_as_categorical(asked):
    frame = pd.DataFrame({"a": [0.5, 1.5, 2.5, 3.5], "b": [7.0, -1.0, np.nan, 7.0]})
    columns = Columns.learn(read_table(frame), asked)
    assert columns.n_categories == {1: 2}
    assert columns.categories[1].values == [-1, 7]
    np.testing.assert_array_equal(columns.encode(read_table(frame))[:, 1], [1, 0, np.nan, 1])
    later = pd.DataFrame({"a": [0.5, 0.5, 0.5, 0.5], "b": [7.0, 0.0, 100.0, -1.0]})
    np.testing.assert_array_equal(columns.encode(read_table(later))[:, 1], [1, 2, 2, 0])


@pytest.mark.parametrize("values", [[0.5, 2.25], [-3.0, 1e9], [5.0, 6.0], [0.0, 1.0]])
def test_numbers_are_found_among_categories(values):
    column = np.array([*values, np.nan, 0.75, -1e300, 1e300, 5.5])
    found = Categories(values).encode(column, "column")
    if Categories(values).are_own_codes:
        np.testing.assert_array_equal(found, column)  # the engine detects that 0.75 is not a code
    else:
        np.testing.assert_array_equal(found, [0, 1, np.nan, 2, 2, 2, 2])


def test_numbers_that_are_already_codes_are_not_copied(rng):
    X = np.column_stack([rng.normal(size=50), rng.permutation(50) % 4])
    assert np.shares_memory(encode(X, [1]), X)
    assert not np.shares_memory(encode(X + 1, [1]), X)


def test_text_listed_as_categorical(rng):
    colours = np.array(COLOURS, dtype=object)[rng.integers(0, 4, size=100)]
    y = (colours == "red").astype(float)
    expected = None
    for X in (
        pd.DataFrame({"colour": colours}),
        pl.DataFrame({"colour": colours.tolist()}),
        pa.table({"colour": colours.tolist()}),
        colours[:, np.newaxis],
    ):
        model = GraftBoostRegressor(n_estimators=30, min_samples_leaf=5, categorical_features=[0])
        model.fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, atol=0.1)
        expected = model.predict(X) if expected is None else expected
        np.testing.assert_array_equal(model.predict(X), expected)


def test_lists_of_rows_keep_numbers_beside_text():
    rows = [["a", 1.5], ["b", 2.5]]
    np.testing.assert_array_equal(encode(rows, [0]), [[0, 1.5], [1, 2.5]])


def test_categories_of_several_types_are_ordered():
    mixed = Categories([(1, 2), "b", 3, "a"])
    assert mixed.values == Categories(["a", 3, "b", (1, 2)]).values
    days = [datetime.date(2024, 5, 2), datetime.date(2024, 5, 1)]
    assert Categories(days).values == sorted(days)


def test_a_column_of_missing_categories(rng):
    X = pd.DataFrame({"a": rng.normal(size=50), "c": pd.Categorical([None] * 50)})
    model = GraftBoostRegressor(n_estimators=3).fit(X, X["a"])
    X["c"] = pd.Categorical(["new"] * 50)
    assert np.isfinite(model.predict(X)).all()


def test_many_categories(rng):
    colour = rng.integers(0, 2_000, size=6_000)
    y = (colour % 7 == 0).astype(float)
    X = pd.DataFrame({"colour": pd.Categorical([f"c{value:04}" for value in colour])})
    model = GraftBoostRegressor(n_estimators=5, min_samples_leaf=1).fit(X, y)
    assert model.predict(X).std() > 0


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        (None, True),
        (float("nan"), True),
        (np.float32("nan"), True),
        (pd.NA, True),
        (pd.NaT, True),
        (np.datetime64("NaT"), True),
        (0, False),
        ("", False),
        (False, False),
        ((1, 2), False),
    ],
)
def test_is_missing(value, missing):
    assert is_missing(value) is missing


def test_columns_pickle(rng):
    columns, _ = mixed_columns(rng)
    frame = frames_of(columns)["pandas"]
    learned = Columns.learn(read_table(frame), "from_dtype")
    learned.encode(read_table(frame))
    copy = pickle.loads(pickle.dumps(learned))
    np.testing.assert_array_equal(copy.encode(read_table(frame)), learned.encode(read_table(frame)))
