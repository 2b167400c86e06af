"""Long sequences of updates, on a few digits."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.datasets import load_digits

pytest.importorskip("matplotlib")

from benchmarks.settings import Settings
from datasets import Dataset
from experiments.harness.results import Done, Results
from experiments.ours import stability
from experiments.ours.stability import EXPERIMENT, SEQUENCES
from tests.experiments.measured import measured


def _digits(name: str) -> Dataset:
    X, y = load_digits(return_X_y=True)
    X = X.astype("float32")
    return Dataset(name, "classification", X[:600], y[:600], X[600:800], y[600:800])


@pytest.fixture(scope="module")
def results() -> Results:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stability.datasets, "load", _digits)
        patch.setattr(stability, "Settings", lambda: Settings(iterations=4, leaves=6, threads=1))
        patch.setattr(stability, "DATA", {"quick": {"optdigits": (4, 6)}})
        patch.setattr(stability, "CONTROLS", 2)
        return measured(EXPERIMENT.name, EXPERIMENT.cases("quick"))


def test_both_sequences_are_compared_with_refits(results: Results) -> None:
    assert results.all_of("sequence") == list(SEQUENCES)
    for done in results.where():
        points = done.values["points"]
        assert points[-1]["updates"] == (4 if done.labels["sequence"] == "same row" else 6)
        assert all(point["loss"] > 0 and point["mean"] >= 0 for point in points)
        assert done.values["by_refit"]["largest"] >= done.values["by_refit"]["mean"]


def test_page(results: Results) -> None:
    assert EXPERIMENT.tables(results).count("| optdigits |") == len(SEQUENCES)
    assert "times that of a refit" in EXPERIMENT.answer(results)
    assert EXPERIMENT.answer(Results(EXPERIMENT.name, "quick")) == ""
    assert len(EXPERIMENT.draw(results).axes) == 1


def test_sequences_that_wander_further_than_refits_are_named() -> None:
    results = Results(EXPERIMENT.name, "quick")
    point = {"updates": 5, "loss": 1.0, "loss_refitted": 1.0, "mean": 0.2, "largest": 0.3}
    by_refit = {"mean": 0.3, "largest": 0.4, "loss": 0.01}
    values: dict[str, Any] = {"points": [point], "by_refit": by_refit}
    results.add(Done({"data": "adult", "sequence": "same row"}, values, 0.1))
    assert EXPERIMENT.remark(results).startswith("No model differs more")
    values["by_refit"]["mean"] = 0.1
    assert "adult, same row" in EXPERIMENT.remark(results)
