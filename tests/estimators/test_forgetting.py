"""What an estimate of forgetting says, in numbers and in words."""

from __future__ import annotations

import math

import pytest

from graftboost.estimators.forgetting import Forgetting


def test_fidelity_is_the_achieved_fraction() -> None:
    forgetting = Forgetting(3.0, 1.0, 0.4, 1.0, 5, 2)
    assert forgetting.fidelity == 0.75
    assert forgetting.fidelity_error == pytest.approx(3.0 * 0.4 / 4.0**2)


def test_fidelity_where_a_retrain_would_change_nothing() -> None:
    for achieved, left in ((0.0, 0.0), (1.0, -1.0), (0.5, -1.5)):
        forgetting = Forgetting(achieved, left, 0.1, 0.0, 1, 0)
        assert math.isnan(forgetting.fidelity)
        assert forgetting.fidelity_error == math.inf


def test_fidelity_of_an_update_in_the_wrong_direction() -> None:
    forgetting = Forgetting(-1.0, 3.0, 0.4, 3.0, 1, 1)
    assert forgetting.fidelity == -0.5
    assert forgetting.fidelity_error == pytest.approx(0.1)


IN_WORDS = {
    "no row": (
        Forgetting(0.0, 0.0, 0.0, 0.0, 0, 0),
        1_200,
        "none of 1,200 rows was clearly remembered",
    ),
    "one row, forgotten": (
        Forgetting(0.9, 0.1, 0.04, 0.01, 1, 0),
        7,
        "1 of 7 rows was clearly remembered, none is any more; estimated fidelity 0.90 ± 0.04",
    ),
    "several rows, one left": (
        Forgetting(2.7, 0.3, 0.1, 0.2, 4, 1),
        30,
        "4 of 30 rows were clearly remembered, 1 still is; estimated fidelity 0.90 ± 0.03",
    ),
    "several rows, several left": (
        Forgetting(1_500.0, 500.0, 40.0, 2.0, 30, 10),
        5_000,
        "30 of 5,000 rows were clearly remembered, 10 still are; estimated fidelity 0.75 ± 0.01",
    ),
    "unreliable": (
        Forgetting(0.1, 0.1, 0.2, 0.1, 2, 2),
        3,
        "2 of 3 rows were clearly remembered, 2 still are; too little to estimate the fidelity",
    ),
    "nothing to achieve": (
        Forgetting(0.1, -0.2, 0.0, 0.0, 1, 0),
        1,
        "1 of 1 rows was clearly remembered, none is any more; too little to estimate the fidelity",
    ),
}


@pytest.mark.parametrize(("forgetting", "n_rows", "expected"), IN_WORDS.values(), ids=IN_WORDS)
def test_in_words(forgetting: Forgetting, n_rows: int, expected: str) -> None:
    assert forgetting.in_words(n_rows) == expected
