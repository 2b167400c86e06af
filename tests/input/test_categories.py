"""Categories: how they are identified, ordered and encoded."""

import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from graftboost import GraftBoostRegressor
from graftboost.input.categories import Categories, Coded, is_missing
from graftboost.input.columns import Columns
from graftboost.input.table import read_table

from .mixed_tables import COLOURS, array_of, encode, frames_of, mixed_columns


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


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("n_known", [2, 4, 5])
@pytest.mark.parametrize("order", ["the same", "another"])
def test_codes_of_every_width_are_encoded_by_value(rng, dtype, n_known, order):
    values = [10, 20, 30, 40] if order == "the same" else [40, 20, 10, 30]
    known = Categories([10, 20, 30, 40, 50][:n_known])
    codes = rng.integers(-1, 4, 200).astype(dtype)
    for column in (codes, np.abs(codes)):  # with and without missing values
        expected = [np.nan if code < 0 else min(values[code] // 10 - 1, n_known) for code in column]
        before = column.copy()
        np.testing.assert_array_equal(known.encode(Coded(column, values), "x"), expected)
        np.testing.assert_array_equal(column, before)


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
