"""Series that are added and removed in blocks: properties of the models that follow them."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.harness.results import Done, Results
from experiments.paper import time_series
from experiments.paper.time_series import FOLLOWERS, PAPER, follow

pytest.importorskip("matplotlib")

STEPS = 19


def test_followers_of_a_synthetic_series(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {name: FOLLOWERS[name] for name in ("graftboost", "pieces", "retrained", "untouched")}
    monkeypatch.setattr(time_series, "FOLLOWERS", kept)
    X = rng.random((1000, 2)).astype(np.float32)
    y = np.round(X[:, 0].astype(np.float64), 2)
    values = follow(X, y, split=0)
    errors = values["errors"]
    assert errors.keys() == kept.keys()
    assert all(len(each) == STEPS for each in errors.values())
    assert len({each[0] for each in errors.values()}) == 1  # all start from the same model
    assert set(errors["untouched"]) == {errors["untouched"][0]}
    assert errors["retrained"][:10] == errors["retrained"][9:][::-1]
    for name in ("graftboost", "pieces", "retrained"):
        assert errors[name][9] < errors["untouched"][9]
    assert values["refits"]["untouched"] == 0
    assert values["skipped"] == []


def test_test_rows_follow_the_split(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_series, "FOLLOWERS", {"untouched": FOLLOWERS["untouched"]})
    X = rng.random((600, 1)).astype(np.float32)
    y = X[:, 0].astype(np.float64)
    same, other = follow(X, y, split=0), follow(X, y, split=1)
    assert same == follow(X, y, split=0)
    assert same["errors"] != other["errors"]


@pytest.fixture
def results() -> Results:
    found = Results("time-series", "full")
    for name, theirs in PAPER.items():
        for split, factor in enumerate((0.9, 1.3)):
            errors = {model: [factor * value / 1000 for value in theirs] for model in FOLLOWERS}
            values = {"errors": errors, "refits": dict.fromkeys(FOLLOWERS, 3), "skipped": []}
            found.add(Done({"data": name, "split": split}, values, 1.0))
    return found


def test_page(results: Results) -> None:
    shown = time_series.tables(results)
    assert "| first 10% | 4.613 |" in shown
    assert "| add, 100% |" in shown
    assert "| remove, 10% |" in shown
    assert shown.count("refits or retrains") == 2
    assert "1.10 to 1.10 times (GlobalTemperatures)" in time_series.answer(results)
    assert len(time_series.draw(results).axes) == 2
    (goal,) = time_series.goals(results)
    assert goal.measured == pytest.approx(1.1)


def test_figures_of_the_paper_have_every_step() -> None:
    assert {len(errors) for errors in PAPER.values()} == {STEPS}
    assert [case.labels["split"] for case in time_series.cases("quick")] == [0, 0]
