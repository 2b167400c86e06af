"""Conditions select rows, and do not run code."""

from __future__ import annotations

import numpy as np
import pytest

from graftboost.store.conditions import where

TEXT = np.array(["a", "b", None, "a b"], dtype=object)
COLUMNS = {
    "n": np.array([1, 2, 3, -4]),
    "x": np.array([0.5, np.nan, 1e9, 2]),
    "t": TEXT,
    "a b": TEXT,
}


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("n == 1", [0]),
        ("n != 1", [1, 2, 3]),
        ("1 < n <= 3", [1, 2]),
        ("n == -4", [3]),
        ("n in (1, 3)", [0, 2]),
        ("n not in [1, 3]", [1, 3]),
        ("x > 1", [2, 3]),
        ("not x > 1", [0]),
        ("x != 0.5", [2, 3]),
        ("t not in ('a',)", [1, 3]),
        ("not t == 'a'", [1, 3]),
        ("t == 'b' or n == 3", [1, 2]),
        ("t == 'a'", [0]),
        ('t == "a b" or n == 1', [0, 3]),
        ("t != 'a'", [1, 3]),
        ("t < 'b' and (n == 1 or n == -4)", [0, 3]),
        ("`a b` == 'b'", [1]),
        ("n == x", []),
        ("n < x", [2, 3]),
        ("t == `a b`", [0, 1, 3]),
        ("'b' == t", [1]),
        ("True == True", [0, 1, 2, 3]),
    ],
)
def test_valid_conditions(condition: str, found: list[int]) -> None:
    assert np.flatnonzero(where(condition, COLUMNS)).tolist() == found


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "is not valid"),
        ("n ==", "is not valid"),
        ("n = 1", "is not valid"),
        ("n", "contains 'n', which is not supported"),
        ("n + 1 == 2", r"contains 'n \+ 1'"),
        ("m == 1", "names 'm', which is not an attribute. The attributes are: n, x, t, a b"),
        ("t == a", "names 'a', which is not an attribute.*Write text in quotes"),
        ("t == 1", "compares text with numbers: t and 1. Write text in quotes"),
        ("n == '1'", "compares text with numbers"),
        ("1 < 'a'", "compares text with numbers"),
        ("n == 99999999999999999999", "not supported"),
        ("n in t", "contains 't'"),
        ("n is 1", "not supported"),
        ("__import__('os').system('true') == 0", "not supported"),
        ("n.__class__ == 1", "not supported"),
        ("(lambda: 1)() == 1", "not supported"),
        ("n == 1j", "not supported"),
        ("`nope` == 1", "names 'nope'"),
        ("(" * 500 + "n" + ")" * 500 + " == 1", "."),
    ],
)
def test_invalid_conditions(condition: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        where(condition, COLUMNS)
