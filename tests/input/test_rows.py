"""Reading and validating targets, weights and ids."""

import numpy as np
import pytest

from graftboost.estimators.seed import draw_seed
from graftboost.input.distinct_values import code_integers
from graftboost.input.holdout import held_out
from graftboost.input.row_ids import check_row_ids
from graftboost.input.rows import Rows
from graftboost.input.targets import check_labels
from graftboost.input.weights import check_weight, weigh_classes


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2, 1],
        [-5.0, 7.0, -5.0],
        [True, False],
        [2**53, 2**53 - 1],
        np.array([250, 3], dtype=np.uint8),
        np.array([1.0, 0.0], dtype=np.float16),
        np.array([-128, 127], dtype=np.int8),
    ],
)
def test_coding_by_table_equals_coding_by_sorting(values):
    values = np.asarray(values)
    codes, distinct = code_integers(values)
    expected, inverse = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected)
    assert distinct.dtype == values.dtype
    np.testing.assert_array_equal(codes, inverse)


@pytest.mark.parametrize(
    "values", [[], [0.5], [0, 1 << 16], [np.nan, 1.0], [np.inf, 1.0], [1e300, 1e300], ["a", "b"]]
)
def test_other_values_are_not_coded_by_table(values):
    assert code_integers(np.asarray(values)) is None


def test_strings_are_coded_like_other_labels():
    for dtype in (object, str):
        classes, codes = check_labels(np.array(["b", "a", "c", "a"], dtype=dtype), 4)
        assert classes.tolist() == ["a", "b", "c"]
        assert codes.tolist() == [1, 0, 2, 0]


def test_weights():
    assert check_weight(None, 3) is None
    assert check_weight([1, 1, 1], 3) is None
    assert check_weight(1.0, 3) is None
    assert check_weight(2, 3).tolist() == [2, 2, 2]
    assert check_weight([0, 1, 2.5], 3).tolist() == [0, 1, 2.5]


def test_class_weights():
    classes, codes = np.array(["a", "b"]), np.array([0.0, 0.0, 0.0, 1.0])
    counts = np.array([3, 1])
    assert weigh_classes(None, classes, counts) is None
    assert weigh_classes({"a": 3}, classes, counts).tolist() == [3, 1]
    np.testing.assert_allclose(weigh_classes("balanced", classes, counts), [4 / 6, 2])
    rows = Rows(np.zeros((4, 1)), codes, np.array([1.0, 2.0, 3.0, 4.0]))
    weighed = rows.weighed_by_class(np.array([10.0, 1.0]))
    assert weighed.weight.tolist() == [10, 20, 30, 4]


def test_row_ids():
    assert check_row_ids(None, 2) is None
    ids = check_row_ids(np.array([7, -3], dtype=np.int16), 2)
    assert ids.dtype == np.int64
    assert ids.tolist() == [7, -3]
    assert check_row_ids(range(4), 4).tolist() == [0, 1, 2, 3]


def test_holding_out_a_row_does_not_depend_on_the_others(rng):
    ids = rng.permutation(100_000)[:5_000] - 50_000
    held = held_out(ids, 0.2, seed=1)
    assert held.mean() == pytest.approx(0.2, abs=0.02)
    order = rng.permutation(5_000)
    np.testing.assert_array_equal(held_out(ids[order], 0.2, seed=1), held[order])
    np.testing.assert_array_equal(held_out(ids[:50], 0.2, seed=1), held[:50])
    assert (held_out(ids, 0.2, seed=2) != held).any()
    assert (held_out(ids, 0.1, seed=1) <= held).all()


def test_at_least_one_row_is_held_out():
    assert held_out(np.arange(3), 1e-9, seed=0).sum() == 1


def test_each_row_is_either_trained_on_or_held_out(rng):
    X, y = rng.normal(size=(100, 2)), np.arange(100.0)
    rows = Rows(X, y, weight=y + 1, ids=np.arange(100) + 5)
    train, validation = rows.hold_out(0.3, seed=0)
    assert sorted([*train.y, *validation.y]) == y.tolist()
    np.testing.assert_array_equal(train.ids, train.y + 5)
    np.testing.assert_array_equal(train.X, X[train.y.astype(int)])
    np.testing.assert_array_equal(validation.weight, validation.y + 1)


def test_seeds():
    assert draw_seed(5) == 5
    assert draw_seed(np.int32(5)) == 5
    assert draw_seed(None) != draw_seed(None)
    assert draw_seed(np.random.RandomState(5)) == draw_seed(np.random.RandomState(5))
    state = np.random.RandomState(5)
    assert draw_seed(state) != draw_seed(state)
