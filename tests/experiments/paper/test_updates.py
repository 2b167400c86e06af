"""Update times are measured and shown, whichever libraries are installed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.libraries import LIBRARIES
from benchmarks.settings import Settings
from datasets import Dataset, paper
from experiments.harness.draws import SIZES, WAYS
from experiments.harness.experiment import Case
from experiments.harness.results import Done, Results
from experiments.paper.updates import EXPERIMENT, measuring
from experiments.paper.updates.measuring import COMPARED, WHO, Plan, measure
from experiments.paper.updates.paper_figures import PAPER
from experiments.paper.updates.tables import ratio_of, seconds_of, speed_up
from tests.experiments.measured import measured

TINY = Plan(
    singles=2,
    draws=2,
    trainings=2,
    settings=Settings(leaves=6, iterations=8, min_rows=5, threads=1),
)


def _made(name: str, split: int = 0, max_rows: int | None = None) -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + rng.normal(scale=0.5, size=600)
    y: Any = score if paper.SETS[name].task == "regression" else (score > 0).astype(np.int64)
    return Dataset(name, paper.SETS[name].task, X[:500], y[:500], X[500:], y[500:])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring.paper, "load", _made)
    monkeypatch.setattr("gc.collect", lambda: 0)  # needed only for timing, and slow


@pytest.fixture
def results(made: None, monkeypatch: pytest.MonkeyPatch) -> Results:
    for peer in ("lightgbm", "xgboost"):
        if not measuring.CONTENDERS[peer].available():
            pytest.skip(f"{peer} is not installed")
    monkeypatch.setattr(measuring, "QUICK", {"adult": TINY, "abalone": TINY})
    cases = [c for c in EXPERIMENT.cases("quick") if c.labels["contender"] != "catboost"]
    return measured("updates", cases)


def test_measurements_and_page(results: Results) -> None:
    for name in ("adult", "abalone"):
        for way in WAYS:
            for size in SIZES:
                for who in ("graftboost", "paper", "predecessor", "sisa"):
                    assert (seconds_of(results, name, who, way, size) or 0) > 0
                assert (speed_up(results, name, "lightgbm", way, size) or 0) > 0
            for size in COMPARED:
                # SISA retrains every shard that held the rows, so it forgets them completely.
                sisa = ratio_of(results, name, "sisa", way, size)
                assert sisa is not None
                assert sisa.value == pytest.approx(1)
    text = EXPERIMENT.tables(results)
    assert text.count("**Adding") == text.count("**Removing") == 2
    assert "CatBoost, retrained" in text  # a column of dashes
    assert "LightGBM's retrain" in EXPERIMENT.remark(results)
    assert "small samples" in EXPERIMENT.remark(results)
    assert "faster than retraining LightGBM" in EXPERIMENT.answer(results)
    figure = EXPERIMENT.draw(results)
    assert [axis.get_title() for axis in figure.axes] == ["Adult", "Abalone"]


def test_missing_libraries_are_named(made: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise ImportError("not there")

    monkeypatch.setattr(LIBRARIES["lightgbm"], "load", missing)
    cases = [
        Case({"data": "adult", "contender": who}, lambda who=who: measure("adult", who, TINY))
        for who in ("graftboost", "lightgbm", "lightgbm-refit", "sisa")
    ]
    results = measured("updates", cases)
    assert results.skipped() == ["LightGBM"]
    assert speed_up(results, "adult", "lightgbm", "add", "1%") is None
    assert EXPERIMENT.tables(results)
    assert EXPERIMENT.remark(results)
    assert EXPERIMENT.draw(results)


def _measured(seconds: dict[str, float]) -> Results:
    """Results with updates of one second, and LightGBM's training seconds by data set."""
    sizes = {size: {"rows": 1, "seconds": [1.0], "refits": 0} for size in SIZES}
    updates = {way: dict.fromkeys(("graftboost", "predecessor"), sizes) for way in WAYS}
    results = Results("updates", "full")
    for name, training in seconds.items():
        results.add(Done({"data": name, "contender": "graftboost"}, updates, 0.0))
        results.add(Done({"data": name, "contender": "lightgbm"}, {"seconds": [training]}, 0.0))
    return results


def test_stand_ins_are_marked_and_excluded_from_means() -> None:
    results = _measured({"adult": 4.0, "higgs": 100.0})
    text = EXPERIMENT.tables(results)
    assert "| HIGGS* |" in text
    assert "| HIGGS |" not in text
    said = EXPERIMENT.remark(results)
    assert "Adding: LightGBM's retrain takes" in said
    assert "4.0x for 1 row (the paper's: 14.7x)" in said
    assert "slower" not in said
    assert "small samples" not in said
    assert [axis.get_title() for axis in EXPERIMENT.draw(results).axes] == ["Adult", "HIGGS*"]


def test_slower_updates_are_named() -> None:
    said = EXPERIMENT.remark(_measured({"adult": 4.0, "letter": 0.5}))
    assert "slower than LightGBM's retrain on Letter (removing 1 row, 0.5x)" in said


def test_rows_to_add_are_not_trained_on(made: None) -> None:
    data = _made("adult")
    adding = measuring.Updates(data, measuring.Ours, "add", replace(TINY, draws=2))
    removing = measuring.Updates(data, measuring.Ours, "remove", TINY)
    assert removing._model.model.n_rows_ == len(data.y_train)
    assert adding._model.model.n_rows_ == len(data.y_train) - 2 * 5  # two draws of 1%


def test_each_data_set_of_the_paper_has_all_its_figures() -> None:
    for way in WAYS:
        assert list(PAPER[way]) == list(paper.SETS)
        assert all(len(rows) == len(SIZES) for rows in PAPER[way].values())
    labels = [(case.labels["data"], case.labels["contender"]) for case in EXPERIMENT.cases("full")]
    assert labels == [(name, who) for name in paper.SETS for who in WHO]
