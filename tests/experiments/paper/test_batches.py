"""Batches are added and removed, and the model holds the expected rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.libraries import LIBRARIES
from benchmarks.settings import Settings
from datasets import Dataset, paper
from experiments.paper import batches
from experiments.paper.batches import (
    EXPERIMENT,
    PEERS,
    RETRAINED_OURS,
    UPDATED,
    WAYS,
    Plan,
    measure,
)
from tests.experiments.measured import measured

TINY = Plan(settings=Settings(leaves=4, iterations=5, min_rows=2, threads=1))


def _made(name: str, split: int = 0, max_rows: int | None = None) -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)).astype(np.float32)
    y = (X[:, 0] + rng.normal(scale=0.3, size=500) > 0).astype(np.int64)
    return Dataset(name, "classification", X[:400], y[:400], X[400:], y[400:])


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches.paper, "load", _made)
    monkeypatch.setattr(batches, "QUICK", {"adult": TINY})


def _missing() -> Any:
    raise ImportError("not there")


def test_measurements_and_page() -> None:
    results = measured("batches", EXPERIMENT.cases("quick"))
    n_steps = 2 * batches.BATCHES - 1
    for who in UPDATED:
        values = results.find(data="adult", contender=who) or {}
        for way in WAYS:
            assert len(values[way]["accuracy"]) == n_steps
            assert len(values[way]["seconds"]) == len(values[way]["refitted"]) == n_steps - 1
            assert min(values[way]["accuracy"]) > 0.6
    # Before the first step, both models are trained on the same rows.
    retrained = results.find(data="adult", contender=RETRAINED_OURS) or {}
    updated = results.find(data="adult", contender="graftboost") or {}
    assert updated["up"]["accuracy"][0] == retrained["accuracy"][0]
    assert updated["down"]["accuracy"][0] == retrained["accuracy"][-1]
    # Doubling the rows changes more than a quarter of them.
    assert updated["up"]["refitted"][0]

    text = EXPERIMENT.tables(results)
    assert text.count("| Adult |") == len(UPDATED) * len(WAYS)
    assert f"of {2 * (n_steps - 1)} steps" in EXPERIMENT.remark(results)
    figure = EXPERIMENT.draw(results)
    assert len(figure.axes) == len(WAYS)


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for peer in PEERS:
        monkeypatch.setattr(LIBRARIES[peer], "load", _missing)
    results = measured("batches", EXPERIMENT.cases("quick"))
    assert results.skipped() == [LIBRARIES[peer].title for peer in PEERS]
    assert EXPERIMENT.tables(results)
    assert EXPERIMENT.remark(results)
    assert EXPERIMENT.draw(results)


def test_all_batches_are_held_in_the_middle_and_one_at_the_end() -> None:
    held = []

    class Counting(batches.Ours):
        def predict(self, X: Any) -> Any:
            held.append(self.model.n_rows_)
            return super().predict(X)

    data = _made("adult")
    parts = np.array_split(np.arange(400), 20)
    batches._updated(data, parts, Counting("classification", TINY.settings), "up")
    assert held == [20 * size for size in batches.sizes("up")]


def test_full_run_uses_data_sets_of_the_paper() -> None:
    assert {case.labels["data"] for case in EXPERIMENT.cases("full")} <= set(paper.SETS)
    assert measure("adult", RETRAINED_OURS, TINY)["accuracy"]
