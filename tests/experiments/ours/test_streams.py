"""Learners follow a stream row by row, step by step or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import datasets
from benchmarks.libraries import LIBRARIES
from benchmarks.settings import Settings
from benchmarks.updates.learners import RIVER, Retrained
from benchmarks.updates.part import Plan
from experiments.ours import streams
from experiments.ours.streams import EXPERIMENT, LEARNERS, Stream, error_of, measure
from tests.experiments.measured import measured

TINY = Settings(leaves=4, iterations=8, min_rows=5, threads=1)
SMALL = {
    name: Stream(name, streams.FULL[name].task, 200, 20, "", max_rows=300, settings=TINY)
    for name in ("electricity", "bike_sharing")
}


def _made(name: str) -> tuple[Any, Any]:
    """Rows whose target changes sign after the first window."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    turned = np.where(np.arange(400) < 150, 1, -1)
    score = X[:, 0] * turned + rng.normal(scale=0.1, size=400)
    return X, score if name == "bike_sharing" else (score > 0).astype(np.int64)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "load_in_order", _made)
    monkeypatch.setattr(streams, "QUICK", SMALL)


def test_measurements_and_page() -> None:
    for library in (LIBRARIES["lightgbm"], RIVER):
        pytest.importorskip(library.module)
    results = measured("streams", EXPERIMENT.cases("quick"))
    for name in SMALL:
        found = {who: results.find(data=name, learner=who) or {} for who in LEARNERS}
        assert all(len(values["error"]) == 5 for values in found.values())
        assert all(len(values["learn_seconds"]) == 6 for values in found.values())
        untouched = error_of(found["untouched"])
        assert error_of(found["updated"]) < untouched
        assert error_of(found["lightgbm"]) < untouched
    text = EXPERIMENT.tables(results)
    assert text.count("river, adaptive random forest") == len(SMALL)
    assert "a window of 200, 5 steps of 20" in text
    assert "the untouched model" in EXPERIMENT.remark(results)
    assert "faster than retraining LightGBM" in EXPERIMENT.answer(results)
    assert len(EXPERIMENT.draw(results).axes) == len(SMALL)


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise ImportError("not there")

    monkeypatch.setattr(LIBRARIES["lightgbm"], "load", missing)
    monkeypatch.setattr(RIVER, "load", missing)
    results = measured("streams", EXPERIMENT.cases("quick"))
    assert results.skipped() == ["LightGBM", "river"]
    assert EXPERIMENT.tables(results)
    assert EXPERIMENT.remark(results)
    assert EXPERIMENT.draw(results)


def test_one_row_in_several_is_used() -> None:
    X, y = _made("electricity")
    thinned, targets = Stream("", "classification", 1, 1, "", every=3, max_rows=100).rows("made")
    np.testing.assert_array_equal(thinned, X[:300:3])
    np.testing.assert_array_equal(targets, y[:300:3])


def test_periodic_retraining() -> None:
    X, y = _made("electricity")
    plan = Plan(TINY, (), 1, lambda line: None)
    learner = Retrained("made", plan, library=LIBRARIES["graftboost"], every=2)
    learner.start(X, y, 100)
    first = learner.predict(X)
    learner.follow(100, 200)
    np.testing.assert_array_equal(learner.predict(X), first)
    learner.follow(200, 300)
    fresh = LIBRARIES["graftboost"].model("classification", TINY).fit(X[200:300], y[200:300])
    np.testing.assert_array_equal(learner.predict(X), fresh.predict(X))
    assert len(learner.record.samples["fit_seconds"]) == 2


def test_regression_error_is_a_root_mean_square() -> None:
    assert error_of({"task": "regression", "error": [4.0, 14.0]}) == 3.0
    assert error_of({"task": "classification", "error": [0.1, 0.3]}) == pytest.approx(0.2)


def test_an_untouched_model_learns_nothing() -> None:
    values = measure("electricity", "untouched", SMALL["electricity"])
    assert values["refits"] is None
    assert sum(values["learn_seconds"][1:]) < values["learn_seconds"][0] + 1
