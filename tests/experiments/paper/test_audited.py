"""The experiments that use audits, on a few digits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sklearn.datasets import load_digits

pytest.importorskip("matplotlib")

from benchmarks.settings import Settings
from datasets import Dataset, paper
from experiments.harness import draws
from experiments.harness.experiment import Experiment
from experiments.harness.results import Done, Results
from experiments.paper import (
    backdoor,
    leaf_error,
    membership,
    robustness,
    similarity,
    split_shift,
)

SMALL = Settings(iterations=5, leaves=6, threads=1)
SIZES = {
    backdoor: {"optdigits": None, "pendigits": None},
    similarity: {"optdigits": (None, 1), "pendigits": (None, 2)},
    membership: {"optdigits": (None, 2), "pendigits": (None, 1)},
    leaf_error: {"optdigits": (None, 1), "pendigits": (None, 1)},
    split_shift: {"optdigits": (None, 1), "pendigits": (None, 1)},
    robustness: {"optdigits": (None, 1), "pendigits": (None, 1)},
}


def _digits(name: str, *arguments: Any, **named: Any) -> Dataset:
    X, y = load_digits(return_X_y=True)
    X = X.astype("float32")
    return Dataset(name, "classification", X[:400], y[:400], X[400:600], y[400:600])


@pytest.fixture
def on_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "load", _digits)
    monkeypatch.setattr(backdoor, "Settings", lambda: SMALL)
    monkeypatch.setattr(draws, "Settings", lambda: SMALL)
    monkeypatch.setattr(membership, "OVERFITTED", {**membership.OVERFITTED, "n_jobs": 1})
    for module, sizes in SIZES.items():
        monkeypatch.setattr(module, "DATA", {"quick": sizes, "full": sizes})


def _measure(experiment: Experiment) -> Results:
    results = Results(experiment.name, "quick", "today")
    for case in experiment.cases("quick"):
        results.add(Done(dict(case.labels), case.measure(), 0.1))
    return results


@pytest.mark.usefixtures("on_digits")
@pytest.mark.parametrize("module", SIZES, ids=lambda module: module.__name__.split(".")[-1])
def test_complete_and_incomplete_results(module: Any) -> None:
    experiment: Experiment = module.EXPERIMENT
    results = _measure(experiment)
    assert experiment.answer(results).count(". ") >= 1
    # As if all cases but the first, or all but the last, had failed.
    parts = [replace(results, cases=cases) for cases in (results.cases[:1], results.cases[-1:])]
    for shown in (results, *parts):
        assert experiment.tables(shown).count("\n| ") >= 2
        assert len(experiment.remark(shown)) > 100
        assert isinstance(experiment.answer(shown), str)
        assert experiment.draw(shown).axes
        for goal in experiment.goals(shown):
            assert goal.verdict()
