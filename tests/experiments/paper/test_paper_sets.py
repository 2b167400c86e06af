"""Sizes and training costs: measurements of synthetic data, and the pages."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import memory
from benchmarks.libraries import LIBRARIES
from benchmarks.settings import Settings
from datasets import Dataset
from datasets.paper import SETS
from experiments.harness.experiment import Scale
from experiments.harness.results import Done, Results
from experiments.paper import data_sets, training

pytest.importorskip("matplotlib")

TINY = Settings(leaves=4, iterations=3, threads=1)


@pytest.fixture
def data(rng: np.random.Generator) -> Dataset:
    X = rng.normal(size=(120, 3)).astype(np.float32)
    X[0, 0] = np.nan
    y = (X[:, 1] > 0).astype(np.int64)
    return Dataset("adult", "classification", X[:90], y[:90], X[90:], y[90:])


def _results(name: str, scale: Scale, values: dict[str, dict]) -> Results:
    done = [Done({"data": data}, found, 1.0) for data, found in values.items()]
    return Results(name, scale, cases=done)


def test_sizes(data: Dataset) -> None:
    assert data_sets.sizes_of(data) == {
        "n_train": 90,
        "n_test": 30,
        "n_features": 3,
        "n_classes": 2,
        "missing": pytest.approx(1 / 270),
    }


def test_there_is_a_case_for_every_set() -> None:
    names = [case.labels["data"] for case in data_sets.cases("quick")]
    assert names == [*SETS, "global_temperatures", "web_traffic"]


def test_sizes_are_shown_with_the_papers(data: Dataset) -> None:
    values = {"adult": data_sets.sizes_of(data), "susy": data_sets.sizes_of(data)}
    results = _results("datasets", "full", values)
    shown = data_sets.tables(results)
    assert "| Adult | 90 (36,139) | 30 (9,034) | 3 (87) | 2 |" in shown
    assert "flights" in shown
    assert "SUSY are replaced by other data" in data_sets.answer(results)
    assert len(data_sets.draw(results).axes) == 1


def test_training_costs(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, absent = LIBRARIES["graftboost"], LIBRARIES["catboost"]
    monkeypatch.setattr(training, "LIBRARIES", {"graftboost": ours, "catboost": absent})

    def load() -> None:
        raise ImportError

    monkeypatch.setattr(absent, "load", load)
    values = training.costs(data, TINY, turns=2)
    assert values["turns"] == 2
    assert values["seconds"].keys() == {"graftboost"}
    assert values["seconds"]["graftboost"] > 0
    assert values["skipped"] == ["CatBoost"]
    assert ("bytes" in values) == memory.available()


def test_training_is_shown_with_the_papers_figures() -> None:
    values = {
        name: {
            "rows": 1,
            "turns": 2,
            "skipped": [],
            "seconds": {"graftboost": 1.0, "lightgbm": 2.0},
            "bytes": {"graftboost": 3e8, "lightgbm": 1e8},
        }
        for name in ("adult", "letter", "higgs")
    }
    results = _results("training", "full", values)
    shown = training.tables(results)
    assert "| Adult | 1 s (2.67 s) | 2 s (0.516 s) | - (9.47 s) | - (1.53 s) | - |" in shown
    assert "| HIGGS* | 300 MB (24.33 GB) |" in shown
    assert "0.5 times LightGBM's time" in training.answer(results)
    assert "3 times LightGBM's memory" in training.answer(results)
    assert len(training.draw(results).axes) == 2


def test_pages_without_results() -> None:
    empty = Results("none", "quick")
    for experiment in (data_sets.EXPERIMENT, training.EXPERIMENT):
        assert experiment.tables(empty)
        assert isinstance(experiment.remark(empty), str)
        assert isinstance(experiment.answer(empty), str)
        assert experiment.draw(empty) is not None
