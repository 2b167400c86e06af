"""Results are stored compactly, and without losing a figure that a page shows."""

from __future__ import annotations

import json

import pytest

from benchmarks.json_lines import DIGITS, WIDTH, to_json


def test_small_values_take_one_line() -> None:
    assert to_json({"seconds": [1 / 3, 0.5], "refits": 0, "failure": None}) == (
        '{"seconds": [0.3333333, 0.5], "refits": 0, "failure": null}'
    )


def test_large_values_take_one_line_per_item() -> None:
    records = [{"data": "adult", "samples": {"loss": [i / 7] * 60}} for i in range(5)]
    text = to_json({"kind": "fit", "records": records})
    assert json.loads(text)["records"][4]["samples"]["loss"] == [round(4 / 7, DIGITS)] * 60
    lines = text.splitlines()
    assert sum(line.strip().startswith('{"data": "adult"') for line in lines) == len(records)


def test_a_list_of_numbers_is_never_broken_up() -> None:
    numbers = list(range(WIDTH))
    assert to_json([numbers, numbers]).count("\n") == 3


def test_values_that_are_not_json_are_errors() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"loss": float("nan")})
