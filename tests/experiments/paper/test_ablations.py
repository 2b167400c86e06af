"""Ablations, classes and complexity run from end to end. Speed is not tested here."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.libraries import LIBRARIES, YARDSTICK, Library
from benchmarks.results import Record
from benchmarks.settings import Settings
from datasets import Dataset, Task, paper
from experiments.harness import draws
from experiments.harness.draws import RULES, Draws
from experiments.harness.experiment import Experiment
from experiments.harness.pages import write_page
from experiments.harness.records import find, ratio, records_of
from experiments.harness.results import Done, Results
from experiments.paper import classes, complexity
from experiments.paper.ablations import alpha, bins, iterations, leaves, published, sigma, size
from experiments.paper.complexity import NEVER, Curve
from tests.experiments.measured import measured

pytest.importorskip("matplotlib")

MODULES = (size, alpha, sigma, bins, leaves, iterations, classes, complexity)
N_TRAIN, N_TEST = 240, 60


def made(name: str, split: int = 0, max_rows: int | None = None) -> Dataset:
    """A few synthetic rows in place of the paper's data set of this name."""
    rng = np.random.default_rng(split)
    n_rows, n_classes = N_TRAIN + N_TEST, 2 if name in ("adult", "credit_info") else 4
    X = rng.normal(size=(n_rows, 5)).astype(np.float32)
    X[:, 2] = np.round(X[:, 2])
    ranks = (X[:, 0] + rng.normal(scale=0.3, size=n_rows)).argsort().argsort()
    y = (ranks * n_classes // n_rows).astype(np.int64)
    return Dataset(name, "classification", X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:])


class _Prior(Library):
    """Replaces a library: always predicts the most frequent class."""

    name = YARDSTICK
    title = "LightGBM"
    module = distribution = "json"

    def model(self, task: Task, settings: Settings) -> Any:
        from sklearn.dummy import DummyClassifier

        return DummyClassifier()


class _Missing(_Prior):
    """Replaces a library that is not installed."""

    module = "no_such_library"

    def model(self, task: Task, settings: Settings) -> Any:
        return self.load()


def few(**settings: int) -> Settings:
    """Settings of a model that is trained quickly."""
    return Settings(**{"iterations": 5, "threads": 1, **settings})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows, few iterations, few draws, and one peer that does nothing."""
    monkeypatch.setattr(paper, "load", made)
    monkeypatch.setattr(gc, "collect", lambda: 0)  # nothing here is timed
    for module in (draws, bins, leaves, classes, complexity):
        monkeypatch.setattr(module, "Settings", few)
    monkeypatch.setitem(LIBRARIES, YARDSTICK, _Prior())
    monkeypatch.setattr(iterations, "PEERS", (YARDSTICK,))
    monkeypatch.setitem(iterations.ITERATIONS, "quick", (5, 10))
    monkeypatch.setitem(size.DRAWS, "quick", {0.0: 1, 0.01: 2, 0.5: 1})
    monkeypatch.setitem(complexity.BASE, "quick", complexity.Point(200))
    growth = {
        "rows": (100, 200, 400),
        "update": (1, 2, 4),
        "leaves": (2, 4, 8),
        "bins": (8, 16, 32),
    }
    monkeypatch.setitem(complexity.GROWTH, "quick", growth)


def run(experiment: Experiment) -> Results:
    return measured(experiment.name, experiment.cases("quick"))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.EXPERIMENT.name)
def test_measurements_and_pages(module: Any, tmp_path: Path) -> None:
    experiment = module.EXPERIMENT
    keys = [case.key for case in experiment.cases("full")]
    assert len(set(keys)) == len(keys)
    results = run(experiment)
    results.save(tmp_path)  # raises an error if a value is not JSON
    write_page(experiment, results, tmp_path)
    text = (tmp_path / f"{experiment.name}.md").read_text()
    assert "nan" not in text
    widths = {line.count("|") for table in text.split("\n\n") for line in table.splitlines()[1:2]}
    assert widths - {0}
    assert (tmp_path / f"{experiment.name}.png").stat().st_size > 1000


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.EXPERIMENT.name)
def test_pages_without_results(module: Any) -> None:
    empty = Results(module.EXPERIMENT.name, "quick")
    assert isinstance(module.EXPERIMENT.remark(empty), str)
    assert isinstance(module.EXPERIMENT.answer(empty), str)


def test_an_update_by_refit_equals_a_retrained_model() -> None:
    draws = Draws(made("adult"), few(iterations=10))
    for way in ("remove", "add"):
        for record in draws.measure(way, N_TRAIN // 2, 1):
            assert record.samples["refits"] == [True]
            assert record.samples["loss_after"] == record.samples["loss_refitted"]
            assert record.samples["error_updated"] == record.samples["error_refitted"]
            assert record.samples["alike_updated"] == [1.0]
            assert record.samples["rows_regrown"] == [1.0]
            assert ratio(record) == pytest.approx(1.0)


def test_rules_are_measured_with_the_same_rows() -> None:
    draws = Draws(made("adult"), few(iterations=10))
    drawn = draws.draw(20, seed=3)
    assert len(np.unique(drawn)) == 20
    assert N_TRAIN - 1 not in drawn
    assert sorted([*drawn, *draws.without(drawn)]) == list(range(N_TRAIN))
    records = draws.measure("remove", 20, 2)
    assert [record.library for record in records] == list(RULES)
    before = {tuple(record.samples["loss_before"]) for record in records}
    assert len(before) == 1


def test_forgetting_of_an_untouched_model_and_of_few_rows() -> None:
    losses = {"loss_before": [1.0, 2.0], "loss_refitted": [2.0, 3.0]}
    untouched = Record("adult", "graftboost", {**losses, "loss_after": [1.0, 2.0]})
    untouched.case["rows"] = 10
    assert ratio(untouched) == 0.0
    untouched.case["rows"] = 9  # 18 rows in all
    assert ratio(untouched) is None


def test_a_single_draw_has_no_interval() -> None:
    losses = {"loss_before": [1.0], "loss_refitted": [1.1], "loss_after": [1.3]}
    assert ratio(Record("adult", "graftboost", losses, case={"rows": 50})) == pytest.approx(3.0)
    several = {what: 2 * values for what, values in losses.items()}
    several["loss_refitted"] = [1.1, 0.9]  # on average, a full training changes nothing
    assert ratio(Record("adult", "graftboost", several, case={"rows": 50})) is None


def test_candidates_are_no_more_than_a_feature_has_boundaries() -> None:
    data = made("adult")
    few = len(np.unique(data.X_train[:, 2])) - 1
    assert alpha.candidates(data, 0.05) == 4 * 52 + few
    assert alpha.candidates(data, 1.0) == 4 * (N_TRAIN - 1) + few


def test_candidates_are_the_same_if_the_lowest_rate_selects_all() -> None:
    counts = {"optdigits": (16, 16, 16), "pendigits": (52, 100, 100)}
    records = [
        Record(name, "graftboost", case={"alpha": rate, "candidates": n})
        for name, numbers in counts.items()
        for rate, n in zip((0.05, 0.5, 1.0), numbers, strict=True)
    ]
    assert [name for name in counts if alpha._fixed(records, name)] == ["optdigits"]


def test_refits_agree_with_the_retrained_model() -> None:
    results = run(sigma.EXPERIMENT)
    for record in records_of(results):
        for refitted, alike in zip(
            record.samples["refits"], record.samples["alike_updated"], strict=True
        ):
            assert 0 <= alike <= 1
            assert alike == 1.0 or not refitted
    line = sigma._Line(results, "adult", "add", "rank")
    assert line.ratio()[0] == 1.0
    assert line.ratio()[-1] == 0.0


def test_sizes_of_an_update_are_shares_of_the_rows() -> None:
    records = records_of(run(size.EXPERIMENT))
    one, half = (find(records, "adult", "graftboost", way="add", share=s) for s in (0.0, 0.5))
    assert one is not None
    assert half is not None
    assert one.case["rows"] == 1
    assert half.case["rows"] == N_TRAIN // 2


def test_slopes_are_exponents_and_exclude_refits() -> None:
    results = Results("complexity", "quick")
    for value in (1, 10, 100, 1000):
        refitted = value == 1000
        values = {
            series: {"seconds": [] if refitted else [0.001 * value**1.5], "refits": int(refitted)}
            for series in complexity.SERIES
        }
        results.add(Done({"grows": "update", "value": value}, values, 0.0))
    curve = Curve(results, "update", NEVER)
    assert curve.seconds[-1] is None
    assert curve.slope() == pytest.approx(1.5)
    assert Curve(results, "rows", NEVER).slope() is None


def test_no_node_is_regrown_if_splits_are_kept() -> None:
    library = LIBRARIES["graftboost"]
    data, model = made("adult"), library.model("classification", few())
    model.set_params(**complexity.RULES[NEVER]).fit(data.X_train, data.y_train)
    for half in np.array_split(np.arange(N_TRAIN - 20), 2):
        report = model.remove(half)
        assert (report.strategy, report.nodes_regrown) == ("in-place", 0)


def test_updated_model_predicts_added_classes() -> None:
    results = run(classes.EXPERIMENT)
    for done in results.where():
        steps = done.values["steps"]
        assert [step["classes"] for step in steps] == [2, 3, 4]
        assert steps[0]["untouched"] == steps[0]["updated"]
        # A model cannot predict classes that it has never seen.
        assert steps[-1]["untouched"]["full"] <= 0.6
        assert steps[-1]["updated"]["full"] > steps[-1]["untouched"]["full"]


def test_missing_libraries_and_large_sets_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    psutil = pytest.importorskip("psutil")
    monkeypatch.setitem(LIBRARIES, YARDSTICK, _Missing())
    memory = type("Memory", (), {"available": 1})()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    results = run(iterations.EXPERIMENT)
    skipped = results.skipped()
    assert "LightGBM" in skipped
    assert any(what.startswith("optdigits with 5 iterations") for what in skipped)
    assert any(what.startswith("backdoor of optdigits") for what in skipped)
    assert iterations.EXPERIMENT.tables(results)
    skipped = run(bins.EXPERIMENT).skipped()
    assert skipped == ["LightGBM"]


def test_figures_of_the_paper_are_complete() -> None:
    methods = {*("lightgbm", "xgboost", "catboost", "graftboost"), *iterations.UPDATES}
    for figures in (published.ERRORS, published.SECONDS):
        assert set(figures) == set(iterations.DATA["full"])
        assert all(set(of_set) == methods for of_set in figures.values())
    attacked = {(name, n) for name in iterations.ATTACKED for n in published.ITERATIONS}
    assert set(published.BACKDOOR) == attacked
