"""Test errors: properties that they have whatever the noise, and the page."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.libraries import Library
from benchmarks.settings import Settings
from datasets import Dataset, paper
from experiments.harness.draws import SIZES
from experiments.harness.results import Done, Results
from experiments.paper import test_error
from experiments.paper.test_error import paper_figures, showing
from experiments.paper.test_error.measuring import WAYS, Errors

pytest.importorskip("matplotlib")

TINY = Settings(leaves=5, iterations=8, threads=1)


@pytest.fixture
def errors(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> Errors:
    monkeypatch.setattr(Library, "available", lambda library: False)
    X = rng.normal(size=(500, 3)).astype(np.float32)
    y = np.digitize(X[:, 0] + rng.normal(scale=0.3, size=500), [-0.5, 0.5]).astype(np.int64)
    data = Dataset("letter", "classification", X[:300], y[:300], X[300:], y[300:])
    return Errors(data, settings=TINY)


def test_controls_of_adding_and_removing_correspond(errors: Errors) -> None:
    found = errors.updated(SIZES)
    trained = errors.trained(())
    assert trained.keys() == {"graftboost", "half", "few"}
    for share in SIZES:
        adding, removing = found["add"][share], found["remove"][share]
        assert adding.pop("refitted") in (False, True)
        assert removing.pop("refitted") in (False, True)
        assert adding.keys() == {"graftboost", "paper", "untouched", "retrained"}
        assert adding["untouched"] == removing["retrained"]
        assert adding["retrained"] == removing["untouched"] == trained["graftboost"]
        assert all(0 <= error < 0.6 for error in (*adding.values(), *removing.values()))


def test_draws_differ_by_share_and_seed(errors: Errors) -> None:
    other = Errors(errors.data, seed=1, settings=TINY)
    assert len(errors._draw(0.0, 0)) == 1
    assert len(errors._draw(0.1, 1)) == len(set(errors._draw(0.1, 1))) == 30
    assert not np.array_equal(errors._draw(0.1, 1), errors._draw(0.1, 2))
    assert not np.array_equal(errors._draw(0.1, 1), other._draw(0.1, 1))


def test_squared_errors_have_the_papers_order_of_magnitude() -> None:
    # Between 0 and the error of a model that always predicts the mean.
    for name, most in {"abalone": 0.0133, "wine_quality": 0.0212}.items():
        assert 0.3 * most < (paper_figures.trained("graftboost", name) or 0) < most
        for way in WAYS:
            for share in SIZES:
                assert 0.3 * most < paper_figures.updated(way, share, name) < most


def _results(errors: dict[str, list[float]]) -> Results:
    results = Results("test-error", "full")
    for name, found in errors.items():
        for split, error in enumerate(found):
            each = {"graftboost": error, "paper": error, "untouched": error, "retrained": error}
            of_shares = {share: {**each, "refitted": share == "1%"} for share in SIZES}
            updated = dict.fromkeys(WAYS, of_shares)
            trained = {"graftboost": error, "half": error, "few": error, "lightgbm": error}
            values = {"n_test": 1000, "trained": trained, "updated": updated, "skipped": []}
            results.add(Done({"data": name, "split": split}, values, 1.0))
    return results


def test_standard_errors() -> None:
    # One split: both figures were counted among test rows.
    away = showing.standard_errors_away(_results({"optdigits": [0.0307, 0.0307]}), "optdigits")
    assert away == pytest.approx(0.0)
    worse = showing.standard_errors_away(_results({"optdigits": [0.05, 0.05]}), "optdigits")
    assert worse == pytest.approx((0.05 - 0.0307) / np.sqrt(0.0307 * 0.9693 / 1796))
    # Several: ours is a mean.
    spread = showing.standard_errors_away(_results({"adult": [0.13, 0.14]}), "adult")
    assert spread == pytest.approx(
        (0.135 - 0.1276) / np.sqrt(0.005**2 + 0.1276 * 0.8724 / 9034), rel=1e-6
    )
    assert showing.standard_errors_away(_results({"higgs": [0.3]}), "higgs") is None
    assert showing.standard_errors_away(_results({"abalone": [0.006]}), "abalone") is None


def test_goals_use_the_worst_data_set() -> None:
    results = _results({"adult": [0.12, 0.121], "letter": [0.2, 0.21], "abalone": [0.00577]})
    classes, numbers = showing.goals(results)
    assert classes.worst == "letter"
    assert classes.verdict().startswith("no: +")
    assert "on 2 of 6 data sets" in classes.verdict()
    assert numbers.verdict().startswith("yes: 1.00")
    results.scale = "quick"
    assert all(goal.measured is None for goal in showing.goals(results))


def test_page() -> None:
    results = _results({name: [0.05, 0.06] for name in ("adult", "susy", "wine_quality")})
    shown = test_error.EXPERIMENT.tables(results)
    assert "| Adult | 0.05500 ± 0.005 (0.1276) | 0.05500 | 0.05500 | 0.05500 (0.1277) | -" in shown
    assert "| SUSY* | remove | 0.05500 (0.1987) |" in shown
    assert "| WineQuality | add | 0.05500 (0.01208) |" in shown
    assert "| 0.05500 (0.1294) | 0.05500† (0.1267) |" in shown
    assert "+0.0% to +0.0%" in test_error.EXPERIMENT.answer(results)
    assert len(test_error.EXPERIMENT.draw(results).axes) == 3


def test_cases_are_five_splits_of_every_set() -> None:
    full = [case.labels for case in test_error.cases("full")]
    assert sum(labels["data"] == "covtype" for labels in full) == 5
    assert {labels["data"] for labels in full} == set(paper.SETS)
    assert len(list(test_error.cases("quick"))) == 6
